"""Cross-fitting: members of one fit that do not see a fold of the rows, and so can be asked about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.core.checks import whole_number
from credo.core.folds import even_folds
from credo.core.typing import PyTree
from credo.errors import InputError

Folds = int | Sequence[Any]


def left_out(folds: Folds, members: int, rows: int, seed: int, keep: np.ndarray | None = None) -> np.ndarray:
    """Which rows each member does not see [member, row]: member m leaves out fold m mod K of K folds.

    Args:
        folds: K, or the places of the rows of each fold.
        members: how many; at least K, so that every fold is left out by somebody.
        rows: rows that were given.
        seed: of the folds, where only their number is given.
        keep: which rows the fit keeps [rows], None: all.
    """
    fold_rows = (
        even_folds(rows, whole_number(folds, "folds"), seed) if isinstance(folds, int | np.integer) else list(folds)
    )
    if not 2 <= len(fold_rows) <= members:
        raise InputError(
            f"Every fold is left out by a member that is none of the others: {members} members take 2 to {members} "
            f"folds, got {len(fold_rows)}."
        )
    mask = np.zeros((members, rows), bool)
    for member in range(members):
        fold = fold_rows[member % len(fold_rows)]
        indices = np.asarray(fold)
        if indices.dtype.kind not in "iu" or len(indices) == 0 or indices.min() < 0 or indices.max() >= rows:
            raise InputError(f"A fold is at least one place among {rows} rows, got {fold!r}.")
        mask[member, indices] = True
    mask = mask if keep is None else mask[:, keep]
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
    pairs = [(np.flatnonzero(which.ravel() == i), np.flatnonzero(mask[row])) for i, row in enumerate(first)]
    return sorted(pairs, key=lambda pair: pair[0][0])
