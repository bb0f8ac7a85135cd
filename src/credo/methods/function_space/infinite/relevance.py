"""Priors of what `prior_scale="relevance"` chooses, and the least noise that draws of a function can bear."""

import jax
import jax.numpy as jnp

from credo.core.typing import PyTree
from credo.methods.function_space.infinite.regression import factor

WIDTH = 2.0  # of the normal priors of logarithms
SHARE = 0.7  # of the error of a row left out that is noise at least


def log_prior(scales: dict[str, jax.Array]) -> jax.Array:
    """log p of the log factors s of the variances, up to a constant; 0 without relevances.

    The root of a relevance is half-Cauchy, whose density has its mode at 0: −log(1 + e^s). On the scale of s the mode
    would be 1, and inputs that do not matter would make the function rough in place of noise. The others are N(0, 2²),
    so that a kernel without noise is not the most likely.
    """
    if "inputs" not in scales:
        return jnp.zeros(())
    others = jnp.stack([scales["weight"], scales["bias"]])
    return -jax.nn.softplus(scales["inputs"]).sum() - 0.5 * jnp.square(others / WIDTH).sum()


def log_prior_of_point(params: PyTree, start: PyTree) -> jax.Array:
    """log p of a likelihood's learned ν, up to a constant: N(start, 2²), such as of log σ around half the deviation."""
    terms = [jnp.square((x - s) / WIDTH).sum() for x, s in zip(jax.tree.leaves(params), jax.tree.leaves(start))]
    return -0.5 * sum(terms, jnp.zeros(()))


def with_least_noise(gram: jax.Array, weight: jax.Array, log_sigma: jax.Array) -> jax.Array:
    """log σ of each output, where σ is no less than 0.7 times the median error √(1/(C⁻¹)ᵢᵢ) of a row left out.

    A mixture of few draws of f with noise far smaller than what f leaves open is a row of spikes, and its density that
    of the nearest. Noise of 0.7 errors beside all of the error costs 0.04 nats: ½ log 1.49 − ½ (1 − 1/1.49).
    """

    def one(log_s: jax.Array) -> jax.Array:
        root = jnp.sqrt(weight) * jnp.exp(-log_s)
        lower = factor(gram, root[:, None, None])
        half = jax.scipy.linalg.solve_triangular(lower, jnp.eye(len(lower), dtype=gram.dtype), lower=True)
        precision = jnp.square(half).sum(0) * jnp.square(root)
        error = jnp.nanmedian(jnp.where(weight > 0, precision**-0.5, jnp.nan))
        return jnp.maximum(log_s, jnp.log(SHARE * error))

    return jax.vmap(one)(log_sigma)
