"""Files and folders that appear whole or not at all."""

import ctypes
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from credo.errors import InputError, Unwritable

_ONE_AT_A_TIME = threading.RLock()  # threads of a process share the names of what they build


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A new file to fill, which takes the place of `path` when the block ends without an error; its folder is made."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        _flush(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    """Put a text or bytes into a file, in place of what it held; Unwritable where that cannot be."""
    try:
        with replaced_file(path) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise Unwritable(f"Cannot write {path}: {error.strerror or error}; make room first.") from error


@contextmanager
def replaced_folder(
    folder: Any, is_run: Callable[[Path], bool], keep: tuple[str, ...] = (), own: tuple[str, ...] = ()
) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` when the block ends without an error.

    An earlier folder is only replaced where `is_run` says that it is credo's own. What it holds comes along, but for
    names like those in `own`, which go with it; names in `keep` move to the new one in any case.
    """
    folder = Path(os.path.realpath(folder))
    building, aside = (folder.with_name(f".{folder.name}.{os.getpid()}.{kind}") for kind in ("new", "old"))
    with _ONE_AT_A_TIME:
        check_replaceable(folder, is_run)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            yield building
            for path in building.iterdir():
                _flush(path)
            for path in folder.iterdir() if folder.is_dir() else ():
                place = building / path.name
                if not os.path.lexists(place) and not any(fnmatch(path.name, name) for name in (*own, *keep)):
                    _also(path, place)
            _flush(building)
            _swap(building, folder, aside, keep)
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unwritable(
                f"Cannot write the folder {folder}: {reason}; make room or choose another place."
            ) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)


def check_replaceable(folder: Path, is_run: Callable[[Path], bool], kind: str = "a credo run") -> None:
    """Raise a sentence where something that credo did not write stands at this place."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder to write to.")
    if folder.is_dir() and any(folder.iterdir()) and not is_run(folder):
        raise InputError(f"The folder {folder} exists and is not {kind}; choose another one.")


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


def _also(path: Path, place: Path) -> None:
    """Let a file or folder be at a second place too: at no moment is it at neither."""
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, place, symlinks=True, copy_function=_link)
    else:
        _link(path, place)


def _link(path: Any, place: Any) -> None:
    """A second name for a file; a copy where the disk knows no such thing."""
    try:
        os.link(path, place, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(path, place, follow_symlinks=False)


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
