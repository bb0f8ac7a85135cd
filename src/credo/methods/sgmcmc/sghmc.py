"""Stochastic-gradient Hamiltonian Monte Carlo: Langevin dynamics with momentum, on minibatches."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.methods.sgmcmc.chain import StochasticMethod, StochasticState
from credo.methods.sgmcmc.tuning import Landscape, StepChoice, hamiltonian_choice, normal_like

DECAY = 0.1  # of the momentum at each step, where the step size is given and the friction is not


@struct
class FrictionMethod(StochasticMethod):
    """Samplers with friction: simulated time goes as the root of the step's factor."""

    friction: float | None = leaf(default=None)

    def first_friction(self, step_size: Any) -> Any:
        return DECAY / step_size if self.friction is None else self.friction

    def log_time(self, rate: jax.Array) -> jax.Array:
        return 0.5 * jnp.log(rate)


@struct
class SGHMC(FrictionMethod):
    """dθ = P^½v dt, dv = −P^½∇Ũ dt − γv dt + √(2γ) dW: momentum with friction, on minibatches (D5).

    Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo. A step of length h is the splitting
    BAOAB, with the two halves of B that meet at one position taken from one minibatch:

        v ← v − hP^½∇Ũ(θ);   θ ← θ + ½hP^½v;   v ← cv + √(1 − c²) ε with c = e^{−γh};   θ ← θ + ½hP^½v.

    On a Gaussian target its positions have no error at all from the step (Leimkuhler and Matthews, 2013), whereas
    Euler's scheme of the paper has one of order h. What is left is gradient noise; batches without replacement cancel
    most of it, so nothing is subtracted for it by default. The paper's learning rate is h², its α is 1 − c.

    Args:
        step_size: h; None lets a pilot choose h, γ and the diagonal P (else P is the identity).
        friction: γ; None lets the pilot choose it, or is 0.1/h where the step size is given.
        gradient_noise: B̂, a variance of the entries of P^½∇Ũ that is taken off the injected noise: 1 − c² − h²B̂.
            Right for gradients whose errors are independent from step to step; those of `credo.fit` nearly cancel.
        burn_in, chains, map_steps, pilot_steps, tolerance, control_variates: as in `SGLD`.
        schedule: as in `SGLD`, for h².

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "sghmc", steps=500, batch_size=10)
        >>> "The pilot chose step_size" in str(fit.status)
        True
    """

    gradient_noise: float = leaf(default=0.0)

    def start(self, key: jax.Array, position: PyTree) -> PyTree:
        return normal_like(key, position)

    def choose(self, land: Landscape) -> StepChoice:
        return hamiltonian_choice(land, self.tolerance, self.friction)

    def move(self, noise: PyTree, gradient: PyTree, state: StochasticState, rate: jax.Array) -> tuple[PyTree, PyTree]:
        step = self.step_scale * state.step_size * jnp.sqrt(rate)
        keep = jnp.exp(-state.friction * step)
        spread = jnp.sqrt(jnp.maximum(-jnp.expm1(-2 * state.friction * step) - step**2 * self.gradient_noise, 0.0))
        kicked = jax.tree.map(lambda v, r, g: v + step * r * g, state.momentum, state.root, gradient)
        turned = jax.tree.map(lambda v, e: keep * v + spread * e, kicked, noise)
        position = jax.tree.map(
            lambda p, r, v, w: p + 0.5 * step * r * (v + w), state.position, state.root, kicked, turned
        )
        return position, turned


@struct
class CyclicalSGHMC(SGHMC):
    """SGHMC whose step rises and falls: large steps find another mode, small ones sample it (D5).

    h_t² = h² (B/2)(1 + cos πr) over the share r of a cycle; see `CyclicalSGLD`. Zhang et al. (2020).

    Args:
        cycle_length, boost: as in `CyclicalSGLD`.
        step_size, friction, gradient_noise, burn_in, chains, map_steps, pilot_steps, tolerance: as in `SGHMC`.

    Example:
        >>> import credo
        >>> credo.methods.CyclicalSGHMC(boost=2.0).schedule
        'cyclical'
    """

    schedule: str = "cyclical"
