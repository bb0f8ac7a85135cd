"""Weighted means over rows, the form of most scores."""

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays


def row_weights(weights: jax.Array | None, like: jax.Array) -> jax.Array:
    """The weights of rows [n]; 1 each where none are given."""
    kind = jnp.result_type(like, jnp.float32)
    return jnp.ones(like.shape[0], kind) if weights is None else jnp.asarray(weights, kind)


@of_arrays(values="n ...", weights="n")
def mean(values: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """Σ_n w_n v_n / Σ_n w_n, where a row with several entries counts as their plain mean.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import mean
        >>> float(mean(jnp.array([1.0, 4.0]), jnp.array([2.0, 1.0])))
        2.0
    """
    values = jnp.asarray(values)
    rows = values.reshape(values.shape[0], -1).mean(1, dtype=jnp.result_type(values, jnp.float32))
    weights = row_weights(weights, rows)
    return weighted_sum(rows, weights) / weights.sum()


@of_arrays(values="n ...", weights="n")
def root_mean(values: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """The square root of `mean`: the RMSE of squared errors."""
    return jnp.sqrt(mean(values, weights))


def weighted_sum(rows: jax.Array, weights: jax.Array) -> jax.Array:
    """Σ_n w_n v_n, where rows of weight 0 do not count even if their value is not finite."""
    return jnp.where(weights > 0, weights * rows, 0).sum()
