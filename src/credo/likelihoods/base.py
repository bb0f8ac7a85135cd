"""What likelihoods share: checks of targets and one positive parameter that is known, learned or inferred."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.errors import InputError

PyTree = Any


def real_targets(targets: np.ndarray, name: str) -> np.ndarray:
    """Finite numbers of shape [n, k]."""
    array = np.asarray(targets)
    if array.dtype.kind not in "fiub":
        raise InputError(f"The {name} likelihood needs numeric targets, got dtype {array.dtype}.")
    if array.ndim not in (1, 2):
        raise InputError(f"Targets must have shape [rows] or [rows, outputs], got {list(array.shape)}.")
    array = array.astype(np.float32).reshape(len(array), -1)
    if not np.isfinite(array).all():
        raise InputError("Targets contain NaN or infinite values; remove or replace those rows.")
    return array


def log_normal_prior(log_value: jax.Array, loc: Any, scale: Any) -> jax.Array:
    """Density of log v for v ~ LogNormal(loc, scale²): the Jacobian is inside, because v = exp(log v) is what is normal."""
    return jax.scipy.stats.norm.logpdf(log_value, loc, scale).sum()


def weighted_std(targets: jax.Array, weight: jax.Array) -> jax.Array:
    """Standard deviation of each column [k] over rows that count, centred before squaring."""
    total = jnp.maximum(weight.sum(), 1e-6)
    mean = (weight[:, None] * targets).sum(0) / total
    return jnp.sqrt((weight[:, None] * (targets - mean) ** 2).sum(0) / total)
