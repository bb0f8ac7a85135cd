"""A long run's results in a folder, so that it can resume: its settings and its cells.

FILE                     settings, and the run's other content
cells/NAME.record        a cell: its facts and the digest of its arrays, under a digest of its own
cells/NAME.safetensors   those arrays
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from credo.errors import ArtifactError, InputError, Unwritable
from credo.storage.archives import read_json
from credo.storage.atomic_write import write_file
from credo.storage.locks import locked
from credo.storage.sealed import DAMAGE, check, read_arrays, read_record, write_arrays, write_record

LONGEST = 100  # letters of a cell's name that stay in the name of its file


class Store:
    """A folder of cells; where it is None nothing is kept.

    Args:
        folder: where.
        file: the name of the file with the settings.
        kind: what the folder holds, for sentences: "a comparison".
        settings: what every cell depends on; a folder with others is refused. None takes those of the folder.
    """

    def __init__(self, folder: Path | None, file: str, kind: str, settings: dict[str, Any] | None = None):
        self.folder, self.kind = folder, kind
        self.path = Path(file) if folder is None else folder / file
        self.settings: dict[str, Any] = json.loads(json.dumps(settings or {}, default=str))
        self.content: dict[str, Any] = {}  # of the file, beside the settings
        self.notes: list[str] = []
        if folder is None or not self.path.exists():
            return
        with self.understood():
            self.content = dict(read_json(self.path))
            stored = dict(self.content.pop("settings"))
        now = stored if settings is None else self.settings
        changed = sorted(k for k in stored.keys() | now.keys() if stored.get(k) != now.get(k))
        if changed:
            raise InputError(
                f"{folder} holds {kind} with other settings ({', '.join(changed)}): name another folder or repeat them."
            )
        self.settings = stored

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Turn errors of the block, which reads the file's content, into one sentence."""
        try:
            yield
        except (OSError, *DAMAGE) as error:
            raise ArtifactError(
                f"{self.path} is damaged or not a record of {self.kind}: remove it or name another folder."
            ) from error

    def save(self, **content: Any) -> None:
        """Write the settings, and the run's other content."""
        if self.folder is not None:
            write_document(self.path, self.settings, content)

    def read(self, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Facts and arrays of a cell; None where it is not done, or damaged, which a note says."""
        record, file = self._files(name)
        if self.folder is None or not os.path.lexists(record):
            return None
        try:
            content = read_record(record)
            check(file, content["arrays"]["sha256"])
            return content["facts"], read_arrays(file, content["arrays"])
        except (ArtifactError, OSError, *DAMAGE) as error:
            self.notes.append(f"What was kept of {name} was damaged ({error}) and is computed again.")
            return None

    def write(self, name: str, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Keep a cell; the record is written last."""
        if self.folder is None:
            return
        if not self.path.exists():
            self.save()
        record, file = self._files(name)
        try:
            write_record(record, {"facts": facts, "arrays": write_arrays(file, arrays)})
        except OSError as error:
            raise Unwritable(f"Cannot write {record}: {error.strerror or error}; make room first.") from error

    def _files(self, name: str) -> tuple[Path, Path]:
        short = re.sub(r"[^\w.=-]+", "_", name)[:LONGEST]
        if short != name:  # two names may look alike
            short += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
        cells = self.path.parent / "cells"
        return cells / f"{short}.record", cells / f"{short}.safetensors"


def write_document(path: Path, settings: dict[str, Any], content: dict[str, Any]) -> None:
    """Write the file that a store begins with."""
    write_file(path, json.dumps({"settings": settings, **content}, indent=1) + "\n")


@contextmanager
def open_store(folder: Any, file: str, kind: str, settings: dict[str, Any]) -> Iterator[Store]:
    """A store that no other run writes to meanwhile."""
    with locked(folder):
        yield Store(None if folder is None else Path(folder), file, kind, settings)
