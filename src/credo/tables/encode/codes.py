"""A column of many categories as one feature: the code of its category, for networks that learn a vector for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from credo.tables.encode import config, features, weighted
from credo.tables.encode.categories import check_categories, refuse_unseen
from credo.tables.encode.gaps import gaps_of, gaps_when_learning, indicator_name, write_gaps
from credo.tables.encode.levels import LEVELS, code_levels, stratified_levels
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

PULL = 2.0  # rows at the common mean that a category's own mean is taken together with, where categories are ordered


@dataclass(frozen=True)
class CodeColumn:
    """A category as its place among `categories`, the commonest first.

    A gap is the category `fill` with an indicator or, where `gap`, has the next code. The code after it is that of
    categories which training did not have. `typical` are the codes of `LEVELS` categories that stand for training.
    """

    kind: ClassVar[str] = "codes"
    name: str
    categories: tuple[str, ...]
    typical: tuple[int, ...]
    fill: str | None = None
    indicator: bool = False
    gap: bool = False
    gaps: bool = config.added(False)  # may come, although training had none

    def __post_init__(self) -> None:
        check_categories(self.categories, ())
        if self.fill is not None and self.fill not in self._positions:
            raise ValueError("fills in an unknown category")
        if len(self.typical) != LEVELS or not all(0 <= code < self.levels for code in self.typical):
            raise ValueError("has typical categories that are none")

    @classmethod
    def learn(
        cls, series: pd.Series, weights: np.ndarray | None, missing: str, outcome: np.ndarray | None = None
    ) -> CodeColumn:
        """Learn the categories, as many as there are.

        Args:
            series: the cells of the training rows.
            weights: of the rows.
            missing: what to do with missing cells.
            outcome: a number for each row, by whose means the categories are ordered before typical ones are taken;
                None: by how common they are.
        """
        gaps = gaps_when_learning(series, missing)
        codes, keys = parse.text_keys(series)
        mass = weighted.totals(codes, len(keys), weights)
        order = sorted(range(len(keys)), key=lambda code: (-mass[code], keys[code]))
        if outcome is not None:
            weighted_outcome = outcome if weights is None else outcome * weights
            centre = float(np.average(outcome[codes >= 0], weights=None if weights is None else weights[codes >= 0]))
            total = np.bincount(codes[codes >= 0], weighted_outcome[codes >= 0], minlength=len(keys))
            rank = np.argsort((total - centre * mass) / (mass + PULL), kind="stable")
        else:
            rank = np.array(order)
        position = np.empty(len(keys), np.int64)
        position[order] = np.arange(len(keys))
        typical = position[rank[stratified_levels(mass[rank].tolist(), len(keys))]]
        categories = tuple(keys[code] for code in order)
        fill = categories[0] if missing == "impute" else None
        gap, may_come = bool(gaps.any() and fill is None), missing == "auto" and not gaps.any()
        return cls(
            str(series.name), categories, tuple(typical.tolist()), fill, bool(gaps.any() and fill is not None), gap,
            may_come,
        )  # fmt: skip

    @property
    def levels(self) -> int:
        """How many codes training had."""
        return len(self.categories) + self.gap

    @property
    def names(self) -> tuple[str, ...]:
        """The code, then the indicator."""
        return (self.name, *indicator_name(self))

    @property
    def values(self) -> np.ndarray:
        """The features at categories that stand for training, for a cell that is not known."""
        return code_levels(self.typical, len(self.names))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.categories)}

    def new(self, encoded: np.ndarray) -> np.ndarray:
        """Which rows of features [n, features] have a category that training did not have."""
        return features.beyond(encoded, self.levels)

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the code of each row's category; an unknown one is an error or, by `unseen`, the code after all."""
        gaps = gaps_of(self, series, self.gaps or self.gap, unseen if not self.gap else "zeros")
        codes, keys = parse.text_keys(series)
        if parse.is_text(series):
            positions = [self._positions.get(key, -1) for key in keys]
        else:
            positions = features.category_places(keys, self.categories, False)
        if unseen == "error":
            refuse_unseen(self, series, codes, [position < 0 for position in positions])
        missing = len(self.categories) if self.gap else -1 if self.fill is None else self._positions[self.fill]
        feature = np.array(
            [self.levels if position < 0 else position for position in positions] + [missing], np.float32
        )
        out[:, 0] = feature[codes]
        if not self.gap:
            write_gaps(self, gaps, out)
