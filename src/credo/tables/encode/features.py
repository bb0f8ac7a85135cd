"""The arithmetic between cells and features: spellings, categories, clocks and logarithms.

Exported predictors take this module along: NumPy alone will do.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

MICROSECONDS_PER_DAY = 86_400_000_000
TRUE_WORDS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
# The cyclic parts of a date and their periods in days.
PARTS: dict[str, float] = {"day_of_year": 365.2425, "day_of_week": 7.0, "hour_of_day": 1.0}


def text_key(value: Any) -> str:
    """Return one spelling for equal values, so that 1, 1.0 and "1" read from different files agree."""
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if np.isfinite(value) and value == int(value) else str(value)
    return str(value)


def category_places(keys: Sequence[str], categories: Sequence[str], spelled: bool) -> list[int]:
    """Return for each key its place among the categories, or -1.

    A file whose cells all look like numbers or truth values loses their spelling ("007", "true"), so where cells are
    not `spelled`, a key is also found by its meaning if only one category has it.
    """
    exact = {text: index for index, text in enumerate(categories)}
    if spelled:
        return [exact.get(key, -1) for key in keys]
    meaning: dict[str, list[int]] = {}
    for index, text in enumerate(categories):
        meaning.setdefault(_meaning(text), []).append(index)
    only = {text: indices[0] for text, indices in meaning.items() if len(indices) == 1}
    return [exact.get(key, only.get(_meaning(key), -1)) for key in keys]


def no_category(encoded: np.ndarray, count: int, indicator: bool, fill: str | None) -> np.ndarray:
    """Which rows of features [n, features] have none of so many categories, nor a gap that is one of them."""
    used = count + (indicator and fill is None)
    return np.asarray(encoded)[:, [*range(count), -1][:used]].sum(axis=1) == 0.0


def beyond(encoded: np.ndarray, levels: int) -> np.ndarray:
    """Which rows of features [n, features], of which the first is a code, have none of so many levels."""
    return np.asarray(np.asarray(encoded)[:, 0] >= levels)  # a gap is NaN, and not beyond


def _meaning(text: str) -> str:
    try:
        return text_key(float(text))
    except ValueError:
        return text.lower() if text.lower() in TRUE_WORDS else text


def clock(values: np.ndarray, part: str) -> np.ndarray:
    """Return where a clock stands, in days: since new year, since Monday or since midnight."""
    if part == "hour_of_day":
        # Rounded to microseconds: a difference of large floats would make midnight vary.
        return np.round((values - np.floor(values)) * MICROSECONDS_PER_DAY) / MICROSECONDS_PER_DAY
    days = np.floor(values)
    if part == "day_of_week":
        return (days + 3.0) % 7.0  # day 0, in 1970, was a Thursday
    dates = days.astype("datetime64[D]")
    return (dates - dates.astype("datetime64[Y]")).astype(np.float64)


def hands(values: np.ndarray, parts: Sequence[str]) -> list[np.ndarray]:
    """Return the sine and cosine of each clock."""
    angles = [2.0 * np.pi * clock(values, part) / PARTS[part] for part in parts]
    return [wave(angle) for angle in angles for wave in (np.sin, np.cos)]


def bent(values: np.ndarray, end: float, width: float | None) -> np.ndarray:
    """±log(1 + t) with t = (x − end)/width, rising where x does; t itself below the end; x where width is None."""
    if width is None:
        return values
    with np.errstate(over="ignore"):
        t = (values - end) / width
    return np.copysign(1.0, width) * np.where(t < 0, t, np.log1p(np.maximum(t, 0.0)))


def standardised(values: np.ndarray, shift: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Values in single precision, and where they are too far out to be computed with."""
    with np.errstate(over="ignore"):
        scaled = ((values - shift) / scale).astype(np.float32)
    return scaled, ~np.isfinite(scaled)
