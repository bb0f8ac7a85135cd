"""Cross-fitting: members of one fit that do not see a fold of the rows, and so can be asked about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.core.checks import whole_number
from credo.core.folds import even_folds
from credo.core.typing import PyTree
from credo.errors import InputError

Folds = int | Sequence[Any]


def left_out(folds: Folds, members: int, rows: int, seed: int, kept: np.ndarray | None = None) -> np.ndarray:
    """Which rows each member does not see [member, row]: member m leaves out fold m mod K of K folds.

    Args:
        folds: K, or the places of the rows of each fold.
        members: how many; at least K, so that every fold is left out by somebody.
        rows: rows that were given.
        seed: of the folds, where only their number is given.
        kept: which rows the fit keeps [rows], None: all.
    """
    given = even_folds(rows, whole_number(folds, "folds"), seed) if isinstance(folds, int | np.integer) else list(folds)
    if not 2 <= len(given) <= members:
        raise InputError(
            f"Every fold is left out by a member that is none of the others: {members} members take 2 to {members} "
            f"folds, got {len(given)}."
        )
    mask = np.zeros((members, rows), bool)
    for member in range(members):
        places = np.asarray(given[member % len(given)])
        if places.dtype.kind not in "iu" or len(places) == 0 or places.min() < 0 or places.max() >= rows:
            raise InputError(f"A fold is at least one place among {rows} rows, got {given[member % len(given)]!r}.")
        mask[member, places] = True
    mask = mask if kept is None else mask[:, kept]
    if mask.all(1).any():
        raise InputError("A fold has all rows: its member would have none to learn from.")
    return mask


def folds_of(mask: PyTree) -> list[tuple[np.ndarray, np.ndarray]]:
    """(members, rows) of every distinct set of rows that is left out [member, row].

    Example:
        >>> mask = np.array([[True, False], [False, True], [True, False]])
        >>> [(members.tolist(), rows.tolist()) for members, rows in folds_of(mask)]
        [([0, 2], [0]), ([1], [1])]
    """
    _, first, which = np.unique(mask, axis=0, return_index=True, return_inverse=True)
    found = [(np.flatnonzero(which.ravel() == i), np.flatnonzero(mask[place])) for i, place in enumerate(first)]
    return sorted(found, key=lambda pair: pair[0][0])
