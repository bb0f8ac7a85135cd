"""How one column of a table becomes input features: numbers, categories, truth values, dates and texts.

Each encoder is a frozen dataclass of plain data. `fill` is what a missing cell is taken to be and `indicator` adds a
feature that is 1 where the cell was missing. Where training had no gaps, `spread` stands for its values
(`credo.tables.encode.gaps`); without it a missing cell is an error. `cuts` are quantiles of a number's feature
(`credo.tables.encode.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from credo.errors import InputError
from credo.tables.encode import config, features, weighted
from credo.tables.encode.categories import CategoryColumn as CategoryColumn
from credo.tables.encode.codes import CodeColumn as CodeColumn
from credo.tables.encode.cuts import check_cuts, cuts_of
from credo.tables.encode.gaps import check_spread, gaps_of, gaps_when_learning, indicator_name, spread_of, write_gaps
from credo.tables.encode.levels import spread_values
from credo.tables.encode.text import TextColumn as TextColumn
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

MOST_ONE_HOT = 32  # categories that have a feature each; more have a code
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

    @property
    def values(self) -> np.ndarray | None:
        """The features [LEVELS, features] of cells that stand for training; None: every cell must be known."""

    def new(self, encoded: np.ndarray) -> np.ndarray | None:
        """Which rows of features [n, features] have a category that training did not have; None: there are none."""

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the features of each row into `out`, of shape [rows, features]; NaN where training had no gaps."""


class Valued:
    """What numbers, truth values and dates share: a gap that training did not have is averaged over its `spread`."""

    indicator: bool
    spread: tuple[float, ...]

    @property
    def values(self) -> np.ndarray | None:
        """The features of cells that stand for training; None where a gap is filled in or an error."""
        return spread_values(self.spread)

    def new(self, encoded: np.ndarray) -> None:
        """No value is new."""
        return None


