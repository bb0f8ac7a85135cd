"""Batches of data, and how a batch estimates sums over the whole data set."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.typing import PyTree


class Batch(NamedTuple):
    """Rows of data. Padded rows weigh 0; `num_data` is N, the number of rows of the whole data set."""

    inputs: PyTree  # an array [n, ...] or a tree of them
    targets: Any
    weight: Any  # [n]: 1, or the row's own weight, or 0 where the row is padding
    num_data: Any
    rows: Any = None  # which rows of the data these are [n]; None: all, in their order

    @property
    def row_numbers(self) -> jax.Array:
        """Which rows of the data these are [n]."""
        return jnp.arange(self.weight.shape[0], dtype=jnp.int32) if self.rows is None else self.rows

    @property
    def num_rows(self) -> jax.Array:
        """The number of rows that are not padding."""
        return (self.weight > 0).sum().astype(self.weight.dtype)

    def without(self, left_out: Any) -> "Batch":
        """All rows but those of a mask [n]: they weigh nothing, and N is the number of the others."""
        if left_out is None:
            return self
        num_left_out = (left_out & (self.weight > 0)).sum()
        return self._replace(weight=jnp.where(left_out, 0.0, self.weight), num_data=self.num_data - num_left_out)

    def total(self, per_row: jax.Array) -> jax.Array:
        """N/M Σ_m w_m v_m: the unbiased estimate of the sum over all data. The only place in credo that scales by N.

        M counts the real rows of the batch, not their weights: a ratio of weights would be biased.
        """
        weighted = jnp.where(self.weight > 0, self.weight * per_row, 0.0)
        return self.num_data / jnp.maximum(self.num_rows, 1) * weighted.sum()


def bucket(num_rows: int) -> int:
    """N rounded up to one of few sizes (at most 1/32 or 8 rows more): data sets of similar size share a program."""
    unit = max(8, 2 ** (int(num_rows - 1).bit_length() - 6))
    return max(8, -(-num_rows // unit) * unit)


def pad_rows(rows: np.ndarray, length: int) -> np.ndarray:
    """Pad to `length` by repeating the last row: a function that is finite at real rows is finite at the padding.

    Zeros are not safe: a likelihood may take the logarithm of a target, and 0 · ∞ in a gradient is NaN.
    """
    missing = length - len(rows)
    return rows if missing == 0 else np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])


def pad_weights(weight: np.ndarray, length: int) -> np.ndarray:
    """Pad to `length` with zeros: padding weighs nothing."""
    return np.concatenate([weight, np.zeros(length - len(weight), weight.dtype)])


def mix(x: jax.Array) -> jax.Array:
    """A 32-bit hash of every entry (the finaliser of MurmurHash3, public domain)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)
