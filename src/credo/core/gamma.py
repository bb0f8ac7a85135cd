"""Gamma variates as straight-line code, from normals and uniforms that are drawn beforehand.

`jax.random.gamma` loops until it accepts: seconds to compile, and no draws in bulk for many steps of a chain. Here
every number makes `TRIES` proposals at once and takes the first that is accepted. A proposal fails with probability
at most 0.05, so that all fail with probability below 1e-15; then the last one is taken.
"""

from typing import Any

import jax
import jax.numpy as jnp

TRIES = 12


def log_gamma_from(normals: jax.Array, log_uniforms: jax.Array, shape: Any) -> jax.Array:
    """log G with G ~ Gamma(shape, 1), by Marsaglia and Tsang (2000), A simple method for generating gamma variables.

    With d = a − 1/3 and c = 1/√(9d), v = (1 + cz)³ is accepted if v > 0 and log u < ½z² + d − dv + d log v; then dv is
    Gamma(a). For shapes below 1, a = shape + 1 and G = dv · U^{1/shape}.

    Args:
        normals: N(0, 1) [TRIES, ...].
        log_uniforms: log U(0, 1) [TRIES + 1, ...].
        shape: the parameter of each variate, broadcast against the rest of the axes.
    """
    shape = jnp.asarray(shape, normals.dtype)
    small = shape < 1
    d = jnp.where(small, shape + 1, shape) - 1 / 3
    root = 1 + normals / jnp.sqrt(9 * d)
    log_v = 3 * jnp.log(jnp.where(root > 0, root, 1.0))
    accepted = (root > 0) & (log_uniforms[:TRIES] < 0.5 * normals**2 + d * (1 - jnp.exp(log_v) + log_v))
    first = jnp.where(accepted.any(0), jnp.argmax(accepted, axis=0), TRIES - 1)
    log_v_first = jnp.take_along_axis(log_v, first[None], axis=0)[0]
    return jnp.log(d) + log_v_first + jnp.where(small, log_uniforms[TRIES] / shape, 0.0)


def open_uniform(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """(k + ½) ε for whole k, uniform on (0, 1) and exact in this type, whose ε is 2⁻²³ in single precision.

    `jax.random.uniform` draws k ε. Its 0 stands for all of (0, ε): raised to the smallest positive number it would have
    a logarithm of −87 once in 2²³ draws, and what is made of it would be absurd.
    """
    return jax.random.uniform(key, shape, dtype) + 0.5 * float(jnp.finfo(dtype).eps)


def log_gamma(key: jax.Array, shape: Any, size: tuple[int, ...] | None = None) -> jax.Array:
    """log G for independent G ~ Gamma(shape, 1), of this size."""
    size = jnp.shape(shape) if size is None else size
    key_normal, key_uniform = jax.random.split(key)
    normals = jax.random.normal(key_normal, (TRIES, *size))
    uniforms = open_uniform(key_uniform, (TRIES + 1, *size), normals.dtype)
    return log_gamma_from(normals, jnp.log(uniforms), shape)
