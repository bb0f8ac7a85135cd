"""Rows that are copies of others: on both sides of a split they would tell what a model has learned by heart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

KINDS = 20  # values of some column of numbers, beyond which equal rows are no coincidence
SHARE = 0.02  # of the rows that the most frequent one may be, or KINDS rows


def unit_codes(arrays: Any) -> np.ndarray | None:
    """For every row the place of the first row that equals it, or None where no row is a copy.

    Rows of few kinds, such as three answers of yes and no, are equal by nature: copies are equal in a column of many
    numbers, too, and no row makes up much of the table.

    Args:
        arrays: [n] or [n, k], of numbers.

    Example:
        >>> unit_codes([np.array([0.1, 0.2, 0.1])]) is None
        True
        >>> unit_codes([np.append(np.arange(30.0), [3.0, 5.0])])[-2:].tolist()
        [3, 5]
    """
    columns = [np.asarray(array, np.float64).reshape(len(array), -1) for array in arrays]
    table = np.ascontiguousarray(np.concatenate(columns, axis=1)) + 0.0  # −0 is 0
    rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    _, first, codes, counts = np.unique(rows, return_index=True, return_inverse=True, return_counts=True)
    if len(first) == len(rows) or counts.max() > max(KINDS, SHARE * len(rows)):
        return None
    distinct = table[first]
    if not any(len(np.unique(column)) > KINDS for column in distinct.T):
        return None
    return first[codes.ravel()]


def copies_of(frame: pd.DataFrame, targets: Sequence[str] = ()) -> np.ndarray | None:
    """`unit_codes` of a table: every column counts, text by its words. Columns that number the rows do not.

    Args:
        frame: the table.
        targets: columns that count in any case.
    """
    columns = []
    for name, series in frame.items():
        values, counts_rows = _values(series)
        if name in targets or not counts_rows:
            columns.append(values)
    return unit_codes(columns) if columns and len(frame) else None


def _values(series: pd.Series) -> tuple[np.ndarray, bool]:
    """A column as numbers, and whether it may be a column of row names: whole numbers or words, all different."""
    import pandas as pd

    if parse.odd_cells(series):
        series = series.map(repr)  # lists are no inputs, but rows that differ in them are no copies
    plain = pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_complex_dtype(series.dtype)
    if plain and not pd.api.types.is_bool_dtype(series.dtype):
        values = series.to_numpy(np.float64, na_value=np.nan)
        named = pd.api.types.is_integer_dtype(series.dtype)
    else:
        values, named = parse.text_keys(series)[0].astype(np.float64), True
    values = np.where(np.isnan(values), np.inf, values)
    return values, named and len(np.unique(values)) == len(values)


def copies_note(codes: np.ndarray | None) -> str:
    """How many rows are copies, in a sentence; empty where none are."""
    if codes is None:
        return ""
    count = len(codes) - len(np.unique(codes))
    return (
        f"{count:,} of {len(codes):,} rows {'is a copy' if count == 1 else 'are copies'} of another: rows that are "
        "equal stay on one side wherever rows are held out."
    )


def merged(codes: np.ndarray | None, groups: np.ndarray | None) -> np.ndarray | None:
    """Units that cut neither copies nor groups: rows that share one or the other are of one unit."""
    if codes is None or groups is None:
        return codes if groups is None else groups
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    group_codes = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    size = len(codes)
    links = coo_array((np.ones(size), (codes, size + group_codes)), shape=(2 * size, 2 * size))
    return connected_components(links, directed=False)[1][codes]
