"""Random-walk proposals of nodes that learn each node's scale and covariance while the chain warms up."""

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct

TARGET = 0.3  # acceptance: a compromise between 0.44 in one dimension and 0.234 in many
MEMORY = 0.98  # of a node's mean and covariance
EVERY = 20  # sweeps between new roots


@struct
class Walk:
    """γ̃_j = γ_j + e^{s_j} R_j z: the scale s_j follows the acceptance and R_j R_j' a node's covariance so far.

    Haario, Saksman and Tamminen (2001), An adaptive Metropolis algorithm. It is frozen once the warm-up is over.
    """

    log_scale: jax.Array = leaf()  # [nodes]
    root: jax.Array = leaf()  # [nodes, dims, dims]
    mean: jax.Array = leaf()  # [nodes, dims]
    covariance: jax.Array = leaf()  # [nodes, dims, dims]
    count: jax.Array = leaf()


def start_walk(gamma: jax.Array) -> Walk:
    """A walk before any adaptation, with equal steps in every direction."""
    nodes, dims = gamma.shape
    eye = jnp.broadcast_to(jnp.eye(dims, dtype=gamma.dtype), (nodes, dims, dims))
    scale = jnp.zeros(nodes, gamma.dtype) + jnp.log(2.4 / jnp.sqrt(dims))
    return Walk(scale, 0.25 * eye, gamma, 0.0625 * eye, jnp.zeros((), jnp.int32))


def propose(walk: Walk, gamma: jax.Array, normals: jax.Array) -> jax.Array:
    """γ̃ of all nodes [nodes, dims]."""
    return gamma + jnp.exp(walk.log_scale)[:, None] * (walk.root @ normals[..., None])[..., 0]


def learn(walk: Walk, gamma: jax.Array, accepted: jax.Array, walked: jax.Array, warmup: int) -> Walk:
    """The walk after one sweep of the warm-up; afterwards it stays as it is.

    Args:
        accepted, walked: of each node, 1 where the proposal was taken, and where it was one of this walk.
    """
    count = walk.count + 1
    rate = walked * jnp.maximum(2.0 * count**-0.6, 0.02)
    log_scale = walk.log_scale + rate * (accepted - TARGET)
    off = gamma - walk.mean
    mean = walk.mean + (1 - MEMORY) * off
    covariance = MEMORY * (walk.covariance + (1 - MEMORY) * off[:, :, None] * off[:, None, :])
    dims = gamma.shape[1]
    eye = jnp.eye(dims, dtype=gamma.dtype)
    floor = 1e-4 * jnp.trace(covariance, axis1=1, axis2=2)[:, None, None] / dims + 1e-8
    root = jax.lax.cond(count % EVERY == 0, lambda: jnp.linalg.cholesky(covariance + floor * eye), lambda: walk.root)
    learned = Walk(log_scale, root, mean, covariance, count)
    warming = walk.count < warmup
    return jax.tree.map(lambda new, old: jnp.where(warming, new, old), learned, walk)
