"""Counts of which a share is always 0: what such likelihoods add to that of the other counts."""

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import zero_inflated_cdf, zero_inflated_log_prob, zero_inflated_variance
from credo.core.special import log_rate_slope
from credo.core.typing import PyTree
from credo.likelihoods.base import count_targets


class ZeroInflated(ABC):
    """y = 0 with probability π = 1/(1 + e^−g), else y is of the `counted` likelihood; outputs are (f, g) of all entries
    of y."""

    offset: Any
    kind = "counts"

    @property
    @abstractmethod
    def counted(self) -> Any:
        """The likelihood of the counts that are not always 0, with ν of its own and one output for each entry."""

    @abstractmethod
    def entries(self, params: PyTree, f: jax.Array, targets: jax.Array) -> jax.Array:
        """Its log density of each entry of y [n, k]."""

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Whole numbers of at least 0 [n, k]."""
        return count_targets(targets, type(self).__name__)

    def num_outputs(self, targets: Any) -> int:
        """A log-mean and a logit for each entry of y."""
        return 2 * targets.shape[1]

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log(π + (1 − π) P(0)) where y = 0, else log(1 − π) + log P(y), summed over the entries of y."""
        f, g = jnp.split(outputs, 2, -1)
        return zero_inflated_log_prob(self.entries(params, f, targets), g, targets)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(1 − π) μ."""
        f, g = jnp.split(outputs, 2, -1)
        return jax.nn.sigmoid(-g) * self.counted.mean(params, f)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(1 − π) (v + π μ²) with μ and v those of the counts that are not always 0."""
        f, g = jnp.split(outputs, 2, -1)
        return zero_inflated_variance(self.counted.mean(params, f), self.counted.variance(params, f), g)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """π + (1 − π) P(Y ≤ y), and 0 for y < 0."""
        f, g = jnp.split(outputs, 2, -1)
        return zero_inflated_cdf(self.counted.cdf(params, f, targets), g, targets)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One count for every entry."""
        zero_key, count_key = jax.random.split(key)
        f, g = jnp.split(outputs, 2, -1)
        zero = jax.random.bernoulli(zero_key, jax.nn.sigmoid(g))
        return jnp.where(zero, 0, self.counted.sample(count_key, params, f))

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the counts have, and that some are always 0."""
        settings, arrays = self.counted.exported(params)
        return settings | {"inflated": True}, arrays

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """E_y[∇ log p ∇ log p'] in (f, g) [n, 2k, 2k]: P(0) s s' of the zero, and the moments of the other counts.

        With I their information in η = log μ and P₀ their probability of 0, the score of a 0 is −I, so that the scores
        of y > 0 have moments P₀ I and I − P₀ I².
        """
        f, g = jnp.split(outputs, 2, -1)
        share, rest, slope = jax.nn.sigmoid(g), jax.nn.sigmoid(-g), log_rate_slope(f + self.offset)
        info = jnp.diagonal(self.counted.curvature(params, f), axis1=-2, axis2=-1) / slope**2
        log_p_zero = self.entries(params, f, jnp.zeros_like(f))
        p_zero, p_positive = jnp.exp(log_p_zero), -jnp.expm1(log_p_zero)
        zero = share + rest * p_zero
        # The scores (∂f, ∂g) of a zero are (−(1−π) I P₀, π (1−π)(1−P₀))/P(0); those of y > 0 are (s, −π)
        of_f, of_g = -rest * info * p_zero, share * rest * p_positive
        ff = of_f**2 / zero + rest * info * (1 - info * p_zero)
        gg = of_g**2 / zero + rest * p_positive * share**2
        fg = of_f * of_g / zero - share * rest * info * p_zero
        identity = jnp.eye(f.shape[-1], dtype=outputs.dtype)
        ff, fg, gg = ((x * s)[..., None] * identity for x, s in ((ff, slope**2), (fg, slope), (gg, 1.0)))
        return jnp.concatenate([jnp.concatenate([ff, fg], -1), jnp.concatenate([fg, gg], -1)], -2)
