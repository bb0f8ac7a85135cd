"""Which rows make up which batch: pure functions of the key and the step, so that nothing about order needs saving."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch, mix

ROUNDS = 10


class Order(NamedTuple):
    """The sizes that fix the order of batches, all traced: N rows on a grid of `height` × `width` cells, in
    `num_batches` batches per epoch."""

    num_rows: Any
    height: Any
    width: Any
    num_batches: Any


def order(num_rows: int, batch_size: int) -> Order:
    """Epochs of ⌈N/M⌉ batches whose sizes differ by at most one, so no batch is much smaller (and noisier)."""
    width = max(1, int(np.ceil(np.sqrt(num_rows))))
    sizes = (num_rows, -(-num_rows // width), width, -(-num_rows // batch_size))
    return Order(*(np.int32(s) for s in sizes))


def permute(index: jax.Array, words: jax.Array, plan: Order) -> jax.Array:
    """Entry `index` of a random permutation of 0..N−1 that is never written out.

    A Feistel network on the grid Z_height × Z_width: each round shifts one coordinate by a keyed hash of the other,
    hence is a bijection; an index beyond N is permuted again until it is below N (cycle walking; Black and Rogaway,
    2002). The hash is reduced before it is added: a sum that wraps at 2³² is not a shift of the coordinate.
    """
    height, width, num_rows = (jnp.asarray(v, jnp.uint32) for v in (plan.height, plan.width, plan.num_rows))

    def once(i: jax.Array) -> jax.Array:
        row, column = i // width, i % width
        for r in range(0, ROUNDS, 2):
            row = (row + mix(column + words[..., r, None]) % height) % height
            column = (column + mix(row ^ words[..., r + 1, None]) % width) % width
        return row * width + column

    def walk(i: jax.Array) -> jax.Array:
        return jnp.where(i >= num_rows, once(i), i)

    first = once(index.astype(jnp.uint32))
    return jax.lax.while_loop(lambda i: (i >= num_rows).any(), walk, first).astype(jnp.int32)


def random_rows(key: jax.Array, steps: jax.Array, batch_size: int, plan: Order) -> tuple[jax.Array, jax.Array]:
    """Row numbers [s, M] of the batches of these steps, and which are not padding; each epoch uses every row once."""
    epoch, position = steps // plan.num_batches, steps % plan.num_batches
    words = jax.vmap(lambda e: jax.random.bits(jax.random.fold_in(key, e), (ROUNDS,), jnp.uint32))(epoch)
    small, larger = plan.num_rows // plan.num_batches, plan.num_rows % plan.num_batches
    start = position * small + jnp.minimum(position, larger)
    length = small + (position < larger)
    offset = jnp.arange(batch_size)
    valid = offset < length[:, None]
    index = jnp.where(valid, start[:, None] + offset, 0)
    return permute(index, words, plan), valid


def sweep_rows(steps: jax.Array, batch_size: int, plan: Order) -> tuple[jax.Array, jax.Array]:
    """Row numbers [s, M] in storage order, and which are not padding."""
    rows = steps[:, None] * batch_size + jnp.arange(batch_size)
    return jnp.minimum(rows, plan.num_rows - 1), rows < plan.num_rows


def gather(data: Batch, rows: jax.Array, valid: jax.Array) -> Batch:
    """The batches of these rows; leading axes of `rows` are kept."""

    def at(x: jax.Array) -> jax.Array:
        return jnp.asarray(x).at[rows].get(mode="promise_in_bounds")  # a check of every index costs a tenth of the copy

    weight = jnp.where(valid, at(data.weight), 0.0)
    num_data = jnp.broadcast_to(data.num_data, rows.shape[:-1])
    return Batch(jax.tree.map(at, data.inputs), at(data.targets), weight, num_data, rows)
