"""What a benchmark has done so far: one file for each piece of work, written whole or not at all.

Several processes, on one machine or on many, may fill one folder; a study that was stopped goes on from there. What a
page shows is also kept beside it, all records in one file, so that who has the page has its numbers.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from credo.errors import ArtifactError
from credo.storage.archives import read_json
from credo.storage.atomic_write import write_file


class Records:
    """A folder of records by name; None keeps nothing.

    Args:
        folder: of the records.
        packed: a file that `pack` wrote; its records count, too.
    """

    def __init__(self, folder: Path | None, packed: Path | None = None):
        self.folder = folder
        self._packed = _json(packed) if packed is not None and packed.is_file() else {}

    def read(self, name: str) -> dict[str, Any] | None:
        """A record, or None where there is none."""
        if self.folder is None or not (self.folder / _file(name)).is_file():
            return self._packed.get(_file(name))
        return _json(self.folder / _file(name))

    def write(self, name: str, record: dict[str, Any]) -> None:
        """Keep a record, with the time of day."""
        if self.folder is not None:
            stamped = record | {"written": datetime.now(UTC).isoformat(timespec="seconds")}
            write_file(self.folder / _file(name), json.dumps(stamped, indent=1))

    def all(self, benchmark: str) -> list[dict[str, Any]]:
        """All records of a benchmark, by name."""
        return list(self._all(benchmark).values())

    def pack(self, benchmark: str, path: Path) -> None:
        """Write all records of a benchmark into one file."""
        lines = (f"{json.dumps(name)}: {json.dumps(record)}" for name, record in self._all(benchmark).items())
        write_file(path, "{\n" + ",\n".join(lines) + "\n}\n")

    def _all(self, benchmark: str) -> dict[str, dict[str, Any]]:
        files = self.folder.glob(f"{benchmark}-*.json") if self.folder is not None and self.folder.is_dir() else ()
        packed = {name: record for name, record in self._packed.items() if name.startswith(f"{benchmark}-")}
        return dict(sorted((packed | {path.name: _json(path) for path in files}).items()))


def _file(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name) + ".json"


def _json(path: Path) -> dict[str, Any]:
    try:
        record = read_json(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is damaged; remove it to run that part again.") from error
    if not isinstance(record, dict):
        raise ArtifactError(f"{path} is not a record of a benchmark; remove it to run that part again.")
    return record


def latest(entries: Iterable[dict[str, Any]], name: Callable[[dict[str, Any]], str]) -> dict[str, list[dict[str, Any]]]:
    """Records by name. Of several fingerprints under a name that which has most records is taken, then the newest.

    Example:
        >>> latest([{"fingerprint": "a"}, {"fingerprint": "b"}, {"fingerprint": "b"}], lambda record: "map")
        {'map': [{'fingerprint': 'b'}, {'fingerprint': 'b'}]}
    """
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in entries:
        groups.setdefault(name(record), {}).setdefault(record["fingerprint"], []).append(record)
    return {
        key: max(marks.values(), key=lambda group: (len(group), max(record.get("written", "") for record in group)))
        for key, marks in groups.items()
    }


def fingerprint(*things: Any) -> str:
    """A short mark of settings and arrays: other settings are other records.

    Example:
        >>> fingerprint({"steps": 3}) == fingerprint({"steps": 3})
        True
        >>> fingerprint({"steps": 3}) == fingerprint({"steps": 4})
        False
    """
    digest = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray):
            digest.update(f"{thing.dtype}{thing.shape}".encode() + np.ascontiguousarray(thing).tobytes())
        else:
            digest.update(repr(thing).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


def machine() -> str:
    """Where this runs, without any name of the machine.

    Example:
        >>> "JAX" in machine()
        True
    """
    import jax

    from credo.runtime import configure

    configure()
    kind = jax.devices()[0].device_kind
    return f"{without_accelerator() if kind == 'cpu' else kind}, JAX {jax.__version__}"


def without_accelerator(*versions: str) -> str:
    """Where models that use no accelerator run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return ", ".join([f"{cores} cores ({platform.machine()})", *versions])
