"""The rows a fit learns from: weighted, without repeats, and on a scale of one."""

from typing import Any, NamedTuple

import numpy as np

from credo.errors import InputError
from credo.tables.encode.weighted import mean_and_std

MERGE_CELLS = 1_000_000  # larger tables are left in their order: they are learned in random batches anyway


class Standard(NamedTuple):
    """Columns as shift + scale · z with z of mean 0 and standard deviation 1, in float64.

    Example:
        >>> import numpy as np
        >>> Standard.learn(np.array([[1.0, 5.0], [3.0, 5.0]])).scale.tolist()
        [1.0, 1.0]
    """

    shift: np.ndarray
    scale: np.ndarray

    @staticmethod
    def learn(values: np.ndarray, weight: np.ndarray | None = None) -> "Standard":
        """Mean and standard deviation of every column [n, k]; a column that never varies is only shifted."""
        pairs = np.array([mean_and_std(column, weight) for column in values.T])
        return Standard(pairs[:, 0], np.where(pairs[:, 1] > 0, pairs[:, 1], 1.0))

    @staticmethod
    def identity(columns: int) -> "Standard":
        """Nothing is moved."""
        return Standard(np.zeros(columns), np.ones(columns))

    def apply(self, values: np.ndarray) -> np.ndarray:
        """z as float32."""
        return ((values - self.shift) / self.scale).astype(np.float32)


def drop_unweighted(inputs: Any, targets: np.ndarray, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """A row of weight 0 counts as one that is not there."""
    positive = weight > 0
    if not positive.any():
        raise InputError("Every sample_weight is 0, so there are no rows to learn from.")
    return (inputs, targets, weight) if positive.all() else (inputs[positive], targets[positive], weight[positive])


def merge_repeats(
    inputs: np.ndarray, targets: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal rows as one row with their total weight, in sorted order.

    The likelihood depends on neither the order of rows nor on how repeats are written. Floating-point sums do, and
    training magnifies their last digit; in this one form, equal data gives equal fits.
    """
    table = np.column_stack([inputs, targets])
    if table.size > MERGE_CELLS:
        return inputs, targets, weight
    order = np.lexsort(table.T[::-1])
    table = table[order]
    first = np.append(True, (table[1:] != table[:-1]).any(axis=1))
    rows, total = order[first], np.add.reduceat(weight[order], np.flatnonzero(first))
    return inputs[rows], targets[rows], total
