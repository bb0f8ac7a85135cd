"""Standard normals in bulk, for the noise of a step."""

import math
from typing import Any

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np

from credo.core.typing import PyTree

THREEFRY = getattr(jax.extend.random, "threefry_2x32", None)  # not part of JAX's stable interface
LOWEST = np.nextafter(np.float32(-1), np.float32(0))


def normal(key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> jax.Array:
    """N(0, 1) numbers of this shape, √2 erf⁻¹(u) with u uniform on (−1, 1) in steps of 2⁻²².

    `jax.random.normal` computes one block of the threefry cipher for each number, so that parts of an array can be
    made on different devices, and throws half of the block away. Here both words are used: the cipher is most of the
    time of a Langevin step. Other types and other kinds of keys go to JAX.
    """
    if THREEFRY is None or dtype != jnp.float32 or str(jax.random.key_impl(key)) != "threefry2x32":
        return jax.random.normal(key, shape, dtype)
    count = math.prod(shape)
    words = THREEFRY(jax.random.key_data(key), jax.lax.iota(jnp.uint32, count + count % 2))[:count]
    # 23 random bits behind the exponent of 1: a number in [1, 2).
    share = jax.lax.bitcast_convert_type((words >> 9) | np.uint32(0x3F800000), jnp.float32) - 1.0
    uniform = jnp.maximum(LOWEST, share * (1 - LOWEST) + LOWEST)
    return (math.sqrt(2) * jax.lax.erf_inv(uniform)).reshape(shape)


def normals(key: jax.Array, like: PyTree, num: int) -> PyTree:
    """`num` standard normal draws for every number of a tree: leaves [num, ...]."""
    leaves, treedef = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves)) if len(leaves) > 1 else [key]
    draws = [jax.random.normal(k, (num, *x.shape), x.dtype) for k, x in zip(keys, leaves)]
    return jax.tree.unflatten(treedef, draws)
