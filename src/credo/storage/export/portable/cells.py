"""Cells of a table as numbers, from what a fit's table encoder learned: numbers, truth values, categories and dates.

Takes a dict of columns, a list of dicts, or a table of pandas, polars or pyarrow; needs none of them.
"""

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from credo.errors import InputError

DAY = 86_400_000_000  # microseconds
TRUTH = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
CLOCKS = {"day_of_year": 365.2425, "day_of_week": 7.0, "hour_of_day": 1.0}  # periods in days
UNIT = re.compile(
    r"(?P<sign>[+\-−]?)\s*(?P<before>[$€£¥₹%]?)\s*(?P<inner>[+\-−]?)"
    r"(?P<number>[\d.,'’\s]*\d[.,]?)\s*(?P<after>[$€£¥₹%]?)"
)
SPACED = r"\d{1,3}(?:['’\s]\d{3})+|\d+"
SHAPES = {
    "dot": re.compile(rf"(?:\d{{1,3}}(?:,\d{{3}})+|{SPACED})?(?:\.\d*)?"),
    "comma": re.compile(rf"(?:\d{{1,3}}(?:\.\d{{3}})+|{SPACED})?(?:,\d*)?"),
}
GROUPS = re.compile(r"['’\s]")
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


def encode(encoder: dict[str, Any], columns: dict[str, Any]) -> np.ndarray:
    """Inputs [rows, features] as float32, as the fit saw them."""
    blocks = []
    for column in encoder["columns"]:
        if column["name"] not in columns:
            raise PortableError(f"The rows have no column '{column['name']}', an input of the model.")
        blocks.append(ENCODERS[column["kind"]](column, columns[column["name"]]))
    return np.concatenate(blocks, 1).astype(np.float32)


