"""What a column holds: numbers, categories, truth values, dates or free text, or why it cannot be an input."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credo.errors import InputError
from credo.tables.columns.unused import left_out
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

DATE_FORMATS = (
    "ISO8601",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
)
ROW_NAMES = {"", "id", "index", "row", "row_id", "rowid"}
# Text with this many distinct values that covers more than half of the rows is an id or free text.
ID_DISTINCT = 20
TEXT_WORDS, TEXT_DISTINCT = 3, 0.8  # words of most cells of a free text, and share of them that are distinct
NUMERIC_SHARE = 0.9
# Of notes on cells that could be read in two ways.
MONTH_FIRST = "are read with the month first"
THOUSANDS = "a comma before groups of three digits separates thousands"


class Kind(NamedTuple):
    """The kind of a column, how its dates or numbers are written, and a sentence for the notes."""

    kind: str
    form: str | None = None
    note: str = ""


def find_kind(series: pd.Series, ids: bool = True) -> Kind:
    """Decide how a column of training rows is read; "none" means it is left out, for the reason in `note`.

    With `ids`, columns that only name the rows are left out.
    """
    import pandas as pd

    dtype: Any = series.dtype
    odd = parse.odd_cells(series)
    if odd:
        return _left_out(series, f"holds {odd}")
    if parse.missing_mask(series).all():
        return _left_out(series, "has no values in the training rows")
    if isinstance(dtype, pd.CategoricalDtype):
        return _category(series, ids)
    if pd.api.types.is_bool_dtype(dtype):
        return Kind("boolean")
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return Kind("date")
    if pd.api.types.is_timedelta64_dtype(dtype):
        return Kind("numeric")
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return (_row_number(series) if ids else None) or Kind("numeric")
    if parse.is_text(series):
        return _text(series, ids)
    return _left_out(series, f"holds values of the type {dtype}")


def _text(series: pd.Series, ids: bool) -> Kind:
    codes, values = parse.distinct(series)
    if all(isinstance(value, (bool, np.bool_)) for value in values):
        return Kind("boolean")
    first = series.iloc[_first_rows(codes, len(values))]
    numeric = ~np.isnan(parse.lenient_numbers(first))
    if numeric.all():
        return Kind("numeric", number_forms.PLAIN)
    dates = _date_format(series)
    if dates is not None:
        return dates
    written = number_forms.find(map(str, values))
    if written is not None:
        return Kind("numeric", written, written_note(series))
    shares = [~np.isnan(parse.lenient_numbers(first, form)) for form in number_forms.FORMS]
    _refuse_mixture(series, codes, max(shares, key=np.sum))
    return _category(series, ids)


def written_note(series: pd.Series) -> str:
    """Say how numbers with units and grouped thousands are read, and which rule decides where they could be either."""
    form = parse.number_form(series)
    if form in (None, number_forms.PLAIN):
        return ""
    texts = [str(value) for value in parse.distinct(series)[1]]
    # The longest shows most of how they are written.
    shown = max(texts, key=lambda text: (len(text), text))
    value = number_forms.read(shown, form)
    note = f"Column '{series.name}' holds numbers such as '{shown:.60}', which is read as {value:.12g}"
    if number_forms.is_ambiguous(texts):
        return f"{note}: {THOUSANDS}; write a point where it is decimal."
    return f"{note}."


def _first_rows(codes: np.ndarray, count: int) -> np.ndarray:
    """Return for each code the first row that has it."""
    rows = np.empty(count, np.int64)
    present = np.flatnonzero(codes >= 0)[::-1]
    rows[codes[present]] = present
    return rows


def _refuse_mixture(series: pd.Series, codes: np.ndarray, numeric: np.ndarray) -> None:
    """Stop at a column of numbers with a few words in it, which is no set of categories."""
    numeric_or_missing = np.append(numeric, True)[codes]
    many = numeric.sum() > ID_DISTINCT and numeric_or_missing.mean() >= NUMERIC_SHARE
    # In a short table: numbers that hardly ever come again are measurements, not names of categories.
    present = (codes >= 0) & numeric_or_missing
    short = numeric.sum() > 2 and 2 * numeric.sum() > present.sum() and 3 * numeric_or_missing.mean() >= 2
    if (many or short) and not numeric_or_missing.all():
        row = int(np.argmin(numeric_or_missing))
        raise InputError(
            f"Column '{series.name}' holds numbers but also text such as '{series.iloc[row]!s:.60}' in "
            f"{parse.row_name(series, row)}; replace the text by numbers or by empty cells."
        )


def _category(series: pd.Series, ids: bool) -> Kind:
    """Tell categories from free text and ids, by how often their values come again and by their words."""
    codes, keys = parse.text_keys(series)
    present = int((codes >= 0).sum())
    if ids and len(keys) > ID_DISTINCT and len(keys) >= TEXT_DISTINCT * present and _has_words(keys):
        return Kind("text")
    if ids and len(keys) > ID_DISTINCT and 2 * len(keys) > present:
        return _left_out(series, f"looks like an id or free text ({len(keys)} distinct texts in {present} rows)")
    return Kind("category")


def _has_words(keys: Sequence[str]) -> bool:
    """Do most texts have several words with letters in them?"""
    counts = [sum(any(map(str.isalpha, word)) for word in key.split()) for key in keys]
    return float(np.median(counts)) >= TEXT_WORDS


def _row_number(series: pd.Series) -> Kind | None:
    """Leave out a column of distinct whole numbers that is called an id or has no name."""
    import pandas as pd

    name = str(series.name).lower()
    plain = name in ROW_NAMES or name.startswith("unnamed:") or name.startswith("__index_level_")
    if plain and len(series) > 2 and pd.api.types.is_integer_dtype(series.dtype) and series.is_unique:
        return _left_out(series, "numbers the rows")
    return None


def names_rows(series: pd.Series) -> bool:
    """Tell whether a column is called an id and differs in every row."""
    name = str(series.name).lower()
    has_id_name = name in ROW_NAMES - {""} or name.endswith(("_id", " id", "-id"))
    return bool(
        has_id_name and not parse.odd_cells(series) and not parse.missing_mask(series).any() and series.is_unique
    )


def _date_format(series: pd.Series) -> Kind | None:
    """Return the first date format that every cell has, or None."""
    import pandas as pd

    missing = parse.missing_mask(series)
    places = np.flatnonzero(~missing)
    probe = series.iloc[places[:50]]
    if not all(isinstance(value, str) for value in probe):
        # Objects are dates only if they say so; numbers must not turn into nanoseconds.
        dated = all(isinstance(value, datetime.date | pd.Period) for value in probe)
        return Kind("date") if dated else None
    fits = [form for form in DATE_FORMATS if _all_dates(probe, form)]
    fits = [form for form in fits if _all_dates(pd.Series(series.iloc[places].unique()), form)]
    if not fits:
        return None
    form = None if fits[0] == "ISO8601" else fits[0]
    note = ""
    if len(fits) > 1 and form and form.startswith("%m/%d"):
        note = (
            f"The dates of column '{series.name}' {MONTH_FIRST} ({form}); "
            "write them as year-month-day if the day comes first."
        )
    return Kind("date", form, note)


def _all_dates(series: pd.Series, form: str) -> bool:
    import pandas as pd

    dates = pd.to_datetime(series.astype(object), format=form, errors="coerce", utc=True)
    return bool(dates.notna().all())


def _left_out(series: pd.Series, reason: str) -> Kind:
    return Kind("none", note=left_out(series.name, reason))
