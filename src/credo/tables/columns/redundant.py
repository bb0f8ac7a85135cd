"""Columns that say nothing of their own: numbers of rows, and copies of other columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

LEAST_ROWS = 20
SPARSE = 2.0  # whole numbers that number rows lie at most this much apart on average: some rows are held out
FAR = 4.0  # standard errors at which a target depends on its place
SAMPLE = 2000  # rows on which copies are looked for before all rows are asked
SAME = 1e-5  # of standard deviations


def numbers_rows(series: pd.Series, targets: Sequence[np.ndarray]) -> bool:
    """Are these distinct whole numbers without large gaps, on which no target depends?

    A time index is numbered as rows are; it is told from them by targets that follow its order.

    Args:
        series: the training rows.
        targets: numbers or codes of classes [n] of these rows.

    Example:
        >>> import pandas as pd
        >>> noise = np.random.default_rng(0).normal(size=99)
        >>> numbers_rows(pd.Series(range(99)), [noise]), numbers_rows(pd.Series(range(99)), [noise.cumsum()])
        (True, False)
    """
    import pandas as pd

    if len(series) < LEAST_ROWS or not pd.api.types.is_integer_dtype(series.dtype) or series.hasnans:
        return False
    values = series.to_numpy(np.int64)
    if int(values.max()) - int(values.min()) >= SPARSE * len(values) or len(np.unique(values)) < len(values):
        return False
    order = np.argsort(values)
    return not any(_follows(column) for target in targets for column in _columns(target[order]))


def _columns(target: np.ndarray) -> list[np.ndarray]:
    """A target as ranks, or as one indicator for each of a few classes."""
    kinds, codes = np.unique(target, return_inverse=True)
    if len(kinds) <= LEAST_ROWS:
        return [(codes == i).astype(float) for i in range(len(kinds))]
    return [codes.astype(float)]


def _follows(ordered: np.ndarray) -> bool:
    """Does each number resemble the one before it, or rise or fall with its place, more than chance would have it?"""
    centred, size = ordered - ordered.mean(), len(ordered)
    power = float(centred @ centred)
    if power == 0.0:
        return False
    position = np.arange(size) - (size - 1) / 2
    serial = float(centred[1:] @ centred[:-1]) / power
    trend = float(centred @ position) / (power * float(position @ position)) ** 0.5
    return max(abs(serial), abs(trend)) * size**0.5 > FAR


def copies(columns: Sequence[Any], frame: pd.DataFrame, keep: np.ndarray) -> dict[str, str]:
    """Column → an earlier column that says the same: equal values, equal ones on another scale, or categories under
    other names.

    Args:
        columns: the column encoders.
        frame: the table.
        keep: the training rows.

    Example:
        >>> import pandas as pd
        >>> from credo.tables.encode.columns import learn_column
        >>> frame = pd.DataFrame({"km": [1.0, 2.0, 4.0], "mile": [0.62, 1.24, 2.48], "y": [1.0, 0.0, 1.0]})
        >>> copies([learn_column("numeric", frame[name], None, "error") for name in frame], frame, np.ones(3, bool))
        {'mile': 'km'}
    """
    rows = np.flatnonzero(keep)
    few = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(int)]
    earlier: dict[Any, list[Any]] = {}
    originals: dict[str, str] = {}
    for column in columns:
        sample = _meaning(column, frame[column.name].iloc[few])
        keys = _keys(column, sample)
        for other, other_sample in (pair for key in keys for pair in earlier.get(key, ())):
            if _same(sample, other_sample) and (len(rows) == len(few) or _same_everywhere(column, other, frame, rows)):
                originals[column.name] = other.name
                break
        else:
            earlier.setdefault(keys[0], []).append((column, sample))
    return originals


def _keys(column: Any, sample: np.ndarray) -> list[Any]:
    """Where a column lies among those that were seen; its copies lie there or beside it."""
    if sample.dtype.kind == "i":
        return [sample.tobytes()]
    near = round(100 * float(sample[0, 0]))
    return [(column.kind, sample.shape, near + step) for step in (0, -1, 1)]


def _same_everywhere(column: Any, other: Any, frame: pd.DataFrame, rows: np.ndarray) -> bool:
    return _same(*(_meaning(each, frame[each.name].iloc[rows]) for each in (column, other)))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b) if a.dtype.kind == "i" else np.allclose(a, b, rtol=SAME, atol=SAME))


def _meaning(column: Any, series: pd.Series) -> np.ndarray:
    """What cells say, whatever they are called: codes in order of appearance, or features whose first one begins above
    0."""
    if column.kind not in ("numeric", "boolean", "date"):
        return parse.text_keys(series)[0].astype(np.int64)
    out = np.empty((len(series), len(column.names)), np.float32)
    column.encode(series, out, unseen="zeros")
    first = out[:, 0]
    start = first[np.abs(first) > SAME][:1]
    if len(start) and start[0] < 0 and column.kind != "date":
        out[:, 0] = -first
    return out
