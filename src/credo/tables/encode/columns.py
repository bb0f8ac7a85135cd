"""How one column of a table becomes input features: numbers, categories, truth values and dates.

Each encoder is a frozen dataclass of plain data. `fill` is what a missing cell is taken to be (None: missing
cells are an error) and `indicator` adds a feature that is 1 where the cell was missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from credo.errors import InputError
from credo.tables.encode import config, features, weighted
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 100
SKEWED = 1.0  # skewness of a normal distribution is 0, of an exponential one 2


class Column(Protocol):
    """What every column encoder can do."""

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The column in the table."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features that the column becomes."""

    @property
    def indicator(self) -> bool:
        """Is the last feature 1 where the cell was missing?"""

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the features of each row into `out`, of shape [rows, features]."""


@dataclass(frozen=True)
class NumericColumn:
    """A number, shifted and scaled to mean 0 and standard deviation 1 over the training rows.

    Where the training rows lie crowded at one end (|skewness| above `SKEWED`), logarithms of the distance from that end
    come first: t = (x − end)/width becomes log(1 + t), and stays t for t < 0. Frequencies, doses and prices then fill
    the range that a network sees. `width` is half the median distance, negative where the crowded end is the upper one.
    """

    kind: ClassVar[str] = "numeric"
    name: str
    shift: float
    scale: float
    fill: float | None = None
    indicator: bool = False
    end: float = 0.0
    width: float | None = None  # None: no logarithms
    form: str = config.added(number_forms.PLAIN)  # how texts write the numbers

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        if self.form not in number_forms.FORMS:
            raise ValueError("has an unknown form of numbers")
        if self.width == 0.0:
            raise ValueError("has a width of 0")

    @classmethod
    def learn(
        cls, series: pd.Series, weights: np.ndarray | None, impute: bool, form: str | None = None
    ) -> NumericColumn | None:
        """Learn mean, standard deviation and median, and whether logarithms are needed; None if nothing varies."""
        form = form or number_forms.PLAIN
        values = parse.numbers(series, form=form)
        learned = _learn_scale(series, values, weights, impute)
        if learned is None:
            return None
        missing = parse.missing_mask(series)
        seen, mass = values[~missing], None if weights is None else weights[~missing]
        bend = _learn_bend(seen, mass, *learned[:2])
        if bend is None:
            return cls(str(series.name), *learned, form=form)
        shift, scale = weighted.mean_and_std(features.bent(seen, *bend), mass)
        return cls(str(series.name), shift, scale, *learned[2:], *bend, form)

    @property
    def names(self) -> tuple[str, ...]:
        """The number, then the indicator."""
        return (self.name, *_indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the standardised numbers."""
        values = _filled(self, series, parse.numbers(series, form=self.form), out)
        bent = features.bent(values, self.end, self.width)
        out[:, 0] = _standardised(series, bent, self.shift, self.scale, values)


