"""Which rows and columns of a table a fit or a comparison sees, before anything is learned from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credo.errors import InputError
from credo.tables.read import parse

if TYPE_CHECKING:
    import pandas as pd


def rows_with_targets(frame: pd.DataFrame, targets: Sequence[str], missing: str) -> tuple[pd.DataFrame, list[str]]:
    """The rows whose targets are known, where cells may be missing, and a note about the others.

    A row without a target can neither teach nor test; under "error" it stays and is refused later, else it is
    left out.
    """
    present = np.ones(len(frame), bool)
    for name in targets:
        column = parse.find_column(frame, name, "the target")
        if missing != "error":
            present &= ~parse.missing_mask(column)
    if present.all():
        return frame, []
    note = f"{int((~present).sum())} of {len(present)} rows have no {parse.listed(targets)} and are left out."
    return frame[present], [note]


def without_columns(
    frame: pd.DataFrame, drop: Sequence[str], targets: Sequence[str], used: Collection[str | None]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table without the columns that a person dropped, and those of them that say something else.

    A column that holds out rows or weighs them can be dropped, too: it keeps that role and is no input.
    """
    for name in drop:
        parse.find_column(frame, name, "--drop")
        if name in targets:
            raise InputError(f"Column '{name}' is the target and cannot be dropped; name another one for --drop.")
    return frame.drop(columns=[name for name in drop if name not in used]), tuple(n for n in drop if n in used)
