"""Stochastic-gradient Langevin dynamics, with constant, decaying or cyclical steps."""

import jax
import jax.numpy as jnp

from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.methods.sgmcmc.chain import StochasticMethod, StochasticState
from credo.methods.sgmcmc.tuning import Landscape, StepChoice, langevin_choice


@struct
class SGLD(StochasticMethod):
    """θ ← θ − ηP∇Ũ(θ) + √(2ηP) ε with Ũ = −log p(θ) − (N/M) Σ_m log p(y_m|θ), ε standard normal (D5).

    Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics. The draws' law differs from the
    posterior by a share of about ηλ/2 in variances, λ the largest curvature, and by what gradient noise adds; both
    vanish with η. P is the identity where `step_size` is given; else a diagonal that the pilot finds. The chain
    starts at a mode.

    Args:
        step_size: η; None lets a pilot choose it (`fit.status` says how).
        burn_in: steps before the draws that are kept.
        chains: independent chains, in lock-step.
        map_steps: steps of Adam (of `learning_rate`) to the mode at which a chain starts; 0 starts where the fit does.
        pilot_steps: minibatches from which the pilot finds curvature and gradient noise.
        tolerance: relative error of variances that the pilot allows to the step, and again to gradient noise.
        control_variates: estimate the gradient by its difference from that at the mode (Baker et al., 2019).
        schedule: "constant"; "decay", η (1 + t/decay_after)^−decay_power with draws weighted by the step; "cyclical".
        cycle_length, boost: see `CyclicalSGLD`.
        step_scale: factor on the step size, lowered by the loop where a chain turns non-finite.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "sgld", steps=500, batch_size=10)
        >>> fit.posterior.available
        500
    """

    default_steps = 10_000  # its steps are short

    def choose(self, land: Landscape) -> StepChoice:
        return langevin_choice(land, self.tolerance)

    def move(self, noise: PyTree, gradient: PyTree, state: StochasticState, rate: jax.Array) -> tuple[PyTree, PyTree]:
        step = self.step_scale * state.step_size * rate
        spread = jnp.sqrt(2 * step)
        position = jax.tree.map(
            lambda p, r, g, e: p + r * (step * r * g + spread * e), state.position, state.root, gradient, noise
        )
        return position, ()


@struct
class CyclicalSGLD(SGLD):
    """SGLD whose step rises and falls: large steps find another mode, small ones sample it (D5).

    η_t = η (B/2)(1 + cos πr), r the share of the cycle that has passed. Zhang et al. (2020), Cyclical stochastic
    gradient MCMC for Bayesian deep learning. Draws are kept where η_t ≤ η, the step that the pilot chooses.
    Unlike there, noise is injected all the time: without it every cycle would have to find its spread anew, and short
    ones would be overconfident.

    Args:
        cycle_length: steps of a cycle.
        boost: B, how much larger than η the first step of a cycle is; 2 keeps half of the draws, 4 a third.
        step_size, burn_in, chains, map_steps, pilot_steps, tolerance, control_variates: as in `SGLD`.

    Example:
        >>> import credo
        >>> credo.methods.CyclicalSGLD(cycle_length=2000).schedule
        'cyclical'
    """

    schedule: str = "cyclical"
