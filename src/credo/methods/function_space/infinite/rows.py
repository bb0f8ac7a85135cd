"""The rows that a process is conditioned on, and those of them whose evidence is maximised."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct

ALIKE = 1e-12  # difference of two sums of the same numbers in another order, relative


@struct
class TrainingRows:
    """Inputs [n, d], targets and weights of rows, in double precision; a weight of 0 is no row."""

    inputs: jax.Array = leaf()
    targets: jax.Array = leaf()
    weight: jax.Array = leaf()

    def at(self, index: jax.Array) -> "TrainingRows":
        """Some of the rows."""
        return jax.tree.map(lambda x: x[index], self)


def searched(key: jax.Array, rows: TrainingRows, most: int | None) -> TrainingRows:
    """`most` random distinct rows, or all of them.

    A copy of another row, target included, says that there is no noise, so it weighs 0. Such rows, and those of weight
    0, come in only where there are no others.
    """
    copy = copies(jax.random.fold_in(key, 1), rows.inputs, rows.targets, rows.weight > 0)
    distinct = dataclasses.replace(rows, weight=jnp.where(copy, 0.0, rows.weight))
    lots = jnp.where(distinct.weight > 0, jax.random.uniform(key, copy.shape), 2.0)
    return distinct if most is None else distinct.at(jnp.sort(jnp.argsort(lots)[:most]))


def copies(key: jax.Array, *arrays: Any) -> jax.Array:
    """Which rows [n] are equal to one before them, in all arrays together: by one random sum of each row's numbers."""
    columns = jnp.concatenate([jnp.asarray(x, jnp.result_type(float)).reshape(len(x), -1) for x in arrays], 1)
    columns = columns / jnp.maximum(jnp.abs(columns).max(0), 1e-300)
    sums = columns @ jax.random.normal(key, columns.shape[1:], columns.dtype)
    order = jnp.argsort(sums, stable=True)
    near = jnp.abs(jnp.diff(sums[order])) <= ALIKE * columns.shape[1]
    return jnp.zeros(len(sums), bool).at[order].set(jnp.concatenate([jnp.zeros(1, bool), near]))
