"""A run directory as data for a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.report.run import RunData
from credo.storage.run_directory.read import SavedRun, open_run
from credo.tables.read.parse import text_keys
from credo.tables.read.source import read_source

if TYPE_CHECKING:
    import pandas as pd


def load_run_data(folder: Path | str, table: pd.DataFrame | Path | str | None = None, network: Any = None) -> RunData:
    """Read a run and score it on its held-out rows, or on another table.

    Args:
        folder: a run directory.
        table: rows to score on instead: a frame or a file; needs a run on a table.
        network: the user's own network, as in `credo.load`.
    """
    return run_data(open_run(folder, network), table)


def run_data(run: SavedRun, table: Any = None) -> RunData:
    """A run as data for a report, with the predictions that it makes everywhere else.

    Args:
        run: from `credo.tables`, or a run directory that was read.
        table: as in `load_run_data`.
    """
    encoder, rows = run.encoder, run.heldout
    name = "run" if run.folder is None else Path(run.folder).resolve().name
    facts: dict[str, Any] = {"versions": _versions(run.versions), "notes": (), "split_by": run.table.get("split_by")}
    if table is not None:
        if encoder is None:
            raise InputError(f"The run {run.folder} was not made from a table; make RunData from its predictions.")
        frame = read_source(table).frame
        arrays = encoder.arrays(frame, unseen="zeros")
        facts |= {"rows": "new", "groups": _groups(frame, facts["split_by"], arrays.rows)}
        inputs, targets = arrays.inputs, arrays.targets
    elif encoder is None or not len(rows.get("inputs", ())):
        features = encoder.feature_names if encoder is not None else ()
        return RunData(name, run.fit, run.metrics, encoder=encoder, feature_names=features, **facts)
    else:
        if any(key.startswith("test_") for key in run.metrics):
            facts["metrics"] = run.metrics
        facts |= {"row_numbers": rows.get("rows"), "source": run.table.get("digest"), "groups": rows.get("groups")}
        inputs, targets = rows["inputs"], rows["targets"]
    return RunData.from_encoded(name, run.fit, encoder, inputs, targets, seed=run.table.get("seed", 0), **facts)


def _groups(frame: pd.DataFrame, split_by: str | None, rows: np.ndarray) -> np.ndarray | None:
    """A number for the group of each of these rows of a table; None where it does not say."""
    if split_by is None or split_by not in frame.columns:
        return None
    codes = text_keys(frame[split_by])[0][rows]
    return None if (codes < 0).any() else codes


def _versions(versions: dict[str, Any]) -> dict[str, str]:
    return {name: str(v) for name, v in versions.items() if name not in ("format", "digests")}
