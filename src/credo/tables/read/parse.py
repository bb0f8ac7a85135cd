"""One column of a table as numbers, days or text keys; what does not fit is named with its row."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.encode.features import MICROSECONDS_PER_DAY, TRUE_WORDS
from credo.tables.encode.features import text_key as text_key
from credo.tables.read import number_forms

if TYPE_CHECKING:
    import pandas as pd

# What cells of these types are called; Arrow gives lists as arrays and maps as lists of pairs.
CELLS = {
    "ndarray": "lists", "list": "lists", "tuple": "lists", "set": "sets", "dict": "structures", "bytes": "bytes",
    "bytearray": "bytes",
}  # fmt: skip
FIRST_YEAR, LAST_YEAR = 1, 9999


def named_frame(frame: Any) -> pd.DataFrame:
    """Return the frame with text column names, or raise `InputError` if it is not a usable frame."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"Expected a pandas DataFrame but got {type(frame).__name__}; use read_table first.")
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.rename(columns=str)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"The table has more than one column named '{twice}'; rename all but one.")
    return frame


def find_column(frame: pd.DataFrame, name: str, purpose: str) -> pd.Series:
    """Return a column, or raise `InputError` with the nearest name there is."""
    if name not in frame.columns:
        hint = did_you_mean(name, frame.columns)
        raise InputError(f"The table has no column '{name}' for {purpose}; {hint}.")
    return frame[name]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return "did you mean 'x'?" or, where nothing is near, the names there are."""
    names = list(names)
    lower = {candidate.lower().strip(): candidate for candidate in reversed(names)}
    near = difflib.get_close_matches(name.lower().strip(), lower, n=1)
    if near:
        return f"did you mean '{lower[near[0]]}'"
    return f"it has {listed(names)}"


def listed(names: Iterable[Any], most: int = 6) -> str:
    """Return names in quotes, the first few and how many more."""
    names = list(names)
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def row_name(series: pd.Series, row: int) -> str:
    """Return the row as a person counts it: the first row below the header is row 1."""
    label = series.index[row]
    return f"row {label + 1}" if isinstance(label, (int, np.integer)) else f"row {label!r}"


def is_text(series: pd.Series) -> bool:
    """Tell whether cells may be text: string and object columns."""
    import pandas as pd

    return bool(pd.api.types.is_object_dtype(series.dtype) or pd.api.types.is_string_dtype(series.dtype))


def missing_mask(series: pd.Series) -> np.ndarray:
    """Return True where a cell is missing; an empty or blank text counts as missing, as it does in a CSV file."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        empty = np.append(missing_mask(series.cat.categories.to_series()), True)
        return empty[series.cat.codes.to_numpy()]
    mask = series.isna().to_numpy(dtype=bool)
    if is_text(series):
        mask = mask | _blank(series)
    return mask


def _blank(series: pd.Series) -> np.ndarray:
    if series.dtype == object:
        return np.fromiter((isinstance(cell, str) and not cell.strip() for cell in series), bool, len(series))
    return (series.str.strip() == "").to_numpy(dtype=bool, na_value=False)


def odd_cells(series: pd.Series) -> str:
    """What cells hold that are neither numbers, texts, truth values nor times ("lists", "bytes"); "" where all are."""
    if series.dtype != object:
        return ""
    for kind in dict.fromkeys(map(type, series)):
        if kind.__hash__ is None or issubclass(kind, (bytes, tuple, frozenset)):
            return CELLS.get(kind.__name__, f"values of the type {kind.__name__}")
    return ""


def refuse_odd(series: pd.Series) -> None:
    """Raise `InputError` where a column holds lists, structures or bytes."""
    held = odd_cells(series)
    if held:
        raise InputError(
            f"Column '{series.name}' holds {held}, which cannot be used; turn them into columns of numbers or texts."
        )


def missing_sentence(series: pd.Series, mask: np.ndarray) -> str:
    """Say how many cells are missing, where the first is, and which option helps."""
    count, first = int(mask.sum()), row_name(series, int(mask.argmax()))
    rows = f"1 row ({first})" if count == 1 else f"{count} rows (first: {first})"
    return (
        f"Column '{series.name}' is missing in {rows}; fill the cells, or fit with --missing auto (fills "
        "them and learns what a gap means) or --missing drop (leaves these rows out)."
    )


def numbers(
    series: pd.Series,
    purpose: str = "numbers",
    advice: str = "correct it or leave the cell empty",
    form: str = number_forms.PLAIN,
) -> np.ndarray:
    """Return float64 values, NaN where missing; text and infinities raise `InputError`.

    `form` is how texts write numbers (`credo.tables.read.number_forms`).
    """
    import pandas as pd

    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        series = series.astype(dtype.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(series.dtype) or pd.api.types.is_complex_dtype(series.dtype):
        held = "complex numbers" if pd.api.types.is_complex_dtype(series.dtype) else "dates"
        raise InputError(f"Column '{series.name}' should hold {purpose} but holds {held}; convert it first.")
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        values = series.dt.total_seconds().to_numpy(np.float64)
    elif is_text(series):
        values = _numbers_in_text(series, purpose, advice, form)
    else:
        try:
            values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Column '{series.name}' should hold {purpose} but holds values of the type {dtype}; {advice}."
            ) from error
    infinite = np.isinf(values)
    if infinite.any():
        first = row_name(series, int(infinite.argmax()))
        raise InputError(
            f"Column '{series.name}' has {int(infinite.sum())} infinite value(s), the first in {first}; "
            "replace them by numbers or by empty cells."
        )
    return values


