"""Rows of which a cell is not known, at values that training had (see `credo.tables.encode.unseen`).

Exported predictors take this module along: NumPy alone will do.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

LEVELS = 16
# With fewer draws than this for each level, every draw is taken at every level.
DRAWS_PER_LEVEL = 4
NEW = "has categories that training did not have"
GAP = "is missing where training had no gaps"


class Unknown(NamedTuple):
    """Where a column's cell is not known: its name, the places of its features, what these are at `LEVELS` values that
    stand for training, a mask of rows, and why."""

    name: str
    features: Sequence[int]
    values: np.ndarray
    rows: np.ndarray
    why: str = NEW

    def note(self) -> str:
        """What is done about it."""
        cells = "categories" if self.why == NEW else "values"
        return (
            f"Column '{self.name}' {self.why} in {int(self.rows.sum())} of {len(self.rows)} rows; there predictions "
            f"are averages over the known {cells}, by their shares in training, and less certain."
        )


def unknown_in(
    inputs: np.ndarray, name: str, features: Sequence[int], values: np.ndarray | None, new: np.ndarray | None = None
) -> list[Unknown]:
    """The column where rows have a gap that training did not have (NaN) or, by `new`, a new category; else nothing."""
    if values is None:
        return []
    gaps = np.isnan(inputs[:, features[0]])
    masks = ((NEW, np.zeros(len(inputs), bool) if new is None else new & ~gaps), (GAP, gaps))
    return [Unknown(name, features, values, rows, why) for why, rows in masks if rows.any()]


def stratified_levels(shares: Sequence[float], count: int) -> np.ndarray:
    """`LEVELS` places among so many categories in proportion to their shares; no shares are equal ones."""
    weights = np.array(shares if len(shares) else [1.0] * count, np.float64)
    ends = np.cumsum(weights / weights.sum())
    return np.searchsorted(ends, (np.arange(LEVELS) + 0.5) / LEVELS).clip(0, count - 1)


def one_hot_levels(shares: Sequence[float], count: int, width: int) -> np.ndarray:
    """The features [LEVELS, width] of these categories, of which each has its own."""
    values = np.zeros((LEVELS, width), np.float32)
    values[np.arange(LEVELS), stratified_levels(shares, count)] = 1.0
    return values


def code_levels(typical: Sequence[int], width: int) -> np.ndarray:
    """The features [LEVELS, width] of these codes, without an indicator."""
    values = np.zeros((LEVELS, width), np.float32)
    values[:, 0] = typical
    return values


def spread_values(spread: Sequence[float]) -> np.ndarray | None:
    """The features [LEVELS, width] that a column keeps in one row; None where it keeps none."""
    return np.asarray(spread, np.float32).reshape(LEVELS, -1) if len(spread) else None


def without_gaps(inputs: np.ndarray, unknown: Sequence[Unknown]) -> np.ndarray:
    """Inputs with the middle one of training's values in place of every gap, for what cannot average."""
    gaps = [column for column in unknown if column.why == GAP]
    if not gaps:
        return inputs
    inputs = inputs.copy()
    for column in gaps:
        inputs[np.ix_(np.flatnonzero(column.rows), np.asarray(column.features))] = column.values[LEVELS // 2]
    return inputs


def repeats(count: int) -> int:
    """How often each of so many draws is taken where a cell is not known."""
    return 1 if count >= DRAWS_PER_LEVEL * LEVELS else LEVELS


def outputs_at_levels(
    outputs_at: Callable[[np.ndarray], np.ndarray],
    unknown: Sequence[Unknown],
    inputs: np.ndarray,
    rows: np.ndarray,
    count: int,
) -> np.ndarray:
    """Outputs [draws, rows, out]: draw k at level k mod `LEVELS`, or each draw at each level where there are few.

    Args:
        outputs_at: gives the outputs [count, rows, out] of the same draws at inputs.
        unknown: the columns.
        inputs: encoded rows.
        rows: which rows of the table these are.
        count: draws of the posterior.
    """
    result: Any = None
    times = repeats(count)
    # Levels come in an order that differs between columns, so that these are independent.
    values = [np.random.default_rng(number).permutation(column.values) for number, column in enumerate(unknown)]
    for level in range(LEVELS):
        version = inputs.copy()
        for column, column_values in zip(unknown, values):
            version[np.ix_(np.flatnonzero(column.rows[rows]), np.asarray(column.features))] = column_values[level]
        draws = outputs_at(version)
        if result is None:
            result = np.empty((count * times, *draws.shape[1:]), draws.dtype)
        # Both ways place k of the result has level k mod LEVELS.
        result[level::LEVELS] = draws[level::LEVELS] if times == 1 else draws
    return result
