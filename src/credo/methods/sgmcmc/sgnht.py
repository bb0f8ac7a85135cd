"""The stochastic-gradient Nosé-Hoover thermostat."""

import jax
import jax.numpy as jnp

from credo.core.tree import size, struct
from credo.core.typing import PyTree
from credo.methods.sgmcmc.chain import StochasticState
from credo.methods.sgmcmc.sghmc import FrictionMethod
from credo.methods.sgmcmc.tuning import Landscape, StepChoice, dot, hamiltonian_choice, normal_like


@struct
class SGNHT(FrictionMethod):
    """SGHMC whose friction ξ adapts: dξ = A² (v'v/d − 1) dt holds the kinetic energy at temperature 1 (D5).

    dθ = P^½v dt, dv = −P^½∇Ũ dt − ξv dt + √(2A) dW. Ding et al. (2014), Bayesian sampling using stochastic gradient
    thermostats. Gradient noise that heats all directions alike is cooled away, whatever its size. The step is the
    symmetric splitting of Leimkuhler and Shang (2016): kick, half a drift, half of ξ, friction and noise exactly,
    half of ξ, half a drift, with one gradient. In the paper dξ has no A²: with it nothing depends on the units of
    time.

    Args:
        step_size: h; None lets a pilot choose h, A and the diagonal P (else P is the identity).
        friction: A; None lets the pilot choose it, or is 0.1/h where the step size is given.
        burn_in, chains, map_steps, pilot_steps, tolerance, control_variates, schedule: as in `SGHMC`.

    Example:
        >>> import credo
        >>> credo.methods.SGNHT(chains=2).members
        2
    """

    def start(self, key: jax.Array, position: PyTree) -> PyTree:
        return normal_like(key, position), jnp.ones(())  # velocity, ξ/A

    def choose(self, land: Landscape) -> StepChoice:
        return hamiltonian_choice(land, self.tolerance, self.friction, thermostat=True)

    def move(self, noise: PyTree, gradient: PyTree, state: StochasticState, rate: jax.Array) -> tuple[PyTree, PyTree]:
        velocity, thermostat = state.momentum
        step = self.step_scale * state.step_size * jnp.sqrt(rate)
        dims = size(velocity)
        kicked = jax.tree.map(lambda v, r, g: v + step * r * g, velocity, state.root, gradient)
        half = 0.5 * step * state.friction
        thermostat = thermostat + half * (dot(kicked, kicked) / dims - 1)
        loss = state.friction * thermostat * step  # ξh, of either sign
        small = jnp.abs(loss) < 1e-4
        # (1 − e^{−2ξh}) A/ξ, and its limit where ξ passes through 0
        share = jnp.where(small, 2 * (1 - loss), -jnp.expm1(-2 * loss) / jnp.where(small, 1.0, loss))
        spread = jnp.sqrt(state.friction * step * share)
        turned = jax.tree.map(lambda v, e: jnp.exp(-loss) * v + spread * e, kicked, noise)
        thermostat = thermostat + half * (dot(turned, turned) / dims - 1)
        position = jax.tree.map(
            lambda p, r, v, w: p + 0.5 * step * r * (v + w), state.position, state.root, kicked, turned
        )
        return position, (turned, thermostat)
