"""How a column of free text becomes input features: hashed words, weighted by how rare they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from credo.tables.encode import config, weighted
from credo.tables.encode.gaps import check_spread, gaps_of, gaps_when_learning, indicator_name, spread_of, write_gaps
from credo.tables.encode.hashed_words import word_counts, word_features
from credo.tables.encode.levels import spread_values
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

FEWEST, MOST = 16, 128  # features
ROWS = 3  # training rows for each feature, between these
CHUNK = 20_000  # texts that are counted at once


@dataclass(frozen=True)
class TextColumn:
    """A text as the words that it holds (`credo.tables.encode.hashed_words`), whatever their order.

    `rarity` is log((1 + N)/(1 + n)) + 1 for each feature, which n of N training texts have. A gap is a text without
    words and an indicator, or an average over texts of training (`spread`), as for numbers.
    """

    kind: ClassVar[str] = "text"
    name: str
    rarity: tuple[float, ...]
    fill: str | None = None
    indicator: bool = False
    spread: tuple[float, ...] = config.added(())

    def __post_init__(self) -> None:
        if not self.rarity or min(self.rarity) <= 0:
            raise ValueError("needs a rarity above 0 for each feature")
        check_spread(self.spread, len(self.rarity))

    @classmethod
    def learn(cls, series: pd.Series, weights: np.ndarray | None, missing: str) -> TextColumn | None:
        """Learn how rare words are, on as many features as the rows allow; None if there are no words."""
        gaps = gaps_when_learning(series, missing)
        codes, keys = parse.text_keys(series)
        size = min(MOST, max(FEWEST, 1 << (max(len(series), 1) // ROWS).bit_length() - 1))
        mass = weighted.totals(codes, len(keys), weights).astype(np.float64)
        having = np.zeros(size)
        for start in range(0, len(keys), CHUNK):
            part = slice(start, start + CHUNK)
            having += mass[part] @ (word_counts(keys[part], size) != 0)
        if not having.any():
            return None
        rarity = np.log((1.0 + mass.sum()) / (1.0 + having)) + 1.0
        fills = missing == "impute" or bool(missing == "auto" and gaps.any())
        column = cls(str(series.name), tuple(rarity.tolist()), "" if fills else None, bool(gaps.any()))
        if missing != "auto" or column.indicator:
            return column
        return replace(column, spread=spread_of(column, series, weights))

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each feature, then the indicator."""
        return (*(f"{self.name}:words_{i + 1}" for i in range(len(self.rarity))), *indicator_name(self))

    @property
    def values(self) -> np.ndarray | None:
        """The features of texts that stand for training; None where a gap is filled in or an error."""
        return spread_values(self.spread)

    def new(self, encoded: np.ndarray) -> None:
        """No text is new: words that training did not have are words."""
        return None

    def encode(self, series: pd.Series, out: np.ndarray, *, unseen: str) -> None:
        """Write the hashed words of each row."""
        gaps = gaps_of(self, series, bool(self.spread), unseen)
        codes, keys = parse.text_keys(series)
        texts = [*keys, ""]
        for start in range(0, len(codes), CHUNK):
            rows = slice(start, start + CHUNK)
            out[rows, : len(self.rarity)] = word_features([texts[code] for code in codes[rows]], self.rarity)
        write_gaps(self, gaps, out)
