"""What forests and boosted trees choose by cross-validation, and on how many threads."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from credo.core.folds import group_folds

FOLDS = 3
FEW = 5000  # rows; with more the first fold is enough
LENGTHS = (20, 50, 100, 200)  # rounds of boosting
FEW_FOR_THREADS = 50_000


def parts(rows: int, seed: int, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows to hold out, fold by fold; nothing where there are too few. No group is cut.

    Example:
        >>> [len(held) for _, held in parts(30, 0)], len(list(parts(5, 0)))
        ([10, 10, 10], 0)
    """
    if groups is None:
        folds = np.array_split(np.random.default_rng(seed).permutation(rows), FOLDS)
    else:
        folds = group_folds(groups, FOLDS, seed)
        if len(folds) < 2:
            return
    for held in folds[: FOLDS if rows <= FEW else 1] if rows >= 4 * FOLDS else []:
        yield np.setdiff1d(np.arange(rows), held), held


def best_of(totals: np.ndarray) -> tuple[int, int] | None:
    """Where the largest of the sums of scores [I, J] is; None where nothing was scored.

    Example:
        >>> best_of(np.array([[-3.0, -1.0], [-2.0, -4.0]])), best_of(np.zeros((2, 2)))
        ((0, 1), None)
    """
    if not totals.any():
        return None
    i, j = np.unravel_index(int(np.argmax(totals)), totals.shape)
    return int(i), int(j)


def leaf_size(rows: int) -> int:
    """The fewest rows of a boosted tree's leaf."""
    return min(20, max(3, rows // 50))


def few_threads(rows: int) -> Any:
    """Threads that wait for each other over a few rows make boosting slower, a hundredfold on a busy machine."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1) if rows < FEW_FOR_THREADS else nullcontext()
