"""The Metropolis-adjusted Langevin algorithm."""

from typing import Any

import jax
import jax.numpy as jnp
from blackjax.mcmc import hmc as blackjax_hmc

from credo.core.model import Model
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.mcmc.chains import ChainMethod, ChainState, low_acceptance
from credo.methods.mcmc.metropolis import Walked

KERNEL = blackjax_hmc.build_kernel()


@struct
class MALA(ChainMethod):
    """Propose θ' = θ + ½ε² C ∇log p(θ, D) + ε C^½ z with z ~ N(0, I), and accept by Metropolis and Hastings (D2).

    The ratio is p(θ', D) q(θ | θ') / p(θ, D) q(θ' | θ): a proposal that follows the gradient is not symmetric, and
    without q the draws are biased. C is the covariance of the posterior that the warm-up learns. This is exactly one
    leapfrog step of Hamiltonian Monte Carlo with inverse mass C, and BlackJAX's kernel of that is used. The best
    acceptance is 0.574. Roberts and Rosenthal (1998), Optimal scaling of discrete approximations to Langevin
    diffusions.

    Args:
        step_size: ε; None lets the warm-up find it.
        moves: of one step; the last is kept.
        warmup: adaptation steps before the draws that are kept.
        chains: independent chains.
        target_acceptance: acceptance that the warm-up aims at.
        mass: the covariance C that is learned: "diagonal" or "dense"; "identity" learns none.

    Example:
        >>> import credo
        >>> credo.methods.MALA(moves=10, chains=2).members
        2
    """

    target_acceptance: Any = leaf(default=0.574)
    moves: int = 1000

    default_steps = 1000
    lockstep = False  # in lock-step the warm-up's branches compile three times as long, and all of them always run

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.moves < 1:
            raise InputError(f"A step needs at least one move, got moves={self.moves}.")
        return super().prepare(model)

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> Any:
        return blackjax_hmc.init(layout.ravel(params), log_density)

    def transition(self, key: jax.Array, log_density: Any, state: ChainState) -> tuple[Any, Walked]:
        def move_once(chain: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            chain, info = KERNEL(key, chain, log_density, state.step_size, state.inverse_mass, 1)
            return chain, info.acceptance_rate

        chain, rates = jax.lax.scan(move_once, state.chain, jax.random.split(key, self.moves))
        return chain, Walked(jnp.mean(rates))

    def notes(self, trace: dict[str, Any]) -> list[str]:
        return low_acceptance(trace, 0.2)
