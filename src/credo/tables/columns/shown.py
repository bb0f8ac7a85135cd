"""The inputs of a table as a reader thinks of them: one for each column, and one for each clock of a date.

A date is elapsed days and the hands of some clocks. Moved all together, a few dates stand on whatever weekday they are,
so that a week shows as a trend. Apart, elapsed days show the trend with all weekdays of the rows averaged, and every
clock shows its own course.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.tables.columns.decode import decode, feature_groups, has_value
from credo.tables.encode.columns import Column, DateColumn
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.features import PARTS

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = 24.0
# So many periods must lie between the first and the last row: the course of a single year is a trend as well.
WHOLE_PERIODS = 2


@dataclass(frozen=True)
class Shown:
    """One input.

    Attributes:
        name: what it is called: that of the column, and of the clock where it is one.
        column: how its column was encoded.
        places: of its features among the inputs.
        column_places: places of all features of the column.
        part: the clock that this is, one of `PARTS`; None for what is no clock.
    """

    name: str
    column: Column
    places: tuple[int, ...]
    column_places: tuple[int, ...]
    part: str | None = None

    def has_value(self, inputs: np.ndarray) -> np.ndarray:
        """Which rows of encoded inputs [n, features] have a cell in this column [n]."""
        return has_value(self.column, inputs[:, list(self.column_places)])

    def cells(self, features: Any) -> np.ndarray:
        """The features of this input [n, places] in units of the table; of a clock its weekday (0 is Monday), its day
        of the year (0 is new year) or its hour."""
        if self.part is None:
            return decode(self.column, features)
        features = np.asarray(features, np.float64)
        turn = np.arctan2(features[:, 0], features[:, 1]) / (2 * np.pi) % 1.0
        if self.part == "hour_of_day":
            return np.round(HOURS * turn * 3600) / 3600 % HOURS
        return np.round(PARTS[self.part] * turn) % round(PARTS[self.part])

    def hands(self, cells: Any) -> np.ndarray:
        """The features [n, 2] of what `cells` gave of a clock."""
        period = HOURS if self.part == "hour_of_day" else PARTS[str(self.part)]
        angle = 2 * np.pi * np.asarray(cells, np.float64) / period
        return np.column_stack([np.sin(angle), np.cos(angle)]).astype(np.float32)


def shown_inputs(encoder: TableEncoder, inputs: np.ndarray) -> dict[str, Shown]:
    """Name → input, for every column and for every clock of a date that can be told from its trend.

    Args:
        encoder: the table's encoder.
        inputs: encoded rows, whose dates say how many periods of a clock they span.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=60), "y": [1.0, 2.0] * 30})
        >>> encoder = TableEncoder.learn(frame, "y", "regression")
        >>> {name: one.places for name, one in shown_inputs(encoder, encoder.inputs(frame)).items()}
        {'day': (0, 1, 2), 'day: day of week': (3, 4)}
    """
    groups = feature_groups(encoder)
    shown: dict[str, Shown] = {}
    for column in encoder.columns:
        column_places = groups[column.name]
        clocks = _clocks(column, column_places, inputs) if isinstance(column, DateColumn) else {}
        apart = {feature for places in clocks.values() for feature in places}
        shown[column.name] = Shown(
            column.name, column, tuple(p for p in column_places if p not in apart), column_places
        )
        for part, places in clocks.items():
            name = f"{column.name}: {part.replace('_', ' ')}"
            while name in groups:
                name += " (clock)"
            shown[name] = Shown(name, column, places, column_places, part)
    return shown


def _clocks(column: DateColumn, column_places: tuple[int, ...], inputs: np.ndarray) -> dict[str, tuple[int, int]]:
    features = inputs[:, list(column_places)]
    elapsed = column.scale * np.asarray(features[has_value(column, features), 0], np.float64)
    span = float(np.ptp(elapsed)) if len(elapsed) else 0.0
    start = column_places[0] + 1
    places = {part: (start + 2 * i, start + 2 * i + 1) for i, part in enumerate(column.parts)}
    return {part: pair for part, pair in places.items() if span >= WHOLE_PERIODS * PARTS[part]}
