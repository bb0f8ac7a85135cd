"""Cells of a table as numbers, from what a fit's table encoder learned: numbers, truth values, categories and dates.

Takes a dict of columns, a list of dicts, or a table of pandas, polars or pyarrow; needs none of them.
"""

import datetime
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from credo.errors import InputError
from credo.tables.encode.features import (
    MICROSECONDS_PER_DAY,
    TRUE_WORDS,
    bent,
    category_places,
    hands,
    no_category,
    standardised,
    text_key,
)
from credo.tables.encode.levels import GAP, Unknown, one_hot_levels, spread_values, unknown_in
from credo.tables.read.number_forms import PLAIN, read

EPOCH = datetime.datetime(1970, 1, 1)


class PortableError(InputError):
    """Rows or files that cannot be used, in one sentence."""


def as_columns(rows: Any) -> dict[str, Any] | None:
    """Rows as columns by name; None where they have no names, such as an array.

    Example:
        >>> as_columns([{"dose": 1.0, "town": "Bath"}, {"dose": 2.0}])
        {'dose': [1.0, 2.0], 'town': ['Bath', None]}
    """
    if hasattr(rows, "to_pydict"):
        rows = rows.to_pydict()
    elif not isinstance(rows, np.ndarray) and hasattr(rows, "columns"):
        rows = {str(name): rows[name].to_list() for name in rows.columns}
    if isinstance(rows, Mapping):
        found = {str(name): _plain(values) for name, values in rows.items()}
    elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        found = {name: [row.get(name) for row in rows] for name in names}
    else:
        return None
    if len({len(values) for values in found.values()}) > 1:
        raise PortableError("The columns have different lengths; give every column one cell for each row.")
    return found


