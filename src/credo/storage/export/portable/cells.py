"""Cells of a table as numbers, by a fit's table encoder: numbers, truth values, categories, dates and texts.

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
    beyond,
    category_places,
    hands,
    no_category,
    standardised,
    text_key,
)
from credo.tables.encode.hashed_words import word_features
from credo.tables.encode.levels import GAP, Unknown, code_levels, one_hot_levels, spread_values, unknown_in
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
        columns = {str(name): _plain(values) for name, values in rows.items()}
    elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
    else:
        return None
    if len({len(values) for values in columns.values()}) > 1:
        raise PortableError("The columns have different lengths; give every column one cell for each row.")
    return columns


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
    """The columns with unknown cells, from inputs that were encoded with `unseen="zeros"`."""
    unknown: list[Unknown] = []
    first = 0
    for column in encoder["columns"]:
        category = column["kind"] == "category"
        features = len(column["categories"]) + column["other"] if category else 1 + 2 * len(column.get("parts", ()))
        width = len(column.get("rarity", range(features))) + column["indicator"]
        indices = range(first, first + width)
        first += width
        if column["kind"] == "codes":
            block, levels = inputs[:, indices.start : indices.stop], len(column["categories"]) + column["gap"]
            values = code_levels(column["typical"], width)
            unknown += unknown_in(inputs, column["name"], indices, values, beyond(block, levels))
            continue
        if not category:
            unknown += unknown_in(inputs, column["name"], indices, spread_values(column.get("spread", ())))
            continue
        count = len(column["categories"])
        values = one_hot_levels(column.get("shares", ()), count, width)
        block = inputs[:, indices.start : indices.stop]
        new_category = None if column["other"] else no_category(block, count, column["indicator"], column["fill"])
        unknown += unknown_in(inputs, column["name"], indices, values, new_category)
    return unknown


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
        numbers = values.astype(float)
        missing = np.isnan(numbers)
    else:
        missing = np.array([missing_cell(value) for value in values], bool)
        numbers = np.array(
            [math.nan if gap else parse(column, value, row) for row, (value, gap) in enumerate(zip(values, missing))],
            float,
        )  # fmt: skip
    _check_gaps(column, missing, bool(column.get("spread")))
    if np.isinf(numbers).any():
        raise PortableError(f"Column '{column['name']}' is infinite in row {int(np.isinf(numbers).argmax()) + 1}.")
    fill = column.get("shift", 0.0) if column["fill"] is None else column["fill"]
    return (np.where(missing, fill, numbers) if missing.any() else numbers), missing


def _check_gaps(column: dict[str, Any], missing: np.ndarray, has_levels: bool) -> None:
    """Raise where a cell is missing and the column cannot encode that."""
    if missing.any() and column["fill"] is None and not column["indicator"] and not has_levels:
        raise PortableError(f"Column '{column['name']}' is missing in row {int(missing.argmax()) + 1}; fill the cell.")


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
            number = read(value, form)
        else:
            number = math.nan if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise _wrong(column, "numbers", value, row)
    return number


def _flag(column: dict[str, Any], value: Any, row: int) -> float:
    flag = TRUE_WORDS.get(text_key(value).lower())
    if flag is None:
        raise _wrong(column, "true or false", value, row)
    return flag


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
    """A date from a text in this form or in ISO 8601; the text itself where it is none."""
    readers: list[Any] = [] if form is None else [lambda t: datetime.datetime.strptime(t, form)]
    for reader in (*readers, datetime.datetime.fromisoformat, np.datetime64):
        try:
            return reader(text)
        except ValueError:
            continue
    return text


def encode_numeric(column: dict[str, Any], values: Any) -> np.ndarray:
    """Logarithms where the column needs them, then standardised."""
    numbers, missing = _cells(column, values, _number)
    return _with_indicator(column, [_standard(column, bent(numbers, column["end"], column["width"]))], missing)


def encode_boolean(column: dict[str, Any], values: Any) -> np.ndarray:
    """−1 and 1."""
    flags, missing = _cells(column, values, _flag)
    return _with_indicator(column, [2.0 * flags - 1.0], missing)


def encode_date(column: dict[str, Any], values: Any) -> np.ndarray:
    """Standardised days, and the hands of each clock."""
    days, missing = _cells(column, values, _day)
    return _with_indicator(column, [_standard(column, days), *hands(days, column["parts"])], missing)


def encode_category(column: dict[str, Any], values: Any) -> np.ndarray:
    """A one for the category of each row; rare ones share a feature where training had very many."""
    categories = column["categories"]
    values = values.tolist() if isinstance(values, np.ndarray) else values
    missing = np.array([missing_cell(value) for value in values], bool)
    _check_gaps(column, missing, column.get("gaps", False))
    keys = [column["fill"] or "" if gap else text_key(value) for value, gap in zip(values, missing)]
    indices = category_places(keys, categories, any(isinstance(value, str) for value in values))
    out = np.zeros((len(values), len(categories) + bool(column["other"])))
    for row, index in enumerate(indices):
        if index >= 0 or (column["other"] and keys[row]):
            out[row, index] = 1.0  # −1 is the last feature, of all that are rare
    return _with_indicator(column, list(out.T), missing)


def encode_codes(column: dict[str, Any], values: Any) -> np.ndarray:
    """The code of each row's category; a gap may have one of its own, and what training did not have has the last."""
    known = column["categories"]
    values = values.tolist() if isinstance(values, np.ndarray) else values
    gone = np.array([missing_cell(value) for value in values], bool)
    _check_gaps(column, gone, column.get("gaps", False) or column["gap"])
    keys = [column["fill"] or "" if lost else text_key(value) for value, lost in zip(values, gone)]
    places = np.array(category_places(keys, known, any(isinstance(value, str) for value in values)), float)
    levels = len(known) + column["gap"]
    places[places < 0] = levels
    if column["gap"]:
        places[gone] = len(known)
    return _with_indicator(column, [places], gone & (not column["gap"]))


def encode_text(column: dict[str, Any], values: Any) -> np.ndarray:
    """Hashed words."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    missing = np.array([missing_cell(value) for value in values], bool)
    _check_gaps(column, missing, bool(column["spread"]))
    texts = ["" if gap else text_key(value) for value, gap in zip(values, missing)]
    return _with_indicator(column, list(word_features(texts, column["rarity"]).T), missing)


def _standard(column: dict[str, Any], values: np.ndarray) -> np.ndarray:
    scaled, bad = standardised(values, column["shift"], column["scale"])
    if bad.any():
        raise PortableError(f"Column '{column['name']}' has a number too far from its training rows; correct it.")
    return scaled


def _with_indicator(column: dict[str, Any], features: list[np.ndarray], missing: np.ndarray) -> np.ndarray:
    block = np.stack([*features, *([missing] if column["indicator"] else [])], 1).astype(float)
    if column["fill"] is None and not column["indicator"]:
        block[missing] = np.nan  # training had no gaps
    return block


ENCODERS = {
    "numeric": encode_numeric, "boolean": encode_boolean, "category": encode_category, "codes": encode_codes,
    "date": encode_date, "text": encode_text,
}  # fmt: skip
