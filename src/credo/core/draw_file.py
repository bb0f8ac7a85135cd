"""Draws in a file: appended while a fit runs, looked at through a memory map when it is done."""

import hashlib
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo.errors import ArtifactError, Unwritable
from credo.runtime import cache_folder

ALIGNED = 64  # bytes at which every array of a row begins
WRITE_BYTES = 2**26  # rows that are put together at once


class Stretch(NamedTuple):
    """A range of bytes of a file, with its digest."""

    start: int
    stop: int
    sha256: str


class DrawFile:
    """Rows of bytes, one for each draw: the arrays [member, ...] of that draw one after another.

    One file, not one for each array: a block of draws is one write, a piece of draws one read, and networks of many
    arrays do not use up the files that a process may open. The file is never truncated: a row that is written again
    after a resume gets the bits that it had, so a memory map of the file stays true.

    Args:
        like: arrays [member, any number of draws, ...] with the shapes and types.
        path: where to write; None is a file without a name, which the system removes after its last use, even after a
            kill.
        count: rows that the file has already.
    """

    def __init__(self, like: Sequence[np.ndarray], path: Path | None = None, count: int = 0):
        self.count = count
        self._parts = [(x.dtype, (x.shape[0], *x.shape[2:])) for x in like]
        sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in self._parts]
        ends = np.cumsum([0] + [-(-size // ALIGNED) * ALIGNED for size in sizes])
        self._slices = [slice(int(a), int(a) + size) for a, size in zip(ends, sizes)]
        self._row_bytes = int(ends[-1])
        self._path, self._synced, self._digest = path, count, hashlib.sha256()
        self._folder = cache_folder().parent / "draws" if path is None else path.parent
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = _open(self._folder, path)
        except OSError as error:
            raise self._refused(error) from error
        weakref.finalize(self, self._file.close)
        if os.fstat(self._file.fileno()).st_size < count * self._row_bytes:
            raise ArtifactError(f"The file {path} is damaged: it has fewer than {count} draws; fit again.")

    @property
    def at_once(self) -> int:
        """Rows that are put together at once."""
        return max(1, WRITE_BYTES // max(1, self._row_bytes))

    def append(self, draws: Sequence[np.ndarray]) -> None:
        """Write draws [member, draw, ...] at the end; where that fails, those before stay."""
        total, step, digest = draws[0].shape[1], self.at_once, self._digest.copy()
        try:
            for start in range(0, total, step):
                rows = self._rows([x[:, start : start + step] for x in draws])
                self._write(rows, self.count + start)
                if self._path is not None:
                    digest.update(rows.data)
        except OSError as error:
            raise self._refused(error) from error
        self.count, self._digest = self.count + total, digest

    def _rows(self, draws: Sequence[np.ndarray]) -> np.ndarray:
        rows = np.zeros((draws[0].shape[1], self._row_bytes), np.uint8)
        for x, where in zip(draws, self._slices):
            flat = np.ascontiguousarray(np.swapaxes(x, 0, 1)).reshape(len(rows), math.prod(x.shape) // len(rows))
            rows[:, where] = flat.view(np.uint8)
        return rows

    def _write(self, rows: np.ndarray, first: int) -> None:
        self._file.seek(first * self._row_bytes)
        rest = rows.data.cast("B")
        while rest:  # the system may take less than all at once
            rest = rest[self._file.write(rest) :]

    def sync(self) -> Stretch:
        """Flush to disk, because a checkpoint is about to name these rows; returns what is new since the last call."""
        os.fsync(self._file.fileno())
        stretch = Stretch(self._synced * self._row_bytes, self.count * self._row_bytes, self._digest.hexdigest())
        self._synced, self._digest = self.count, hashlib.sha256()
        return stretch

    def rewind_sync(self) -> None:
        """Let the next `sync` return everything; a file that was removed is written again from the open descriptor."""
        self._synced, self._digest = 0, hashlib.sha256()
        if self._path is not None and not self._path.exists():
            try:
                self._copy_to(self._path)
            except OSError as error:
                raise self._refused(error) from error
        self._file.seek(0)
        remaining = self.count * self._row_bytes
        while remaining and (piece := self._file.read(min(remaining, WRITE_BYTES))):
            self._digest.update(piece)
            remaining -= len(piece)

    def _copy_to(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = _open(self._folder, path)
        weakref.finalize(self, copy.close)
        self._file.seek(0)
        shutil.copyfileobj(self._file, copy)
        self._file = copy

    def draws(self) -> list[np.ndarray]:
        """Read-only memory maps [member, draw, ...] of the draws so far; they outlive this object and the file."""
        table = np.memmap(self._file, np.uint8, "r", shape=(self.count, self._row_bytes))
        return [
            np.swapaxes(table[:, where].view(dtype).reshape(self.count, *shape), 0, 1)
            for (dtype, shape), where in zip(self._parts, self._slices)
        ]

    def like(self) -> list[np.ndarray]:
        """Arrays without draws, with the shapes and types."""
        return [np.zeros((shape[0], 0, *shape[1:]), dtype) for dtype, shape in self._parts]

    def _refused(self, error: OSError) -> Unwritable:
        return Unwritable(
            f"Cannot write draws to {self._folder}: {error.strerror or error}; make room, or keep fewer draws with "
            "thin. What was drawn before is kept."
        )


def _open(folder: Path, path: Path | None) -> Any:
    # Not the system's folder for temporary files, which often lies in memory.
    if path is None:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    return open(path, "r+b" if path.exists() else "w+b", buffering=0)
