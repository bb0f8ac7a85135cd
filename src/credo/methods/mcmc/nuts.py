"""The No-U-Turn sampler."""

from typing import Any

import jax
from blackjax.mcmc import nuts as blackjax_nuts

from credo.core.tree import struct
from credo.methods.mcmc.hamiltonian import ChainState, HamiltonianMethod

KERNEL = blackjax_nuts.build_kernel()


@struct
class NUTS(HamiltonianMethod):
    """Hamiltonian Monte Carlo whose paths stop where they would turn back (D3).

    Hoffman and Gelman (2014), with multinomial draws along the path (Betancourt, 2017). Chains of one device run
    one after another: in lock-step every path would cost as much as the longest.

    Args:
        step_size: start of the step-size adaptation, or the fixed step where `warmup=0`.
        warmup: adaptation steps before the draws that are kept.
        chains: independent chains.
        max_doublings: a path has at most 2^max_doublings steps.
        target_acceptance: acceptance that the warm-up aims at.
        mass: "diagonal" or "dense", learned in the warm-up, or "identity".

    Example:
        >>> import credo
        >>> credo.methods.NUTS(chains=2).members
        2
    """

    max_doublings: int = 10

    def transition(self, key: jax.Array, log_density: Any, state: ChainState) -> tuple[Any, Any]:
        return KERNEL(key, state.chain, log_density, state.step_size, state.inverse_mass, self.max_doublings)