def _numbers_in_text(series: pd.Series, purpose: str, advice: str, form: str) -> np.ndarray:
    values = lenient_numbers(series, form)
    bad = np.isnan(values) & ~missing_mask(series)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Column '{series.name}' should hold {purpose} but has {_shown(series.iloc[row])} in "
            f"{row_name(series, row)}; {advice}."
        )
    return values


def lenient_numbers(series: pd.Series, form: str = number_forms.PLAIN) -> np.ndarray:
    """Return float64 values with NaN for every cell that is not a number of this form."""
    import pandas as pd

    refuse_odd(series)
    if form != number_forms.PLAIN:
        codes, cells = distinct(series)
        read = [number_forms.read(c, form) if isinstance(c, str) else _plain_number(c) for c in cells]
        return np.array([*read, np.nan], np.float64)[codes]
    values = pd.to_numeric(series.astype("string"), errors="coerce")
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def _plain_number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def number_form(series: pd.Series) -> str | None:
    """How the texts of a column write numbers, one form for all of them; None where they are no numbers."""
    if not is_text(series):
        return number_forms.PLAIN
    _, cells = distinct(series)
    if not np.isnan([_plain_number(cell) for cell in cells]).any():
        return number_forms.PLAIN
    return number_forms.find([str(cell) for cell in cells])


def flags(series: pd.Series) -> np.ndarray:
    """Return 0, 1 or NaN for a column of truth values, also when written as numbers or words."""
    codes, keys = text_keys(series)
    values = [TRUE_WORDS.get(key.lower()) for key in keys]
    for code, value in enumerate(values):
        if value is None:
            row = int(np.argmax(codes == code))
            raise InputError(
                f"Column '{series.name}' should hold true or false but has '{keys[code]:.60}' in "
                f"{row_name(series, row)}; correct it or leave the cell empty."
            )
    return np.array([*values, np.nan], np.float64)[codes]


def days(series: pd.Series, form: str | None) -> np.ndarray:
    """Return days since 1970 as float64, NaN where missing, from dates or text in the given format."""
    import pandas as pd

    datetimes = pd.api.types.is_datetime64_any_dtype(series.dtype)
    if datetimes or is_text(series) or isinstance(series.dtype, pd.CategoricalDtype):
        values = lenient_days(series, form)
    else:
        values = np.full(len(series), np.nan)
    bad = np.isnan(values) & ~missing_mask(series)
    if bad.any():
        row = int(bad.argmax())
        like = f" like {form}" if form else ""
        raise InputError(
            f"Column '{series.name}' should hold dates{like} but has {_shown(series.iloc[row])} in "
            f"{row_name(series, row)}; correct it or leave the cell empty."
        )
    return values


def lenient_days(series: pd.Series, form: str | None) -> np.ndarray:
    """Return days since 1970 with NaN for every cell that is not a date."""
    import pandas as pd

    if not pd.api.types.is_datetime64_any_dtype(series.dtype):
        refuse_odd(series)
        dates = pd.to_datetime(series.astype(object), format=form or "ISO8601", errors="coerce", utc=True)
        if form and dates.isna().any():
            # A later table may have been converted to ISO dates by the program that wrote it.
            dates = dates.fillna(pd.to_datetime(series.astype(object), format="ISO8601", errors="coerce", utc=True))
        series = dates
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    _check_years(series)
    stamps = series.to_numpy(dtype="datetime64[us]")
    values = stamps.astype(np.int64) / MICROSECONDS_PER_DAY
    values[np.isnat(stamps)] = np.nan
    return values


def _check_years(series: pd.Series) -> None:
    """Raise `InputError` where a date lies so far away that no calendar has it."""
    stamps = series.to_numpy()
    years = stamps.astype("datetime64[Y]").astype(np.int64) + 1970
    bad = ~np.isnat(stamps) & ((years < FIRST_YEAR) | (years > LAST_YEAR))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Column '{series.name}' has a date in the year {years[row]} in {row_name(series, row)}; dates lie "
            f"between the years {FIRST_YEAR} and {LAST_YEAR}: correct it or leave the cell empty."
        )


def text_keys(series: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return a code for each row (-1 where missing) and the text that each code stands for."""
    codes, values = distinct(series)
    keys = [text_key(value) for value in values]
    order = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    merged = np.array([order[key] for key in keys] + [-1], np.int64)
    return merged[codes], list(order)


def distinct(series: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Return a code for each row (-1 where missing) and the distinct values in order of appearance."""
    import pandas as pd

    refuse_odd(series)
    codes, values = pd.factorize(series)
    positions = [i for i, value in enumerate(values) if not (isinstance(value, str) and not value.strip())]
    if len(positions) < len(values):
        moved = np.full(len(values) + 1, -1)
        moved[positions] = np.arange(len(positions))
        codes = moved[codes]
    return np.asarray(codes), [values[i] for i in positions]


def _shown(value: Any) -> str:
    return f"'{value!s:.60}'"
