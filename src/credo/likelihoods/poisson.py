"""Counts whose variance is their mean."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import poisson_cdf, poisson_log_prob
from credo.core.special import log_rate, log_rate_slope
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import NoParameters, checked_offset, count_targets, diagonal
from credo.likelihoods.variates import poisson_sample


@struct
class Poisson(NoParameters):
    """y ~ Poisson(λ) with log λ = f + offset, one output for each entry of y; see `poisson`."""

    offset: Any = leaf(default=0.0)

    kind = "counts"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Whole numbers of at least 0 [n, k]."""
        return count_targets(targets, "Poisson")

    def num_outputs(self, targets: Any) -> int:
        """One log-rate for each entry of y."""
        return targets.shape[1]

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """y log λ − λ − log y!, summed over the entries of y."""
        return poisson_log_prob(log_rate(outputs + self.offset), targets)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """λ."""
        return jnp.exp(log_rate(outputs + self.offset))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """λ."""
        return jnp.exp(log_rate(outputs + self.offset))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Q(⌊y⌋ + 1, λ), and 0 for y < 0."""
        return poisson_cdf(self.mean(params, outputs), targets)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """The offset, for the NumPy predictor."""
        return {"offset": float(self.offset)}, {}

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One count for every entry."""
        return poisson_sample(key, self.mean(params, outputs))

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """λ (d log λ/df)² on the diagonal."""
        return diagonal(self.mean(params, outputs) * log_rate_slope(outputs + self.offset) ** 2)


def poisson(*, offset: float = 0.0) -> Poisson:
    """Counts with variance equal to their mean: y ~ Poisson(e^(f + offset)).

    Above f = 30 the rate grows linearly, e³⁰ (f − 29), so that no output makes it infinite in float32 and its
    gradient still points back.

    Args:
        offset: added to f, such as the logarithm of the mean count: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import poisson
        >>> poisson().mean({}, jnp.zeros((1, 2))).tolist()
        [[1.0, 1.0]]
    """
    return Poisson(checked_offset(offset))
