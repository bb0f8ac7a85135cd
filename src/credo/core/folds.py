"""Folds of rows, by chance or of whole groups."""

from typing import Any

import numpy as np


def even_folds(rows: int, count: int, seed: int, units: Any = None) -> list[np.ndarray]:
    """Places of the rows of each fold, by chance and of sizes that differ by one at most; units are not cut.

    Args:
        rows: how many.
        count: folds.
        seed: of the order.
        units: a number for each row; rows of one number stay together.

    Example:
        >>> [len(rows) for rows in even_folds(10, 4, seed=0)]
        [3, 3, 2, 2]
    """
    if units is not None:
        return group_folds(units, count, seed)
    order = np.random.default_rng(seed).permutation(rows)
    return [np.sort(order[first::count]) for first in range(count)]


def group_folds(groups: Any, folds: int, seed: int) -> list[np.ndarray]:
    """Places of the rows of each fold, where no group is cut: the largest group first, each to the fold that has the
    fewest rows. There are as many folds as groups where these are fewer.

    Args:
        groups: the group of each row.
        folds: how many.
        seed: of the order among groups of one size.

    Example:
        >>> [rows.tolist() for rows in group_folds(["a", "b", "a", "c"], 2, 0)]
        [[0, 2], [1, 3]]
    """
    _, codes, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    full, home = np.zeros(min(folds, len(sizes)), int), np.zeros(len(sizes), int)
    for group in order:
        home[group] = full.argmin()
        full[home[group]] += sizes[group]
    return [np.flatnonzero(home[codes] == fold) for fold in range(len(full))]
