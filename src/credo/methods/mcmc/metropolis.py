"""The random-walk Metropolis sampler."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.mcmc.random_walk import RWState

from credo.core.method import Phase
from credo.core.model import Model
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.mcmc.chains import ChainMethod, ChainState, low_acceptance

LARGE, SMALL = 0.234, 0.44  # the best acceptance in many dimensions and in one


class Walked(NamedTuple):
    """What the warm-up and the trace need of several moves."""

    acceptance_rate: jax.Array


@struct
class Metropolis(ChainMethod):
    """Propose θ' = θ + s L z with z ~ N(0, I), and accept with min(1, p(θ', D) / p(θ, D)) (D2).

    Metropolis et al. (1953). The warm-up learns LL', the covariance of the posterior, and the scale s that gives the
    best acceptance: 0.234 in many dimensions, 0.44 in one (Roberts, Gelman and Gilks, 1997). No gradients are needed. A
    walk forgets where it was after a number of moves that grows with the number of parameters, so that each step makes
    many cheap moves and keeps the last. Moves are drawn for many steps at once, which BlackJAX's kernel cannot do: a
    few normals at a time take longer than the density of a small network.

    Args:
        step_size: s; None lets the warm-up find it.
        moves: of one step.
        warmup: adaptation steps before the draws that are kept.
        chains: independent chains.
        target_acceptance: that the warm-up aims at; None is 0.234 + 0.206/P for P parameters.
        mass: the covariance LL' that is learned: "diagonal" or "dense"; "identity" learns none.

    Example:
        >>> import credo
        >>> credo.methods.Metropolis(moves=50, chains=2).members
        2
    """

    target_acceptance: Any = leaf(default=None)
    moves: int = 2000

    default_steps = 1000
    lockstep = False  # in lock-step the warm-up's branches compile three times as long, and all of them always run

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.moves < 1:
            raise InputError(f"A step needs at least one move, got moves={self.moves}.")
        return super().prepare(model)

    def _layout(self, params: PyTree) -> Layout:
        return Layout.of(params, limit=2**62)

    def _tuner(self, dims: int) -> tuple[Any, Any, Any]:
        aim = self.target_acceptance
        return dual_averaging_adaptation(LARGE + (SMALL - LARGE) / dims if aim is None else aim)

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> RWState:
        position = layout.ravel(params)
        return RWState(position, log_density(position))

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: ChainState) -> PyTree:
        key_move, key_accept = jax.random.split(key)
        position = state.chain.position
        moves = jax.random.normal(key_move, (self.moves, *position.shape), position.dtype)
        return moves, jnp.log(jax.random.uniform(key_accept, (self.moves,)))

    def transition(self, noise: Any, log_density: Any, state: ChainState) -> tuple[RWState, Walked]:
        return walk(log_density, state.chain, state.step_size, state.inverse_mass, *noise)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        return low_acceptance(trace, 0.05)


def walk(
    log_density: Any, start: RWState, step_size: jax.Array, covariance: jax.Array, normals: jax.Array,
    limits: jax.Array,
) -> tuple[RWState, Walked]:  # fmt: skip
    """Moves s L z one after another, each accepted where log p' − log p > log u.

    Args:
        log_density: log p.
        start: where the first move starts.
        step_size: s.
        covariance: LL', its diagonal [P] or all of it [P, P].
        normals: z [moves, P].
        limits: log u [moves].
    """
    diagonal = covariance.ndim == 1
    scaled = normals * jnp.sqrt(covariance) if diagonal else normals @ jnp.linalg.cholesky(covariance).T

    def move_once(chain: RWState, move: tuple[jax.Array, jax.Array]) -> tuple[RWState, jax.Array]:
        position = chain.position + move[0]
        value = log_density(position)
        ratio = jnp.where(jnp.isnan(value), -jnp.inf, value - chain.logdensity)
        accept = move[1] < ratio
        moved = jax.tree.map(lambda a, b: jnp.where(accept, a, b), RWState(position, value), chain)
        return moved, jnp.exp(jnp.minimum(ratio, 0.0))

    chain, rates = jax.lax.scan(move_once, start, (step_size * scaled, limits))
    return chain, Walked(rates.mean())
