"""Counts and Student's t, drawn without loops that reject."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.gamma import open_uniform


def poisson_sample(key: jax.Array, rate: jax.Array) -> jax.Array:
    """Counts with the given rates, as floats; above 10⁶ a rounded normal, since JAX counts in int32."""
    large = rate > 1e6
    exact, normal = jax.random.split(key)
    counts = jax.random.poisson(exact, jnp.where(large, 0, rate)).astype(rate.dtype)
    rounded = jnp.round(rate + jnp.sqrt(rate) * jax.random.normal(normal, rate.shape, rate.dtype))
    return jnp.where(large, rounded, counts)


def student_t_sample(key: jax.Array, df: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> jax.Array:
    """√(ν (U^(−2/ν) − 1)) cos 2πV with U, V uniform: Student's t with ν degrees of freedom, without rejection.

    Bailey (1994), Polar generation of random variates with the t-distribution. JAX divides by draws from a gamma, whose
    loop takes long to compile and to run.
    """
    radius, angle = jax.random.split(key)
    u = open_uniform(radius, shape, dtype)
    turn = jax.random.uniform(angle, shape, dtype)
    return jnp.sqrt(df * jnp.expm1(-2 / df * jnp.log(u))) * jnp.cos(2 * jnp.pi * turn)
