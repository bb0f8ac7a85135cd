"""Folders that appear whole or not at all."""

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from credo.errors import ArtifactError, InputError


@contextmanager
def replaced_folder(folder: Any, is_run: Callable[[Path], bool], keep: tuple[str, ...] = ()) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` when the block ends without an error.

    An earlier folder is only replaced where `is_run` says that it is credo's own. Names in `keep` move from it to
    the new one.
    """
    folder = Path(os.path.realpath(folder))
    check_replaceable(folder, is_run)
    building, aside = (folder.with_name(f".{folder.name}.{os.getpid()}.{kind}") for kind in ("new", "old"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        yield building
        for path in [*building.iterdir(), building]:
            _flush(path)
        _swap(building, folder, aside, keep)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(
            f"Cannot write the folder {folder}: {reason}; make room or choose another place."
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def check_replaceable(folder: Path, is_run: Callable[[Path], bool]) -> None:
    """Raise a sentence where something that credo did not write stands at this place."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder to write to.")
    if folder.is_dir() and any(folder.iterdir()) and not is_run(folder):
        raise InputError(f"The folder {folder} exists and is not a credo run; choose another one.")


def _swap(building: Path, folder: Path, aside: Path, keep: tuple[str, ...]) -> None:
    if not folder.exists():
        os.rename(building, folder)
        return
    if _exchange(building, folder):
        before = building
    else:
        before = aside
        os.rename(folder, aside)
        try:
            os.rename(building, folder)
        except OSError:
            os.rename(aside, folder)
            raise
    for name in keep:
        if (before / name).exists():
            os.rename(before / name, folder / name)
    shutil.rmtree(before, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step, where the system can (Linux): no moment is without either."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _flush(path: Path) -> None:
    """Hand a file or folder to the disk, so that a crash after the swap cannot leave it empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
