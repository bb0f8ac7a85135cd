"""Quantiles of a number's feature over the training rows: where a piecewise linear function of it bends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from credo.tables.encode.gaps import MOST_SPREAD_ROWS
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

PARTS = 16  # of equal probability, that quantiles cut a column into


def cuts_of(column: Any, series: pd.Series, weights: np.ndarray | None) -> tuple[float, ...]:
    """The `PARTS` + 1 quantiles of the first feature, from the smallest to the largest value that is not missing."""
    present = np.flatnonzero(~parse.missing_mask(series))
    rows = present[np.linspace(0, len(present) - 1, min(len(present), MOST_SPREAD_ROWS)).astype(int)]
    encoded = np.empty((len(rows), len(column.names)), np.float32)
    column.encode(series.iloc[rows], encoded, unseen="error")
    values = encoded[:, 0].astype(np.float64)
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(np.ones(len(rows)) if weights is None else weights[rows][order], dtype=np.float64)
    places = np.searchsorted(mass, np.linspace(0.0, 1.0, PARTS + 1) * mass[-1]).clip(0, len(rows) - 1)
    return tuple(values[order[places]].tolist())


def coarser(cuts: tuple[float, ...], parts: int) -> np.ndarray:
    """Cuts into another number of parts; exact where it divides `PARTS`, else between two quantiles.

    Example:
        >>> coarser((0.0, 1.0, 4.0), 1).tolist()
        [0.0, 4.0]
    """
    return np.interp(np.linspace(0.0, 1.0, parts + 1), np.linspace(0.0, 1.0, len(cuts)), cuts)


def check_cuts(cuts: tuple[float, ...]) -> None:
    """Raise `ValueError` where saved cuts are no rising quantiles."""
    if cuts and (len(cuts) != PARTS + 1 or (np.diff(cuts) < 0).any()):
        raise ValueError("has cuts that are no quantiles")
