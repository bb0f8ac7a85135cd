"""Encoded inputs back in the units of the table, for axes and words that a reader understands."""

from __future__ import annotations

from typing import Any

import numpy as np

from credo.tables.encode.categories import CategoryColumn
from credo.tables.encode.columns import BooleanColumn, CodeColumn, Column, DateColumn, NumericColumn, TextColumn
from credo.tables.encode.encoder import TableEncoder

OTHER = "other"


def feature_groups(encoder: TableEncoder) -> dict[str, tuple[int, ...]]:
    """Column of the table → places of its features among the inputs.

    Args:
        encoder: the table's encoder.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "town": ["Bath", "York", "Bath"], "y": [1.0, 2.0, 3.5]})
        >>> feature_groups(TableEncoder.learn(frame, "y"))
        {'dose': (0,), 'town': (1, 2)}
    """
    groups, start = {}, 0
    for column in encoder.columns:
        stop = start + len(column.names)
        groups[column.name] = tuple(range(start, stop))
        start = stop
    return groups


def decode(column: Column, features: Any) -> np.ndarray:
    """What the cells of a column were: numbers, dates, or texts for categories and truth values. Free text, which
    features do not hold, is numbered.

    Missing cells, and categories that training did not have, are NaN, NaT or None. Numbers keep six digits, which is
    what single precision holds.

    Args:
        column: how the column was encoded.
        features: its features [n, features].

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"dose": [1.0, 2.0, 40.0], "town": ["Bath", "York", "Bath"], "y": [1.0, 2.0, 3.5]})
        >>> encoder = TableEncoder.learn(frame, "y")
        >>> inputs = encoder.inputs(frame)
        >>> decode(encoder.columns[0], inputs[:, :1]).tolist(), decode(encoder.columns[1], inputs[:, 1:]).tolist()
        ([1.0, 2.0, 40.0], ['Bath', 'York', 'Bath'])
    """
    features = np.asarray(features, np.float64)
    if isinstance(column, CategoryColumn):
        return _category(column, features)
    if isinstance(column, CodeColumn):
        return _code(column, features)
    missing = features[:, -1] > 0.5 if column.indicator else np.isnan(features[:, 0])
    if isinstance(column, TextColumn):
        return np.array([None if gap else f"text {row + 1:02d}" for row, gap in enumerate(missing)], object)
    if isinstance(column, BooleanColumn):
        values = np.where(features[:, 0] > 0, "True", "False").astype(object)
        values[missing] = None
        return values
    if isinstance(column, DateColumn):
        return _date(column, features, missing)
    if isinstance(column, NumericColumn):
        return np.where(missing, np.nan, _number(column, features[:, 0]))
    raise TypeError(f"{type(column).__name__} is no column that can be decoded")


def has_value(column: Column, features: Any) -> np.ndarray:
    """Which rows have a cell in this column that training knew [n].

    Args:
        column, features: as in `decode`.
    """
    values = decode(column, features)
    if values.dtype == object:
        return np.array([value is not None for value in values], bool)
    return ~np.isnat(values) if values.dtype.kind == "M" else ~np.isnan(values)


def _number(column: NumericColumn, scaled: np.ndarray) -> np.ndarray:
    """Undo standardisation and logarithms; digits that come from single precision are dropped."""
    values = column.shift + column.scale * scaled
    if column.width is None:
        return np.round(values, _decimals(max(abs(column.shift), column.scale)))
    t = np.copysign(1.0, column.width) * values
    values = column.end + column.width * np.where(t < 0, t, np.expm1(np.maximum(t, 0.0)))
    near = np.round(values, _decimals(max(abs(column.end), abs(column.width))))
    # Logarithms keep digits in proportion, so a number far from the end has its own last digit.
    return np.array([float(f"{value:.6g}") for value in near])


def _decimals(size: float) -> int:
    return 5 - int(np.floor(np.log10(max(size, 1e-300))))


def _category(column: CategoryColumn, features: np.ndarray) -> np.ndarray:
    labels = [*column.categories, *([OTHER] if column.other else [])]
    indicators = features[:, : len(labels)]
    values = np.array(labels, dtype=object)[indicators.argmax(1)]
    absent = ~(indicators.max(1) > 0.5)
    if column.indicator:
        absent |= features[:, -1] > 0.5
    values[absent] = None
    return values


def _code(column: CodeColumn, features: np.ndarray) -> np.ndarray:
    codes = np.round(np.where(np.isnan(features[:, 0]), column.levels, features[:, 0])).astype(int)
    valid = (codes >= 0) & (codes < len(column.categories))
    if column.indicator:
        valid &= features[:, -1] <= 0.5
    values = np.array([*column.categories, None], dtype=object)[np.where(valid, codes, -1)]
    return np.asarray(values)


def _date(column: DateColumn, features: np.ndarray, missing: np.ndarray) -> np.ndarray:
    days = column.shift + column.scale * np.where(missing, 0.0, features[:, 0])
    if "hour_of_day" not in column.parts:
        days = np.round(days)
    seconds = np.round(days * 86_400).astype("int64").astype("datetime64[s]")
    return np.where(missing, np.datetime64("NaT", "s"), seconds)
