"""Stochastic-gradient Langevin dynamics under the preconditioner of RMSprop."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.methods.sgmcmc.sgld import SGLD
from credo.methods.sgmcmc.tuning import TINY, Landscape, StepChoice


@struct
class PSGLD(SGLD):
    """θ ← θ − ηG∇Ũ(θ) + √(2ηG) ε with G = 1/(ε₀ + rms(∇Ũ)) for every parameter (D5).

    Li et al. (2016), Preconditioned stochastic gradient Langevin dynamics for deep neural networks. There G moves with
    the chain, and without the term Γ = ∂G/∂θ the draws' law is wrong however small the step. Here the pilot estimates
    the root mean square of the gradients of a chain around the mode, and G is constant: Γ is 0. Its mean is 1.

    Args:
        damping: ε₀ as a share of the mean of rms(∇Ũ) over the parameters.
        step_size, burn_in, chains, map_steps, pilot_steps, tolerance, control_variates, schedule: as in `SGLD`; there
            is a pilot also where the step size is given.

    Example:
        >>> import credo
        >>> [phase.name for phase in credo.methods.PSGLD(step_size=1e-4).phases(100, 500)]
        ['optimise', 'pilot', 'burn_in', 'sample']
    """

    damping: float = leaf(default=0.01)

    equilibrates = False

    @property
    def piloted(self) -> bool:
        return True

    def choose(self, land: Landscape) -> StepChoice:
        choice = super().choose(land)
        if self.step_size is None:
            return choice
        return StepChoice(jnp.asarray(self.step_size, jnp.float32), choice.friction, 0 * choice.limit)

    def square(self, probe: PyTree, gradient: PyTree, product: PyTree) -> PyTree:
        """g² + z ⊙ Hz. At the mode gradients are noise alone; over the posterior E[(∂U/∂θ_i)²] = E[∂²U/∂θ_i²] joins."""
        return jax.tree.map(lambda z, g, w: g**2 + z * w, probe, gradient, product)

    def root(self, square: PyTree, scale: PyTree) -> PyTree:
        spread = jax.tree.map(lambda s: jnp.sqrt(jnp.abs(s) + TINY), square)
        mean = _mean(spread)
        bounded = jax.tree.map(lambda s: 1 / (self.damping * mean + s), spread)
        unit = _mean(bounded)
        return jax.tree.map(lambda g: jnp.sqrt(g / unit), bounded)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        return super().notes(trace) if self.step_size is None else []


def _mean(tree: PyTree) -> jax.Array:
    leaves = jax.tree.leaves(tree)
    return sum((x.sum() for x in leaves), jnp.zeros(())) / max(1, sum(x.size for x in leaves))
