"""A run directory as data for a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.report.run import RunData
from credo.tables.read.parse import text_keys

if TYPE_CHECKING:
    import pandas as pd


def load_run_data(folder: Path | str, table: pd.DataFrame | Path | str | None = None, network: Any = None) -> RunData:
    """Read a run and score it on its held-out rows, or on another table.

    Args:
        folder: a run directory.
        table: rows to score on instead: a frame or a file; needs a run on a table.
        network: the user's own network, as in `credo.load`.
    """
    from credo.storage.run_directory.read import open_run

    run = open_run(folder, network)
    name = Path(folder).resolve().name
    known: dict[str, Any] = {"versions": _versions(run.versions), "notes": (), "split_by": run.table.get("split_by")}
    if table is not None:
        if run.encoder is None:
            raise InputError(f"The run {folder} was not made from a table; make RunData from its predictions.")
        frame = _frame(table)
        arrays = run.encoder.arrays(frame, unseen="zeros")
        known |= {"rows": "new", "groups": _groups(frame, known["split_by"], arrays.rows)}
        return RunData.from_encoded(name, run.fit, run.encoder, arrays.inputs, arrays.targets, **known)
    if run.encoder is None or not len(run.heldout.get("inputs", ())):
        features = run.encoder.feature_names if run.encoder is not None else ()
        return RunData(name, run.fit, run.metrics, encoder=run.encoder, feature_names=features, **known)
    if any(key.startswith("test_") for key in run.metrics):
        known["metrics"] = run.metrics
    held = run.heldout
    known |= {"row_numbers": held.get("rows"), "source": run.table.get("digest"), "groups": held.get("groups")}
    return RunData.from_encoded(name, run.fit, run.encoder, held["inputs"], held["targets"], **known)


def _groups(frame: pd.DataFrame, split_by: str | None, rows: np.ndarray) -> np.ndarray | None:
    """A number for the group of each of these rows of a table; None where it does not say."""
    if split_by is None or split_by not in frame.columns:
        return None
    codes = text_keys(frame[split_by])[0][rows]
    return None if (codes < 0).any() else codes


def _versions(found: dict[str, Any]) -> dict[str, str]:
    return {name: str(v) for name, v in found.items() if name not in ("format", "digests")}


def _frame(table: pd.DataFrame | Path | str) -> pd.DataFrame:
    if not isinstance(table, str | Path):
        return table
    from credo.tables.read.files import read_table

    return read_table(table)
