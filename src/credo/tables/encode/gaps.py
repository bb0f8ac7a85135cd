"""Cells without a value: what a policy makes of them, and the mark of a gap in a column where training had none.

Where training had gaps, a column has a feature that is 1 at a gap, and what a gap means is learned. Where it had none,
there is nothing to learn from: under "auto" such a cell is marked by NaN, and its row is predicted as an average over
the values that training had (`credo.tables.encode.unseen`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.encode.levels import LEVELS
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("auto", "error", "drop", "impute")
FILLING = ("auto", "impute")  # policies under which a gap is no error
MOST_SPREAD_ROWS = 10_000  # training rows that stand for a column


def gaps_when_learning(series: pd.Series, missing: str) -> np.ndarray:
    """Which training cells are missing; an `InputError` where the policy does not allow any."""
    gaps = parse.missing_mask(series)
    if missing not in FILLING and gaps.any():
        raise InputError(parse.missing_sentence(series, gaps))
    return gaps


def gaps_of(column: Any, series: pd.Series, marked: bool, unseen: str) -> np.ndarray:
    """Which cells are missing; an `InputError` where the column has no way to say so.

    Args:
        column: a column encoder.
        series: its cells.
        marked: rows with a gap that training did not have can be averaged over its values.
        unseen: "error" refuses such rows, "zeros" allows them.
    """
    gaps = parse.missing_mask(series)
    if gaps.any() and column.fill is None and not column.indicator:
        if not marked:
            raise InputError(parse.missing_sentence(series, gaps))
        if unseen == "error":
            raise InputError(
                f"Column '{series.name}' is missing in {parse.row_name(series, int(gaps.argmax()))}, and training had "
                "no such cell; fill it in, or encode with unseen='zeros'."
            )
    return gaps


def write_gaps(column: Any, gaps: np.ndarray, out: np.ndarray) -> None:
    """The indicator, or NaN where training had no gaps; after all other features are written."""
    if column.indicator:
        out[:, -1] = gaps
    elif column.fill is None and gaps.any():
        out[gaps] = np.nan


def indicator_name(column: Any) -> tuple[str, ...]:
    """The name of the feature that is 1 at a gap, where there is one."""
    return (f"{column.name}:missing",) if column.indicator else ()


def spread_of(column: Any, series: pd.Series, weights: np.ndarray | None) -> tuple[float, ...]:
    """The features of `LEVELS` training cells at evenly spaced quantiles, [LEVELS, features] in one row."""
    rows = np.linspace(0, len(series) - 1, min(len(series), MOST_SPREAD_ROWS)).astype(int)
    encoded = np.empty((len(rows), len(column.names)), np.float32)
    column.encode(series.iloc[rows], encoded, unseen="error")
    order = np.argsort(encoded[:, 0], kind="stable")
    mass = np.cumsum(np.ones(len(rows)) if weights is None else weights[rows][order], dtype=np.float64)
    quantiles = np.searchsorted(mass, (np.arange(LEVELS) + 0.5) / LEVELS * mass[-1]).clip(0, len(rows) - 1)
    return tuple(encoded[order[quantiles]].ravel().tolist())


def check_spread(spread: tuple[float, ...], width: int) -> None:
    """Raise `ValueError` where a saved spread is not that of so many features."""
    if len(spread) not in (0, LEVELS * width):
        raise ValueError("has a spread of the wrong length")
