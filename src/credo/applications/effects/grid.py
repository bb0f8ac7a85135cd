"""The values at which the effect of an input is looked at, and how common each is among the rows."""

import dataclasses
from typing import Any

import numpy as np

from credo.core.numeric import host_array
from credo.core.short import fields_in_short
from credo.errors import InputError

MOST_POINTS = 40


@dataclasses.dataclass(frozen=True)
class Grid:
    """Values of one input, or of the columns that stand for it together.

    Attributes:
        values: [points, columns].
        shares: the share of the rows that each point stands for [points]; they sum to 1.
    """

    values: np.ndarray
    shares: np.ndarray

    __repr__ = fields_in_short

    def __len__(self) -> int:
        return len(self.values)


def grid_of(columns: Any, most: int = MOST_POINTS) -> Grid:
    """The distinct values of some columns with their shares or, where there are many, as many evenly spaced quantiles.

    Points are rows that exist: several columns (a category's, a date's) keep patterns that belong together. Rows are
    ordered by the first column, then by the next.

    Args:
        columns: values of the rows, [n] or [n, columns].
        most: how many points.

    Example:
        >>> import numpy as np
        >>> grid = grid_of(np.array([3.0, 1.0, 1.0, 3.0, 3.0]))
        >>> grid.values[:, 0].tolist(), grid.shares.tolist()
        ([1.0, 3.0], [0.4, 0.6])
    """
    rows = _two_dimensional(columns)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    if len(distinct) <= most:
        return Grid(distinct, counts / len(rows))
    ordered = rows[np.lexsort(rows.T[::-1])]
    positions = (np.arange(most) + 0.5) / most * len(rows)
    # Many equal values fill several quantiles, which are then one point with their shares together.
    values, counts = np.unique(ordered[positions.astype(int)], axis=0, return_counts=True)
    return Grid(values, counts / most)


def as_grid(values: Any, width: int) -> Grid:
    """A user's grid: values [points] or [points, columns] count the same each."""
    if isinstance(values, Grid):
        grid = values
    else:
        array = _two_dimensional(values)
        grid = Grid(array, np.full(len(array), 1 / len(array)))
    if grid.values.shape[1] != width:
        raise InputError(
            f"The grid has {grid.values.shape[1]} columns, but this input has {width}: give values of shape "
            f"[points{', ' + str(width) if width > 1 else ''}]."
        )
    return grid


def _two_dimensional(values: Any) -> np.ndarray:
    array = host_array(values, "The values of a grid")
    array = np.asarray(array).astype(np.float32)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size:
        raise InputError(f"A grid has values of shape [points] or [points, columns], got {list(np.shape(values))}.")
    return array
