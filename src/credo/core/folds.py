"""Folds of rows, at random or by group."""

from typing import Any

import numpy as np


def even_folds(rows: int, count: int, seed: int, units: Any = None) -> list[np.ndarray]:
    """Row indices of each fold, at random; sizes differ by one at most, and units stay together.

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
    """Row indices of each fold, with groups kept together: largest first, each goes to the fold with the fewest rows.

    There are as many folds as groups where these are fewer.

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
    fold_sizes, fold_of_group = np.zeros(min(folds, len(sizes)), int), np.zeros(len(sizes), int)
    for group in order:
        fold_of_group[group] = fold_sizes.argmin()
        fold_sizes[fold_of_group[group]] += sizes[group]
    return [np.flatnonzero(fold_of_group[codes] == fold) for fold in range(len(fold_sizes))]