@dataclass(frozen=True)
class NumericColumn(Valued):
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
    spread: tuple[float, ...] = config.added(())
    cuts: tuple[float, ...] = config.added(())

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        check_spread(self.spread, 1)
        check_cuts(self.cuts)
        if self.form not in number_forms.FORMS:
            raise ValueError("has an unknown form of numbers")
        if self.width == 0.0:
            raise ValueError("has a width of 0")

    @classmethod
    def learn(
        cls, series: pd.Series, weights: np.ndarray | None, missing: str, form: str | None = None
    ) -> NumericColumn | None:
        """Learn mean, standard deviation and median, and whether logarithms are needed; None if nothing varies."""
        form = form or number_forms.PLAIN
        values = parse.numbers(series, form=form)
        learned = _learn_scale(series, values, weights, missing)
        if learned is None:
            return None
        gaps = parse.missing_mask(series)
        observed, mass = values[~gaps], None if weights is None else weights[~gaps]
        bend = _learn_bend(observed, mass, *learned[:2])
        if bend is None:
            return cls(str(series.name), *learned, form=form)
        shift, scale = weighted.mean_and_std(features.bent(observed, *bend), mass)
        return cls(str(series.name), shift, scale, *learned[2:], *bend, form)

    @property
    def names(self) -> tuple[str, ...]:
        """The number, then the indicator."""
        return (self.name, *indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the standardised numbers."""
        gaps = gaps_of(self, series, bool(self.spread), unseen)
        values = _filled(self, gaps, parse.numbers(series, form=self.form), self.shift)
        bent = features.bent(values, self.end, self.width)
        out[:, 0] = _standardised(series, bent, self.shift, self.scale, values)
        write_gaps(self, gaps, out)


@dataclass(frozen=True)
class BooleanColumn(Valued):
    """A truth value, as -1 and 1."""

    kind: ClassVar[str] = "boolean"
    name: str
    fill: float | None = None
    indicator: bool = False
    spread: tuple[float, ...] = config.added(())

    def __post_init__(self) -> None:
        check_spread(self.spread, 1)

    @classmethod
    def learn(cls, series: pd.Series, weights: np.ndarray | None, missing: str) -> BooleanColumn | None:
        """Learn the more common value; None if nothing varies."""
        values = parse.flags(series)
        gaps = gaps_when_learning(series, missing)
        observed = values[~gaps]
        if observed.min() == observed.max() and not gaps.any():
            return None
        mean = np.average(observed, weights=None if weights is None else weights[~gaps])
        return cls(str(series.name), float(mean > 0.5) if _fills(missing, gaps) else None, bool(gaps.any()))

    @property
    def names(self) -> tuple[str, ...]:
        """The value, then the indicator."""
        return (self.name, *indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write -1 for false and 1 for true."""
        gaps = gaps_of(self, series, bool(self.spread), unseen)
        out[:, 0] = 2.0 * _filled(self, gaps, parse.flags(series), 0.0) - 1.0
        write_gaps(self, gaps, out)


@dataclass(frozen=True)
class DateColumn(Valued):
    """A date or time, as standardised elapsed days and the sine and cosine of each clock that varied."""

    kind: ClassVar[str] = "date"
    name: str
    shift: float
    scale: float
    fill: float | None = None
    indicator: bool = False
    parts: tuple[str, ...] = ()
    form: str | None = None
    spread: tuple[float, ...] = config.added(())
    cuts: tuple[float, ...] = config.added(())

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        check_spread(self.spread, 1 + 2 * len(self.parts))
        check_cuts(self.cuts)
        if not set(self.parts) <= set(features.PARTS):
            raise ValueError("has an unknown part of a date")

    @classmethod
    def learn(
        cls, series: pd.Series, weights: np.ndarray | None, missing: str, form: str | None = None
    ) -> DateColumn | None:
        """Learn mean and spread of the elapsed days and which clocks vary; None if nothing varies."""
        values = parse.days(series, form)
        learned = _learn_scale(series, values, weights, missing)
        if learned is None:
            return None
        observed = values[~np.isnan(values)]
        parts = tuple(part for part in features.PARTS if np.ptp(features.clock(observed, part)) > 0)
        return cls(str(series.name), *learned, parts, form)

    @property
    def names(self) -> tuple[str, ...]:
        """Elapsed time, sine and cosine of each part, then the indicator."""
        waves = tuple(f"{self.name}:{part}_{wave}" for part in self.parts for wave in ("sin", "cos"))
        return (f"{self.name}:elapsed", *waves, *indicator_name(self))

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write elapsed time and clock hands."""
        gaps = gaps_of(self, series, bool(self.spread), unseen)
        values = _filled(self, gaps, parse.days(series, self.form), self.shift)
        out[:, 0] = _standardised(series, values, self.shift, self.scale)
        for i, hand in enumerate(features.hands(values, self.parts)):
            out[:, 1 + i] = hand
        write_gaps(self, gaps, out)


KINDS: dict[str, type[Any]] = {
    encoder.kind: encoder
    for encoder in (NumericColumn, BooleanColumn, CategoryColumn, CodeColumn, DateColumn, TextColumn)
}


def learn_column(
    kind: str,
    series: pd.Series,
    weights: np.ndarray | None,
    missing: str,
    form: str | None = None,
    codes: bool = False,
    outcome: np.ndarray | None = None,
) -> Column | None:
    """Learn the encoder of one column from its training rows; None if nothing varies.

    With `codes` more than `MOST_ONE_HOT` categories become codes; `outcome` is that of `CodeColumn.learn`.
    """
    if kind == "category" and codes and len(parse.text_keys(series)[1]) > MOST_ONE_HOT:
        return CodeColumn.learn(series, weights, missing, outcome)
    learn: Callable[..., Any] = KINDS[kind].learn
    column = learn(series, weights, missing, form) if kind in ("date", "numeric") else learn(series, weights, missing)
    if missing == "auto" and isinstance(column, Valued) and not column.indicator:
        column = replace(column, spread=spread_of(column, series, weights))  # type: ignore[type-var]
    if isinstance(column, NumericColumn | DateColumn):
        column = replace(column, cuts=cuts_of(column, series, weights))
    return column


def column_from_config(plain: Any) -> Column:
    """Build a column encoder from saved settings, or raise `ArtifactError`."""
    column: Column = config.from_kinds(KINDS, plain, "a column")
    return column


def _learn_scale(
    series: pd.Series, values: np.ndarray, weights: np.ndarray | None, missing: str
) -> tuple[float, float, float | None, bool] | None:
    """Return shift, scale, fill and indicator; None if nothing varies."""
    gaps = gaps_when_learning(series, missing)
    observed, mass = values[~gaps], None if weights is None else weights[~gaps]
    shift, scale = weighted.mean_and_std(observed, mass)
    if scale == 0.0 and not gaps.any():
        return None
    fill = weighted.median(observed, mass) if _fills(missing, gaps) else None
    return shift, scale or 1.0, fill, bool(gaps.any())


def _fills(missing: str, gaps: np.ndarray) -> bool:
    """Is a gap filled in? Under "auto" only where training can teach what one means."""
    return missing == "impute" or (missing == "auto" and bool(gaps.any()))


def _filled(column: Any, gaps: np.ndarray, values: np.ndarray, otherwise: float) -> np.ndarray:
    """Numbers without gaps."""
    return np.where(gaps, otherwise if column.fill is None else column.fill, values) if gaps.any() else values


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
    series: pd.Series, values: np.ndarray, shift: float, scale: float, cells: np.ndarray | None = None
) -> np.ndarray:
    scaled, bad = features.standardised(values, shift, scale)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Column '{series.name}' has {(values if cells is None else cells)[row]:g} in "
            f"{parse.row_name(series, row)}, too far from its training rows to be computed with; correct it."
        )
    return scaled


def _check_scale(scale: float) -> None:
    if not scale > 0.0:
        raise ValueError("has a scale that is not positive")