def _plain(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "m":
            return seconds_of(values)
        return values if values.dtype.kind in "fiubM" else values.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise PortableError("Every column is a list of cells; for one row give [{name: cell, …}].")
    return list(values)


def seconds_of(spans: Any) -> Any:
    """Spans of time of NumPy in seconds, NaN where there is none; cells of nanoseconds would turn to plain integers.

    Example:
        >>> float(seconds_of(np.timedelta64(1500, "ms")))
        1.5
    """
    try:
        return spans / np.timedelta64(1, "s")
    except TypeError:
        raise PortableError("Months and years have no fixed length; give spans of time in days or seconds.") from None


def encode(encoder: dict[str, Any], columns: dict[str, Any], unseen: str = "error") -> np.ndarray:
    """Inputs [rows, features] as float32, as the fit saw them; a category that training did not have is an error or, by
    `unseen="zeros"`, all zeros."""
    blocks = []
    for column in encoder["columns"]:
        if column["name"] not in columns:
            raise PortableError(f"The rows have no column '{column['name']}', an input of the model.")
        blocks.append(ENCODERS[column["kind"]](column, columns[column["name"]]))
    inputs = np.concatenate(blocks, 1).astype(np.float32)
    for new in unknown_cells(encoder, inputs) if unseen == "error" else ():
        row = int(new.rows.argmax())
        if new.why == GAP:
            raise PortableError(f"Column '{new.name}' is missing in row {row + 1}, and in no training row; fill it.")
        key = text_key(columns[new.name][row])
        raise PortableError(f"Column '{new.name}' has '{key:.60}' in row {row + 1}, which no training row had.")
    return inputs


def unknown_cells(encoder: dict[str, Any], inputs: np.ndarray) -> list[Unknown]:
    """The columns with cells that are not known, from inputs that were encoded with `unseen="zeros"`."""
    found: list[Unknown] = []
    first = 0
    for column in encoder["columns"]:
        category = column["kind"] == "category"
        own = len(column["categories"]) + column["other"] if category else 1 + 2 * len(column.get("parts", ()))
        width = own + column["indicator"]
        places = range(first, first + width)
        first += width
        if not category:
            found += unknown_in(inputs, column["name"], places, spread_values(column.get("spread", ())))
            continue
        count = len(column["categories"])
        values = one_hot_levels(column.get("shares", ()), count, width)
        block = inputs[:, places.start : places.stop]
        new = None if column["other"] else no_category(block, count, column["indicator"], column["fill"])
        found += unknown_in(inputs, column["name"], places, values, new)
    return found


def missing_cell(value: Any) -> bool:
    """None, an empty text, NaN and the like."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value.strip()
    return bool(np.isnat(value)) if isinstance(value, np.datetime64 | np.timedelta64) else value != value


def _cells(column: dict[str, Any], values: Any, parse: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, with the fill in place of missing cells, and which cells were missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and parse is _number:
        found = values.astype(float)
        gone = np.isnan(found)
    else:
        gone = np.array([missing_cell(value) for value in values], bool)
        found = np.array(
            [math.nan if lost else parse(column, value, row) for row, (value, lost) in enumerate(zip(values, gone))],
            float,
        )  # fmt: skip
    _check_gaps(column, gone, bool(column.get("spread")))
    if np.isinf(found).any():
        raise PortableError(f"Column '{column['name']}' is infinite in row {int(np.isinf(found).argmax()) + 1}.")
    fill = column.get("shift", 0.0) if column["fill"] is None else column["fill"]
    return (np.where(gone, fill, found) if gone.any() else found), gone


def _check_gaps(column: dict[str, Any], gone: np.ndarray, marked: bool) -> None:
    """Raise where a cell is missing and the column has no way to say so."""
    if gone.any() and column["fill"] is None and not column["indicator"] and not marked:
        raise PortableError(f"Column '{column['name']}' is missing in row {int(gone.argmax()) + 1}; fill the cell.")


def _wrong(column: dict[str, Any], wanted: str, value: Any, row: int) -> PortableError:
    return PortableError(f"Column '{column['name']}' should hold {wanted} but has '{value!s:.60}' in row {row + 1}.")


def _number(column: dict[str, Any], value: Any, row: int) -> float:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        return float(seconds_of(value))
    form = column.get("form", PLAIN)
    try:
        if isinstance(value, str) and form != PLAIN:
            found = read(value, form)
        else:
            found = math.nan if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise _wrong(column, "numbers", value, row)
    return found


def _flag(column: dict[str, Any], value: Any, row: int) -> float:
    found = TRUE_WORDS.get(text_key(value).lower())
    if found is None:
        raise _wrong(column, "true or false", value, row)
    return found


def _day(column: dict[str, Any], value: Any, row: int) -> float:
    """Days since 1970."""
    if isinstance(value, str):
        value = _date(value, column["form"])
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / MICROSECONDS_PER_DAY
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise _wrong(column, "dates", value, row)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return ((value - EPOCH) // datetime.timedelta(microseconds=1)) / MICROSECONDS_PER_DAY


def _date(text: str, form: str | None) -> Any:
    """A date from a text in the given form, or as ISO 8601 writes it; the text itself where it is none."""
    readers: list[Any] = [] if form is None else [lambda t: datetime.datetime.strptime(t, form)]
    for reader in (*readers, datetime.datetime.fromisoformat, np.datetime64):
        try:
            return reader(text)
        except ValueError:
            continue
    return text


def encode_numeric(column: dict[str, Any], values: Any) -> np.ndarray:
    """Logarithms where the column needs them, then standardised."""
    given, gone = _cells(column, values, _number)
    return _with_indicator(column, [_standard(column, bent(given, column["end"], column["width"]))], gone)


def encode_boolean(column: dict[str, Any], values: Any) -> np.ndarray:
    """−1 and 1."""
    found, gone = _cells(column, values, _flag)
    return _with_indicator(column, [2.0 * found - 1.0], gone)


def encode_date(column: dict[str, Any], values: Any) -> np.ndarray:
    """Standardised days, and the hands of each clock."""
    found, gone = _cells(column, values, _day)
    return _with_indicator(column, [_standard(column, found), *hands(found, column["parts"])], gone)


def encode_category(column: dict[str, Any], values: Any) -> np.ndarray:
    """A one for the category of each row; rare ones share a feature where training had very many."""
    known = column["categories"]
    values = values.tolist() if isinstance(values, np.ndarray) else values
    gone = np.array([missing_cell(value) for value in values], bool)
    _check_gaps(column, gone, column.get("gaps", False))
    keys = [column["fill"] or "" if lost else text_key(value) for value, lost in zip(values, gone)]
    places = category_places(keys, known, any(isinstance(value, str) for value in values))
    out = np.zeros((len(values), len(known) + bool(column["other"])))
    for row, place in enumerate(places):
        if place >= 0 or (column["other"] and keys[row]):
            out[row, place] = 1.0  # −1 is the last feature, of all that are rare
    return _with_indicator(column, list(out.T), gone)


def _standard(column: dict[str, Any], values: np.ndarray) -> np.ndarray:
    scaled, bad = standardised(values, column["shift"], column["scale"])
    if bad.any():
        raise PortableError(f"Column '{column['name']}' has a number too far from its training rows; correct it.")
    return scaled


def _with_indicator(column: dict[str, Any], features: list[np.ndarray], gone: np.ndarray) -> np.ndarray:
    found = np.stack([*features, *([gone] if column["indicator"] else [])], 1).astype(float)
    if column["fill"] is None and not column["indicator"]:
        found[gone] = np.nan  # training had no gaps
    return found


ENCODERS = {
    "numeric": encode_numeric, "boolean": encode_boolean, "category": encode_category, "date": encode_date,
}  # fmt: skip
