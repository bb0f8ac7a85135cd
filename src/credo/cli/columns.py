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


def carried_columns(table: pd.DataFrame, keep: Sequence[str], encoder: TableEncoder) -> list[str]:
    """The columns to carry along: those that are named, or else one that numbers or names the rows."""
    if not keep:
        unused = [name for name in table.columns if name not in {column.name for column in encoder.columns}]
        return next(([name] for name in unused if names_rows(table[name])), [])
    for name in keep:
        parse.find_column(table, name, "--keep")
    return list(dict.fromkeys(keep))


def beside(table: pd.DataFrame, carried: list[str], predictions: pd.DataFrame) -> pd.DataFrame:
    """The columns that are carried along, then the predictions."""
    import pandas as pd

    shared = [name for name in carried if name in predictions.columns]
    if shared:
        raise InputError(f"Predictions have a column '{shared[0]}' of their own; rename that of the table.")
    return pd.concat([table[carried].reset_index(drop=True), predictions.reset_index(drop=True)], axis=1)


def round_numbers(predictions: pd.DataFrame) -> pd.DataFrame:
    """Numbers with six digits, or with four digits of their row's standard deviation where these go further."""
    result = predictions.copy()
    numbers = [name for name in result.columns if result[name].dtype.kind == "f"]
    for name in numbers:
        values = result[name].to_numpy(np.float64)
        spread = result.get("std" if name in REAL else f"{_owner(name)}_std")
        decimals = _decimals(values, DIGITS)
        if spread is not None:
            decimals = np.maximum(decimals, _decimals(spread.to_numpy(np.float64), SPREAD_DIGITS))
        result[name] = _round(values, decimals)
    return result


def _owner(name: str) -> str:
    """The target that a column of several targets belongs to."""
    return next((name.removesuffix(f"_{ending}") for ending in REAL if name.endswith(f"_{ending}")), "")


def _decimals(values: np.ndarray, digits: int) -> np.ndarray:
    """Decimal places that show so many digits."""
    size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    return digits - 1 - np.floor(np.log10(size)).astype(int)


def _round(values: np.ndarray, decimals: np.ndarray) -> np.ndarray:
    result = values.copy()
    for decimal in np.unique(decimals):
        mask = decimals == decimal
        # Powers of ten beyond these are no exact floats: such numbers stay as they are.
        if abs(decimal) <= 22:
            result[mask] = np.round(values[mask], decimal)
    return result
