"""Scores of intervals, row by row, and the probability integral transform in bins."""

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays
from credo.evaluation.metrics.arrays.means import row_weights


@of_arrays(low="...", high="...", targets="...")
def covered(low: jax.Array, high: jax.Array, targets: jax.Array) -> jax.Array:
    """1 where low ≤ y ≤ high, else 0: its mean is the coverage."""
    return ((low <= targets) & (targets <= high)).astype(jnp.result_type(low, jnp.float32))


@of_arrays(low="...", high="...", targets="...")
def interval_score(low: jax.Array, high: jax.Array, targets: jax.Array, level: float = 0.9) -> jax.Array:
    """(u − l) + 2/α (l − y)₊ + 2/α (y − u)₊ with α = 1 − level: width, and a fine for what lies outside.

    Gneiting and Raftery (2007), equation 43.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import interval_score
        >>> interval_score(jnp.zeros(2), jnp.ones(2), jnp.array([0.5, 2.0]), level=0.5).tolist()
        [1.0, 5.0]
    """
    outside = jnp.maximum(low - targets, 0) + jnp.maximum(targets - high, 0)
    return high - low + 2 / (1 - level) * outside


@of_arrays(low="n ...", high="n ...", weights="n")
def pit_shares(low: jax.Array, high: jax.Array, weights: jax.Array | None = None, bins: int = 10) -> jax.Array:
    """The share of PIT values in each of `bins` equal bins, where a row's PIT is uniform on [low, high].

    For counts low = F(y − 1) and high = F(y): the histogram that randomised PITs have on average. For real targets
    both are F(y). Czado, Gneiting and Held (2009), Predictive model assessment for count data.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import pit_shares
        >>> pit_shares(jnp.array([0.0]), jnp.array([0.5]), bins=4).tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    low, high = (jnp.asarray(x).reshape(len(x), -1) for x in (low, high))
    edges = jnp.linspace(0, 1, bins + 1, dtype=low.dtype)[1:-1, None, None]
    width = jnp.where(high > low, high - low, 1)
    point = (edges > high).astype(low.dtype)
    below = jnp.where(high > low, jnp.clip((edges - low) / width, 0, 1), point).mean(-1)
    weights = row_weights(weights, low)
    shares = below @ weights / weights.sum()
    return jnp.diff(shares, prepend=jnp.zeros(1, shares.dtype), append=jnp.ones(1, shares.dtype))
