"""Counts with more zeros than a Poisson has."""

from typing import Any

import jax

from credo.core.densities import poisson_log_prob
from credo.core.special import log_rate
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import NoParameters, checked_offset
from credo.likelihoods.poisson import Poisson
from credo.likelihoods.zero_inflated import ZeroInflated


@struct
class ZeroInflatedPoisson(ZeroInflated, NoParameters):
    """y = 0 with probability π = 1/(1 + e^−g), else y ~ Poisson(λ) with log λ = f + offset; outputs are (f, g) of all
    entries of y; see `zero_inflated_poisson`."""

    offset: Any = leaf(default=0.0)

    @property
    def counted(self) -> Poisson:
        """The Poisson."""
        return Poisson(self.offset)

    def entries(self, params: PyTree, f: jax.Array, targets: jax.Array) -> jax.Array:
        """log Poisson(y; λ) [n, k]."""
        return poisson_log_prob(log_rate(f + self.offset)[..., None], targets[..., None])


def zero_inflated_poisson(*, offset: float = 0.0) -> ZeroInflatedPoisson:
    """Counts of which a share is always 0: y ~ π δ₀ + (1 − π) Poisson(e^(f + offset)), both π and f from the network.

    Lambert (1992), Zero-inflated Poisson regression. The network has two outputs for each entry of y: all f, then the
    logits of all π.

    Args:
        offset: added to f, such as the logarithm of the mean count: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import zero_inflated_poisson
        >>> zero_inflated_poisson().mean({}, jnp.zeros((1, 2))).tolist()
        [[0.5]]
    """
    return ZeroInflatedPoisson(checked_offset(offset))