@dataclass(frozen=True)
class BooleanColumn:
    """A truth value, as -1 and 1."""

    kind: ClassVar[str] = "boolean"
    name: str
    fill: float | None = None
    indicator: bool = False

    @classmethod
    def learn(cls, series: pd.Series, weights: np.ndarray | None, impute: bool) -> BooleanColumn | None:
        """Learn the more common value; None if nothing varies."""
        values = parse.flags(series)
        missing = _check_missing(series, impute)
        seen = values[~missing]
        if seen.min() == seen.max() and not missing.any():
            return None
        mean = np.average(seen, weights=None if weights is None else weights[~missing])
        return cls(str(series.name), float(mean > 0.5) if impute else None, bool(missing.any()))

    @property
    def names(self) -> tuple[str, ...]:
        """The value, then the indicator."""
        return (self.name, *_indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write -1 for false and 1 for true."""
        out[:, 0] = 2.0 * _filled(self, series, parse.flags(series), out) - 1.0


@dataclass(frozen=True)
class CategoryColumn:
    """A category, as one feature for each that is 1 where the row has it; `other` gathers the rare ones."""

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str, ...]
    other: bool = False
    fill: str | None = None
    indicator: bool = False
    shares: tuple[float, ...] = config.added(())  # of the categories in training; empty: all the same

    def __post_init__(self) -> None:
        if len(set(self.categories)) != len(self.categories) or not self.categories:
            raise ValueError("needs distinct categories")
        if self.shares and (len(self.shares) != len(self.categories) or not min(self.shares) >= 0 < sum(self.shares)):
            raise ValueError("has shares that are not those of its categories")
        if self.fill is not None and self.fill not in self.categories:
            raise ValueError("fills in an unknown category")

    @classmethod
    def learn(cls, series: pd.Series, weights: np.ndarray | None, impute: bool) -> CategoryColumn | None:
        """Learn the categories, at most `MOST_CATEGORIES` of them; None if nothing varies."""
        missing = _check_missing(series, impute)
        codes, keys = parse.text_keys(series)
        if len(keys) == 1 and not missing.any():
            return None
        mass = weighted.totals(codes, len(keys), weights)
        common = sorted(range(len(keys)), key=lambda code: (-mass[code], keys[code]))
        other = len(keys) > MOST_CATEGORIES
        kept = common[: MOST_CATEGORIES - 1] if other else common
        fill = keys[common[0]] if impute else None
        kept = sorted(kept, key=lambda code: keys[code])
        shares = tuple(float(mass[code] / mass.sum()) for code in kept)
        return cls(str(series.name), tuple(keys[code] for code in kept), other, fill, bool(missing.any()), shares)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per category, then the rest, then the indicator."""
        own = tuple(f"{self.name}={category}" for category in self.categories)
        rest = (f"{self.name}:other",) if self.other else ()
        return own + rest + _indicator_name(self)

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write a one for the category of each row; an unknown one is an error or, by `unseen`, all zeros."""
        missing = _check_missing(series, self.fill is not None)
        codes, keys = parse.text_keys(series)
        places = features.category_places(keys, self.categories, parse.is_text(series))
        if unseen == "error" and not self.other:
            self._refuse_unseen(series, codes, [place < 0 for place in places])
        rest = len(self.categories) if self.other else -1
        fill = -1 if self.fill is None else self.categories.index(self.fill)
        feature = np.array([rest if place < 0 else place for place in places] + [fill])[codes]
        out[:] = 0.0
        rows = np.flatnonzero(feature >= 0)
        out[rows, feature[rows]] = 1.0
        if self.indicator:
            out[:, -1] = missing

    def _refuse_unseen(self, series: pd.Series, codes: np.ndarray, unknown: list[bool]) -> None:
        bad = np.array([*unknown, False])[codes]
        if bad.any():
            place = int(bad.argmax())
            raise InputError(
                f"Column '{self.name}' has the category '{parse.text_key(series.iloc[place]):.60}' in "
                f"{parse.row_name(series, place)}, which no training row had; change it to one of "
                f"{parse.listed(self.categories)}, fit again with rows that have it, or encode with unseen='zeros'."
            )


@dataclass(frozen=True)
class DateColumn:
    """A date or time, as standardised elapsed days and the sine and cosine of each clock that varied."""

    kind: ClassVar[str] = "date"
    name: str
    shift: float
    scale: float
    fill: float | None = None
    indicator: bool = False
    parts: tuple[str, ...] = ()
    form: str | None = None

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        if not set(self.parts) <= set(features.PARTS):
            raise ValueError("has an unknown part of a date")

    @classmethod
    def learn(
        cls, series: pd.Series, weights: np.ndarray | None, impute: bool, form: str | None = None
    ) -> DateColumn | None:
        """Learn mean and spread of the elapsed days and which clocks vary; None if nothing varies."""
        values = parse.days(series, form)
        learned = _learn_scale(series, values, weights, impute)
        if learned is None:
            return None
        seen = values[~np.isnan(values)]
        parts = tuple(part for part in features.PARTS if np.ptp(features.clock(seen, part)) > 0)
        return cls(str(series.name), *learned, parts, form)

    @property
    def names(self) -> tuple[str, ...]:
        """Elapsed time, sine and cosine of each part, then the indicator."""
        waves = tuple(f"{self.name}:{part}_{wave}" for part in self.parts for wave in ("sin", "cos"))
        return (f"{self.name}:elapsed", *waves, *_indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write elapsed time and clock hands."""
        values = _filled(self, series, parse.days(series, self.form), out)
        out[:, 0] = _standardised(series, values, self.shift, self.scale)
        for place, hand in enumerate(features.hands(values, self.parts)):
            out[:, 1 + place] = hand


KINDS: dict[str, type[Any]] = {
    encoder.kind: encoder for encoder in (NumericColumn, BooleanColumn, CategoryColumn, DateColumn)
}


def learn_column(
    kind: str, series: pd.Series, weights: np.ndarray | None, impute: bool, form: str | None = None
) -> Column | None:
    """Learn the encoder of one column from its training rows; None if nothing varies."""
    learn: Callable[..., Column | None] = KINDS[kind].learn
    return learn(series, weights, impute, form) if kind in ("date", "numeric") else learn(series, weights, impute)


def column_from_config(plain: Any) -> Column:
    """Build a column encoder from saved settings, or raise `ArtifactError`."""
    column: Column = config.from_kinds(KINDS, plain, "a column")
    return column


def _learn_scale(
    series: pd.Series, values: np.ndarray, weights: np.ndarray | None, impute: bool
) -> tuple[float, float, float | None, bool] | None:
    """Return shift, scale, fill and indicator; None if nothing varies."""
    missing = _check_missing(series, impute)
    seen, mass = values[~missing], None if weights is None else weights[~missing]
    shift, scale = weighted.mean_and_std(seen, mass)
    if scale == 0.0 and not missing.any():
        return None
    fill = weighted.median(seen, mass) if impute else None
    return shift, scale or 1.0, fill, bool(missing.any())


def _filled(column: Any, series: pd.Series, values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill the missing cells and write the indicator."""
    missing = _check_missing(series, column.fill is not None)
    if column.indicator:
        out[:, -1] = missing
    if missing.any():
        values = np.where(missing, column.fill, values)
    return values


def _learn_bend(
    values: np.ndarray, weights: np.ndarray | None, mean: float, scale: float
) -> tuple[float, float] | None:
    """End and width of the logarithms that a skewed column needs; None for others."""
    with np.errstate(over="ignore", invalid="ignore"):
        skewness = float(np.average(((values - mean) / scale) ** 3, weights=weights))
        if not SKEWED < abs(skewness) < np.inf:
            return None
        end = float(values.min() if skewness > 0 else values.max())
        distance = np.abs(values - end)
    beyond = distance > 0
    width = 0.5 * weighted.median(distance[beyond], None if weights is None else weights[beyond])
    width = float(np.copysign(width, skewness))
    return (end, width) if np.isfinite(width) and np.isfinite((values - end) / width).all() else None


def _standardised(
    series: pd.Series, values: np.ndarray, shift: float, scale: float, given: np.ndarray | None = None
) -> np.ndarray:
    scaled, bad = features.standardised(values, shift, scale)
    if bad.any():
        place = int(bad.argmax())
        raise InputError(
            f"Column '{series.name}' has {(values if given is None else given)[place]:g} in "
            f"{parse.row_name(series, place)}, too far from its training rows to be computed with; correct it."
        )
    return scaled


def _check_missing(series: pd.Series, allowed: bool) -> np.ndarray:
    missing = parse.missing_mask(series)
    if not allowed and missing.any():
        raise InputError(parse.missing_sentence(series, missing))
    return missing


def _check_scale(scale: float) -> None:
    if not scale > 0.0:
        raise ValueError("has a scale that is not positive")


def _indicator_name(column: Any) -> tuple[str, ...]:
    return (f"{column.name}:missing",) if column.indicator else ()
