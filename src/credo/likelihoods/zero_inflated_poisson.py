"""Counts with more zeros than a Poisson has."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import poisson_log_prob
from credo.core.special import log_rate
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import NoParameters, checked_offset, count_targets
from credo.likelihoods.poisson import Poisson


@struct
class ZeroInflatedPoisson(NoParameters):
    """y = 0 with probability π = 1/(1 + e^−g), else y ~ Poisson(λ) with log λ = f + offset; outputs are (f, g) of all
    entries of y; see `zero_inflated_poisson`."""

    offset: Any = leaf(default=0.0)

    kind = "counts"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Whole numbers of at least 0 [n, k]."""
        return count_targets(targets, "ZeroInflatedPoisson")

    def num_outputs(self, targets: Any) -> int:
        """A log-rate and a logit for each entry of y."""
        return 2 * targets.shape[1]

    def _parts(self, outputs: jax.Array) -> tuple[Poisson, jax.Array, jax.Array]:
        """The Poisson, its outputs f and the logits g [n, k]."""
        f, g = jnp.split(outputs, 2, -1)
        return Poisson(self.offset), f, g

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log(π + (1 − π) e^−λ) where y = 0, else log(1 − π) + log Poisson(y; λ), summed over the entries of y."""
        _, f, g = self._parts(outputs)
        each = poisson_log_prob(log_rate(f + self.offset)[..., None], targets[..., None])
        counted = jax.nn.log_sigmoid(-g) + each
        return jnp.where(targets > 0, counted, jnp.logaddexp(jax.nn.log_sigmoid(g), counted)).sum(-1)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(1 − π) λ."""
        poisson, f, g = self._parts(outputs)
        return jax.nn.sigmoid(-g) * poisson.mean({}, f)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(1 − π) λ (1 + π λ)."""
        poisson, f, g = self._parts(outputs)
        rate = poisson.mean({}, f)
        return jax.nn.sigmoid(-g) * rate * (1 + jax.nn.sigmoid(g) * rate)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """π + (1 − π) P(Poisson(λ) ≤ y), and 0 for y < 0."""
        poisson, f, g = self._parts(outputs)
        below = jax.nn.sigmoid(g) + jax.nn.sigmoid(-g) * poisson.cdf({}, f, targets)
        return jnp.where(targets < 0, 0, below)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One count for every entry."""
        zero_key, count_key = jax.random.split(key)
        poisson, f, g = self._parts(outputs)
        zero = jax.random.bernoulli(zero_key, jax.nn.sigmoid(g))
        return jnp.where(zero, 0, poisson.sample(count_key, {}, f))

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """E_y[∇ log p ∇ log p'] in (f, g) [n, 2k, 2k]: P(0) s s' of the zero, and the moments of the other counts."""
        poisson, f, g = self._parts(outputs)
        rate, share, rest = poisson.mean({}, f), jax.nn.sigmoid(g), jax.nn.sigmoid(-g)
        slope = jnp.sqrt(jnp.diagonal(poisson.curvature({}, f), axis1=-2, axis2=-1) / jnp.maximum(rate, 1e-30))
        none, some = jnp.exp(-rate), -jnp.expm1(-rate)  # P(0) and P(> 0) of the Poisson
        zero = share + rest * none
        # The scores (∂f, ∂g) of a zero are (−(1−π) λ e^−λ, π (1−π)(1−e^−λ))/P(0); those of y > 0 are (y − λ, −π)
        of_f, of_g = -rest * rate * none, share * rest * some
        ff = of_f**2 / zero + rest * rate * (1 - rate * none)
        gg = of_g**2 / zero + rest * some * share**2
        fg = of_f * of_g / zero - share * rest * rate * none
        each = jnp.eye(f.shape[-1], dtype=outputs.dtype)
        ff, fg, gg = ((x * s)[..., None] * each for x, s in ((ff, slope**2), (fg, slope), (gg, 1.0)))
        return jnp.concatenate([jnp.concatenate([ff, fg], -1), jnp.concatenate([fg, gg], -1)], -2)


def zero_inflated_poisson(*, offset: float = 0.0) -> ZeroInflatedPoisson:
    """Counts of which a share is always 0: y ~ π δ₀ + (1 − π) Poisson(e^(f + offset)), both π and f from the network.

    Lambert (1992), Zero-inflated Poisson regression. The network has two outputs for each entry of y: all f, then the
    logits of all π.

    Args:
        offset: what is added to f, such as the logarithm of the mean count: what the prior of f is centred at.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import zero_inflated_poisson
        >>> zero_inflated_poisson().mean({}, jnp.zeros((1, 2))).tolist()
        [[0.5]]
    """
    return ZeroInflatedPoisson(checked_offset(offset))
