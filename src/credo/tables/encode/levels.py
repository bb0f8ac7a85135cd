"""Rows with a category that training did not have, at the categories that it had (see `credo.tables.encode.unseen`).

Exported predictors take this module along: NumPy alone will do.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

LEVELS = 16
# With fewer draws than this for each level, every draw is taken at every level.
DRAWS_PER_LEVEL = 4


class UnseenCategories(NamedTuple):
    """Where a column's category is new: its name, its features with their shares in training, and a mask of rows."""

    name: str
    features: Sequence[int]
    shares: Sequence[float]
    rows: np.ndarray

    def note(self) -> str:
        """What is done about it."""
        return (
            f"Column '{self.name}' has categories that training did not have in {int(self.rows.sum())} of "
            f"{len(self.rows)} rows; there predictions are averages over the known ones, by their shares in training, "
            "and less certain."
        )


def unseen_in(
    inputs: np.ndarray, name: str, features: Sequence[int], shares: Sequence[float]
) -> list[UnseenCategories]:
    """The column where rows have none of its categories, else nothing; no shares are equal ones."""
    rows = np.asarray(inputs[:, list(features)]).sum(axis=1) == 0.0
    return (
        [UnseenCategories(name, features, shares or [1.0 / len(features)] * len(features), rows)] if rows.any() else []
    )


def repeats(count: int) -> int:
    """How often each of so many draws is taken where a category is new."""
    return 1 if count >= DRAWS_PER_LEVEL * LEVELS else LEVELS


def outputs_at_levels(
    outputs_at: Callable[[np.ndarray], np.ndarray],
    unseen: Sequence[UnseenCategories],
    inputs: np.ndarray,
    rows: np.ndarray,
    count: int,
) -> np.ndarray:
    """Outputs [draws, rows, out]: draw k at level k mod `LEVELS`, or each draw at each level where there are few.

    Args:
        outputs_at: gives the outputs [count, rows, out] of the same draws at inputs.
        unseen: the columns.
        inputs: encoded rows, all zeros where a category is new.
        rows: which rows of the table these are.
        count: draws of the posterior.
    """
    result: Any = None
    times = repeats(count)
    for level in range(LEVELS):
        version = inputs.copy()
        for number, column in enumerate(unseen):
            version[np.flatnonzero(column.rows[rows]), column.features[_levels(column, number)[level]]] = 1.0
        draws = outputs_at(version)
        if result is None:
            result = np.empty((count * times, *draws.shape[1:]), draws.dtype)
        # Both ways place k of the result has level k mod LEVELS.
        result[level::LEVELS] = draws[level::LEVELS] if times == 1 else draws
    return result


def _levels(column: UnseenCategories, number: int) -> np.ndarray:
    """`LEVELS` places among the categories in proportion to their shares, in an order that differs between columns."""
    shares = np.array(column.shares)
    ends = np.cumsum(shares / shares.sum())
    places = np.searchsorted(ends, (np.arange(LEVELS) + 0.5) / LEVELS).clip(0, len(shares) - 1)
    return np.random.default_rng(number).permutation(places)
