"""Checkpoints: a record of where the fit is, which names every file that belongs to it with its digest.

state/NUMBER            the record: the host's part, and the files of this checkpoint
carry/NUMBER            key and state of every member
starts/STAGE-PHASE-…    the carry at the first step of the phase
segments/STAGE-PHASE-…  metrics and draws between two checkpoints
draws/STAGE-PHASE-…     draws that are too many for memory, to which the fit appends; see `credo.training.record`

A record is written last, so a kill leaves the one before it. The last two are kept: where a file of the newest is
damaged, the fit goes on from the other.
"""

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.core.typing import PyTree
from credo.errors import ArtifactError, InputError, Unwritable
from credo.storage.sealed import DAMAGE, check, read_arrays, read_record, write_arrays, write_record
from credo.training.host import Host

FORMAT = 1
KINDS = ("carry", "starts", "segments")


@dataclasses.dataclass(frozen=True)
class Saved:
    """A checkpoint whose files are undamaged.

    host: the host's part; carry, start: names of files; files: digest and arrays of each by name; trouble: what is
    wrong with the checkpoint after it, "" where this is the newest.
    """

    folder: Path
    host: Host
    carry: str
    start: str
    files: dict[str, dict[str, Any]]
    trouble: str = ""

    @staticmethod
    def read(folder: Path, number: int) -> "Saved":
        """The checkpoint of this number; ArtifactError, as the end of a sentence, where anything is damaged."""
        document = read_record(folder / "state" / _digits(number))
        if document.get("format") != FORMAT or document["number"] != number:
            raise ArtifactError(f"state/{_digits(number)} is not a record of this checkpoint")
        host, files = Host.of(document["host"]), document["files"]
        saved = Saved(folder, host, document["carry"], document["start"], files)
        if not {saved.carry, saved.start, *(f"segments/{name}" for name in host.segments)} <= files.keys():
            raise ArtifactError(f"state/{_digits(number)} does not tell of all its files")
        for name, entry in files.items():
            check(saved.path(name), entry["sha256"])
            for draws in entry.get("draws", ()):
                check(folder / "draws" / Path(draws["file"]).name, draws["sha256"], draws["start"], draws["stop"])
        return saved

    def path(self, name: str) -> Path:
        """The path of a file: names cannot lead out of the folder."""
        kind, _, file = name.partition("/")
        if kind not in KINDS or file != Path(file).name:
            raise ArtifactError(f"it names {name!r}, which is none of its files")
        return self.folder / kind / file

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of a file."""
        return read_arrays(self.path(name), self.files[name])

    def tree(self, name: str, like: PyTree) -> PyTree:
        """A carry, with the structure of `like`."""
        leaves, treedef = jax.tree.flatten(like)
        arrays = self.arrays(name)
        saved = [arrays[str(i)] for i in range(len(arrays))]
        if [(x.shape, x.dtype) for x in saved] != [(tuple(x.shape), np.dtype(x.dtype)) for x in leaves]:
            raise ArtifactError(
                f"The checkpoint in {self.folder} was written by another version of credo; remove it and fit again."
            )
        return jax.tree.unflatten(treedef, saved)


class Checkpoint:
    """A folder to save to and resume from.

    Args:
        folder: where; made when first needed.
        every: seconds between two saves.
    """

    def __init__(self, folder: str | os.PathLike, every: float = 30.0):
        self.folder = Path(folder).absolute()
        self.every = every
        self._last: Saved | None = None

    @staticmethod
    def of(value: Any) -> "Checkpoint | None":
        """A checkpoint from a path, from itself, or none."""
        return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)

    def save(
        self, carry: PyTree, start: PyTree | None, host: Host, segments: dict[str, Any],
        draws: dict[str, dict[str, Any]],
    ) -> None:  # fmt: skip
        """Write what is new since the last save, then the record that names it; a kill in between loses nothing.

        Args:
            carry: key and state of every member.
            start: the carry at the first step of the phase, None where the last save had it.
            host: where the fit is; `saves` numbers this checkpoint, and `segments` names all that belong to it, the
                new ones included.
            segments: arrays of the new ones.
            draws: of those of them whose draws lie in a file: which bytes of it they are.
        """
        number = host.saves
        try:
            files = {} if self._last is None else dict(self._last.files)
            for name, arrays in segments.items():
                files[f"segments/{name}"] = write_arrays(self.folder / "segments" / name, arrays)
                if name in draws:
                    files[f"segments/{name}"]["draws"] = [draws[name]]
            first = "" if self._last is None else self._last.start
            if start is not None:
                first = f"starts/{host.stage}-{host.phase}-{_digits(number)}"
                files[first] = write_arrays(self.folder / first, _numbered(start))
            current = f"carry/{_digits(number)}"
            files[current] = write_arrays(self.folder / current, _numbered(carry))
            names = [current, first, *(f"segments/{name}" for name in host.segments)]
            saved = Saved(self.folder, host, current, first, {name: files[name] for name in names})
            position = {"host": dataclasses.asdict(host), "carry": current, "start": first}
            document = {"format": FORMAT, "number": number} | position | {"files": saved.files}
            write_record(self.folder / "state" / _digits(number), document)
            self._prune(number, saved)
        except OSError as error:
            raise Unwritable(
                f"Cannot write the checkpoint in {self.folder}: {error.strerror or error}; make room first."
            ) from error
        self._last = saved

    def _prune(self, number: int, saved: Saved) -> None:
        """Remove what neither this checkpoint nor the one before it names."""
        before = max((n for n in self._numbers() if n < number), default=None)
        used = set(saved.files)
        if before is not None:
            try:
                used |= set(self._files_of(before))
            except (ArtifactError, *DAMAGE):  # it was passed over on resuming
                before = None
        used |= {f"state/{_digits(n)}" for n in (number, before) if n is not None}
        for kind in (*KINDS, "state"):
            for path in (self.folder / kind).glob("*"):
                if f"{kind}/{path.name}" not in used:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def _files_of(self, number: int) -> dict[str, Any]:
        if self._last is not None and self._last.carry == f"carry/{_digits(number)}":
            return self._last.files
        files: dict[str, Any] = read_record(self.folder / "state" / _digits(number))["files"]
        return files

    def _numbers(self) -> list[int]:
        state = self.folder / "state"
        return sorted(int(p.name) for p in state.iterdir() if p.name.isdigit()) if state.is_dir() else []

    def newest(self) -> Saved | None:
        """The last complete and undamaged checkpoint; None where there is none at all."""
        self._last, trouble = None, ""
        for number in reversed(self._numbers()):
            try:
                saved = Saved.read(self.folder, number)
            except ArtifactError as error:
                trouble = trouble or str(error)
            except DAMAGE as error:
                trouble = trouble or f"state/{_digits(number)}: {type(error).__name__}"
            else:
                self._last = dataclasses.replace(saved, trouble=trouble)
                return self._last
        if trouble:
            raise ArtifactError(
                f"The checkpoint in {self.folder} is damaged ({trouble}), and there is no other one to go on from; "
                "remove the folder and fit again."
            )
        return None

    def lost(self) -> bool:
        """Was the last checkpoint removed from the folder? The next save is then a first one."""
        removed = self._last is not None and not (self.folder / self._last.carry).exists()
        self._last = None if removed else self._last
        return removed

    def draws(self, stage: int, phase: int) -> Path:
        """The name of the files for draws that are too many for memory."""
        return self.folder / "draws" / f"{stage}-{phase}"

    def clear(self) -> None:
        """Remove the folder: the run is finished and saved elsewhere."""
        self._last = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _digits(number: int) -> str:
    return f"{number:012d}"


def _numbered(tree: PyTree) -> dict[str, Any]:
    return {str(i): x for i, x in enumerate(jax.tree.leaves(tree))}


def check_fingerprint(saved: str, expected: str, folder: Path) -> None:
    """Refuse to resume the checkpoint of another run."""
    if saved != expected:
        raise InputError(
            f"The checkpoint in {folder} belongs to a run with other data or settings; remove it or choose another."
        )