def missing_cell(value: Any) -> bool:
    """None, an empty text, NaN and the like."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value.strip()
    return bool(np.isnat(value)) if isinstance(value, np.datetime64 | np.timedelta64) else value != value


def _cells(column: dict[str, Any], values: Any, read: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, with the fill in place of missing cells, and which cells were missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and read is _number:
        found = values.astype(float)
        gone = np.isnan(found)
    else:
        gone = np.array([missing_cell(value) for value in values], bool)
        found = np.array(
            [math.nan if lost else read(column, value, row) for row, (value, lost) in enumerate(zip(values, gone))],
            float,
        )  # fmt: skip
    if gone.any() and column["fill"] is None:
        raise PortableError(f"Column '{column['name']}' is missing in row {int(gone.argmax()) + 1}; fill the cell.")
    if np.isinf(found).any():
        raise PortableError(f"Column '{column['name']}' is infinite in row {int(np.isinf(found).argmax()) + 1}.")
    return (np.where(gone, column["fill"], found) if gone.any() else found), gone


def _wrong(column: dict[str, Any], wanted: str, value: Any, row: int) -> PortableError:
    return PortableError(f"Column '{column['name']}' should hold {wanted} but has '{value!s:.60}' in row {row + 1}.")


def _number(column: dict[str, Any], value: Any, row: int) -> float:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        return float(seconds_of(value))
    form = column.get("form", "plain")
    try:
        if isinstance(value, str) and form != "plain":
            found = _written(value, form)
        else:
            found = math.nan if isinstance(value, str) and "_" in value else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise _wrong(column, "numbers", value, row)
    return found


def _written(text: str, form: str) -> float:
    """A number as people write it, "$96,255" or "1.234,56"; NaN where a text is none."""
    found = UNIT.fullmatch(text.strip()) if len(text) <= 60 else None
    if found is None or (found["before"] and found["after"]) or (found["sign"] and found["inner"]):
        return math.nan
    number = found["number"].strip()
    if not SHAPES[form].fullmatch(number):
        return math.nan
    number = GROUPS.sub("", number)
    number = number.replace(",", "") if form == "dot" else number.replace(".", "").replace(",", ".")
    return -float(number) if (found["sign"] or found["inner"]) in ("-", "−") else float(number)


def _flag(column: dict[str, Any], value: Any, row: int) -> float:
    found = TRUTH.get(text_key(value).lower())
    if found is None:
        raise _wrong(column, "true or false", value, row)
    return found


def _day(column: dict[str, Any], value: Any, row: int) -> float:
    """Days since 1970."""
    if isinstance(value, str):
        value = _date(value, column["form"])
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / DAY
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise _wrong(column, "dates", value, row)
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return ((value - EPOCH) // datetime.timedelta(microseconds=1)) / DAY


def _date(text: str, form: str | None) -> Any:
    """A date from a text in the given form, or as ISO 8601 writes it; the text itself where it is none."""
    readers: list[Any] = [] if form is None else [lambda t: datetime.datetime.strptime(t, form)]
    for read in (*readers, datetime.datetime.fromisoformat, np.datetime64):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def text_key(value: Any) -> str:
    """One spelling for equal values: 1 and 1.0 are "1"."""
    if isinstance(value, float | np.floating):
        return str(int(value)) if np.isfinite(value) and value == int(value) else str(value)
    return str(value)


def _meaning(text: str) -> str:
    try:
        return text_key(float(text))
    except ValueError:
        return text.lower() if text.lower() in TRUTH else text


def encode_numeric(column: dict[str, Any], values: Any) -> np.ndarray:
    """Logarithms where the column needs them, then standardised."""
    given, gone = _cells(column, values, _number)
    found = given
    if column["width"] is not None:
        t = (given - column["end"]) / column["width"]
        found = math.copysign(1.0, column["width"]) * np.where(t < 0, t, np.log1p(np.maximum(t, 0.0)))
    return _with_indicator(column, [_standard(column, found)], gone)


def encode_boolean(column: dict[str, Any], values: Any) -> np.ndarray:
    """−1 and 1."""
    found, gone = _cells(column, values, _flag)
    return _with_indicator(column, [2.0 * found - 1.0], gone)


def encode_date(column: dict[str, Any], values: Any) -> np.ndarray:
    """Standardised days, and the hands of each clock."""
    found, gone = _cells(column, values, _day)
    features = [_standard(column, found)]
    for part in column["parts"]:
        angle = 2.0 * np.pi * _clock(found, part) / CLOCKS[part]
        features += [np.sin(angle), np.cos(angle)]
    return _with_indicator(column, features, gone)


def encode_category(column: dict[str, Any], values: Any) -> np.ndarray:
    """A one for the category of each row; rare ones share a feature where training had very many."""
    known = column["categories"]
    values = values.tolist() if isinstance(values, np.ndarray) else values
    gone = np.array([missing_cell(value) for value in values], bool)
    if gone.any() and column["fill"] is None:
        raise PortableError(f"Column '{column['name']}' is missing in row {int(gone.argmax()) + 1}; fill the cell.")
    exact, meant = {text: i for i, text in enumerate(known)}, {}
    if not any(isinstance(value, str) for value in values):
        # Cells that are no texts have lost their spelling ("007"), so they are also found by their meaning.
        meanings = [_meaning(text) for text in known]
        meant = {m: i for i, m in enumerate(meanings) if meanings.count(m) == 1}
    out = np.zeros((len(values), len(known) + bool(column["other"])))
    for row, (value, lost) in enumerate(zip(values, gone)):
        key = column["fill"] if lost else text_key(value)
        place = exact.get(key, meant.get(_meaning(key)))
        if place is None and not column["other"]:
            raise PortableError(
                f"Column '{column['name']}' has '{key:.60}' in row {row + 1}, which no training row had."
            )
        out[row, len(known) if place is None else place] = 1.0
    return _with_indicator(column, list(out.T), gone)


def _standard(column: dict[str, Any], values: np.ndarray) -> np.ndarray:
    scaled = (values - column["shift"]) / column["scale"]
    if not (np.abs(scaled) < np.finfo(np.float32).max).all():
        raise PortableError(f"Column '{column['name']}' has a number too far from its training rows; correct it.")
    return scaled


def _clock(days: np.ndarray, part: str) -> np.ndarray:
    whole = np.floor(days)
    if part == "hour_of_day":
        return np.round((days - whole) * DAY) / DAY
    if part == "day_of_week":
        return (whole + 3.0) % 7.0
    dates = whole.astype("datetime64[D]")
    return (dates - dates.astype("datetime64[Y]")).astype(float)


def _with_indicator(column: dict[str, Any], features: list[np.ndarray], gone: np.ndarray) -> np.ndarray:
    return np.stack([*features, *([gone] if column["indicator"] else [])], 1).astype(float)


ENCODERS = {
    "numeric": encode_numeric, "boolean": encode_boolean, "category": encode_category, "date": encode_date,
}  # fmt: skip
