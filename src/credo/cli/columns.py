"""Predictions as the columns of a table, beside columns that say whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.errors import InputError
from credo.tables.columns.kinds import names_rows
from credo.tables.encode.encoder import TableEncoder
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd

# Columns of a real target, the longest endings first.
REAL = ("aleatoric_std", "epistemic_std", "mean", "std", "lower", "upper")
DIGITS, SPREAD_DIGITS = 6, 4


def kept_columns(table: pd.DataFrame, keep: Sequence[str], encoder: TableEncoder) -> list[str]:
    """The columns to carry along: those that are named, or else one that numbers or names the rows."""
    if not keep:
        unused = [name for name in table.columns if name not in {column.name for column in encoder.columns}]
        return next(([name] for name in unused if names_rows(table[name])), [])
    for name in keep:
        parse.find_column(table, name, "--keep")
    return list(dict.fromkeys(keep))


def beside(table: pd.DataFrame, kept: list[str], predictions: pd.DataFrame) -> pd.DataFrame:
    """The columns that are kept, then the predictions."""
    import pandas as pd

    both = [name for name in kept if name in predictions.columns]
    if both:
        raise InputError(f"Predictions have a column '{both[0]}' of their own; rename that of the table.")
    return pd.concat([table[kept].reset_index(drop=True), predictions.reset_index(drop=True)], axis=1)


def rounded(predictions: pd.DataFrame) -> pd.DataFrame:
    """Numbers with six digits, or with four digits of their row's standard deviation where these go further."""
    found = predictions.copy()
    numbers = [name for name in found.columns if found[name].dtype.kind == "f"]
    for name in numbers:
        values = found[name].to_numpy(np.float64)
        spread = found.get("std" if name in REAL else f"{_owner(name)}_std")
        places = _places(values, DIGITS)
        if spread is not None:
            places = np.maximum(places, _places(spread.to_numpy(np.float64), SPREAD_DIGITS))
        found[name] = _round(values, places)
    return found


def _owner(name: str) -> str:
    """The target that a column of several targets belongs to."""
    return next((name.removesuffix(f"_{ending}") for ending in REAL if name.endswith(f"_{ending}")), "")


def _places(values: np.ndarray, digits: int) -> np.ndarray:
    """Decimal places that show so many digits."""
    size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    return digits - 1 - np.floor(np.log10(size)).astype(int)


def _round(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    result = values.copy()
    for place in np.unique(places):
        own = places == place
        # Powers of ten beyond these are no exact floats: such numbers stay as they are.
        if abs(place) <= 22:
            result[own] = np.round(values[own], place)
    return result
