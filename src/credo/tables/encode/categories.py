"""How a column of categories becomes input features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from credo.errors import InputError
from credo.tables.encode import config, features, weighted
from credo.tables.encode.gaps import gaps_of, gaps_when_learning, indicator_name, write_gaps
from credo.tables.encode.levels import one_hot_levels
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

MOST_CATEGORIES = 100


@dataclass(frozen=True)
class CategoryColumn:
    """A category, as one feature for each that is 1 where the row has it; `other` gathers the rare ones.

    A gap is the category `fill` with an indicator or, without a `fill`, a category of its own, which is the indicator.
    """

    kind: ClassVar[str] = "category"
    name: str
    categories: tuple[str, ...]
    other: bool = False
    fill: str | None = None
    indicator: bool = False
    shares: tuple[float, ...] = config.added(())  # of the categories in training; empty: all the same
    gaps: bool = config.added(False)  # may come, although training had none

    def __post_init__(self) -> None:
        check_categories(self.categories, self.shares)
        if self.fill is not None and self.fill not in self.categories:
            raise ValueError("fills in an unknown category")

    @classmethod
    def learn(cls, series: pd.Series, weights: np.ndarray | None, missing: str) -> CategoryColumn | None:
        """Learn the categories, at most `MOST_CATEGORIES` of them; None if nothing varies."""
        gaps = gaps_when_learning(series, missing)
        codes, keys = parse.text_keys(series)
        if len(keys) == 1 and not gaps.any():
            return None
        mass = weighted.totals(codes, len(keys), weights)
        common = sorted(range(len(keys)), key=lambda code: (-mass[code], keys[code]))
        other = len(keys) > MOST_CATEGORIES
        selected = common[: MOST_CATEGORIES - 1] if other else common
        fill = keys[common[0]] if missing == "impute" else None
        selected = sorted(selected, key=lambda code: keys[code])
        shares = tuple(float(mass[code] / mass.sum()) for code in selected)
        may_come = missing == "auto" and not gaps.any()
        categories = tuple(keys[code] for code in selected)
        return cls(str(series.name), categories, other, fill, bool(gaps.any()), shares, may_come)

    @property
    def names(self) -> tuple[str, ...]:
        """One name per category, then the rest, then the indicator."""
        one_hot = tuple(f"{self.name}={category}" for category in self.categories)
        rest = (f"{self.name}:other",) if self.other else ()
        return one_hot + rest + indicator_name(self)

    @property
    def values(self) -> np.ndarray | None:
        """The features at categories that stand for training, for a cell that is not known."""
        return one_hot_levels(self.shares, len(self.categories), len(self.names))

    def new(self, encoded: np.ndarray) -> np.ndarray | None:
        """Which rows of features [n, features] have a category that training did not have; None: those are `other`."""
        return None if self.other else features.no_category(encoded, len(self.categories), self.indicator, self.fill)

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write a one for the category of each row; an unknown one is an error or, by `unseen`, all zeros."""
        gaps = gaps_of(self, series, self.gaps, unseen)
        codes, keys = parse.text_keys(series)
        positions = features.category_places(keys, self.categories, parse.is_text(series))
        if unseen == "error" and not self.other:
            refuse_unseen(self, series, codes, [position < 0 for position in positions])
        rest = len(self.categories) if self.other else -1
        fill = -1 if self.fill is None else self.categories.index(self.fill)
        feature = np.array([rest if position < 0 else position for position in positions] + [fill])[codes]
        out[:] = 0.0
        rows = np.flatnonzero(feature >= 0)
        out[rows, feature[rows]] = 1.0
        write_gaps(self, gaps, out)


def check_categories(categories: tuple[str, ...], shares: tuple[float, ...]) -> None:
    """Raise `ValueError` where saved categories or their shares cannot be."""
    if len(set(categories)) != len(categories) or not categories:
        raise ValueError("needs distinct categories")
    if shares and (len(shares) != len(categories) or not min(shares) >= 0 < sum(shares)):
        raise ValueError("has shares that are not those of its categories")


def refuse_unseen(column: Any, series: pd.Series, codes: np.ndarray, unknown: list[bool]) -> None:
    """Raise `InputError` at the first cell whose category is unknown."""
    bad = np.array([*unknown, False])[codes]
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Column '{column.name}' has the category '{parse.text_key(series.iloc[row]):.60}' in "
            f"{parse.row_name(series, row)}, which no training row had; change it to one of "
            f"{parse.listed(column.categories)}, fit again with rows that have it, or encode with unseen='zeros'."
        )
