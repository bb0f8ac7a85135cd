"""Cells of a comparison on disk: a run that was stopped goes on where it was."""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from credo.errors import ArtifactError, InputError
from credo.storage.archives import Damaged, parse_json, read_arrays, read_json
from credo.storage.atomic_write import write_file

PLAN = "comparison.json"


class Store:
    """A folder of cells, or none at all where `folder` is None."""

    def __init__(self, folder: Path | None, fingerprint: str):
        self.folder = folder
        self.notes: tuple[str, ...] = ()
        if folder is None:
            return
        path = folder / PLAN
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; choose another folder.")
        if path.is_file():
            known = _json(path)
            if known.get("fingerprint") != fingerprint:
                raise InputError(
                    f"{folder} holds another comparison (another table, seed, budget or setting); choose another "
                    "folder, or remove it."
                )
        elif folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"The folder {folder} exists and is not a comparison; choose another one.")
        else:
            write_file(path, json.dumps({"format": "credo-comparison", "version": 1, "fingerprint": fingerprint}))

    def _place(self, model: str, fold: int) -> Path:
        assert self.folder is not None
        return self.folder / "cells" / f"{model}-{fold}.npz"

    def read(self, model: str, fold: int) -> dict[str, Any] | None:
        """A cell that is done, or None; one that is damaged will be computed again, and a note says so."""
        if self.folder is None or not os.path.lexists(self._place(model, fold)):
            return None
        try:
            return _cell(read_arrays(self._place(model, fold)))
        except (OSError, Damaged) as error:
            self.notes += (f"The scores of {model} on fold {fold + 1} were damaged ({error}) and computed again.",)
            return None

    def write(self, model: str, fold: int, cell: dict[str, Any]) -> None:
        """Keep a cell."""
        if self.folder is None:
            return
        facts = {name: value for name, value in cell.items() if name != "rows"}
        held = io.BytesIO()
        arrays: dict[str, Any] = {f"rows_{name}": values for name, values in cell["rows"].items()}
        np.savez(held, facts=np.array(json.dumps(facts)), **arrays)
        write_file(self._place(model, fold), held.getvalue())


def _cell(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    facts = parse_json(str(arrays.pop("facts", "")))
    rows = {name.removeprefix("rows_"): values for name, values in arrays.items()}
    whole = isinstance(facts, dict) and "refused" in facts and all(name.startswith("rows_") for name in arrays)
    if not whole or len({x.shape for x in rows.values()}) > 1 or any(x.dtype.kind not in "fiub" for x in rows.values()):
        raise Damaged("it is not the record of a cell")
    return facts | {"rows": rows}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is damaged; remove it and compare again.") from error
    return found if isinstance(found, dict) else {}
