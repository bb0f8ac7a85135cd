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

_LOCK = threading.RLock()  # threads of a process share the names of unfinished folders


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
    folder: Any, is_run: Callable[[Path], bool], keep: tuple[str, ...] = (), stale: tuple[str, ...] = ()
) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` when the block ends without an error.

    An earlier folder is only replaced where `is_run` says that credo wrote it. Its other files come along, except names
    that match `stale`; names in `keep` move to the new folder in any case.
    """
    folder = Path(os.path.realpath(folder))
    building, aside = (folder.with_name(f".{folder.name}.{os.getpid()}.{kind}") for kind in ("new", "old"))
    with _LOCK:
        check_replaceable(folder, is_run)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            yield building
            for path in building.iterdir():
                _flush(path)
            for path in folder.iterdir() if folder.is_dir() else ():
                target = building / path.name
                if not os.path.lexists(target) and not any(fnmatch(path.name, name) for name in (*stale, *keep)):
                    _carry_over(path, target)
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
    """Raise where something that credo did not write has this path."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder to write to.")
    if folder.is_dir() and any(folder.iterdir()) and not is_run(folder):
        raise InputError(f"The folder {folder} exists and is not {kind}; choose another one.")


def _swap(building: Path, folder: Path, aside: Path, keep: tuple[str, ...]) -> None:
    if not folder.exists():
        os.rename(building, folder)
        return
    if _exchange(building, folder):
        earlier = building
    else:
        earlier = aside
        os.rename(folder, aside)
        try:
            os.rename(building, folder)
        except OSError:
            os.rename(aside, folder)
            raise
    for name in keep:
        if (earlier / name).exists():
            os.rename(earlier / name, folder / name)
    shutil.rmtree(earlier, ignore_errors=True)


def _carry_over(path: Path, target: Path) -> None:
    """Give a file or folder a second path, without a moment at which it has none."""
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, target, symlinks=True, copy_function=_link)
    else:
        _link(path, target)


def _link(path: Any, target: Any) -> None:
    """A hard link to a file; a copy where the file system has none."""
    try:
        os.link(path, target, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(path, target, follow_symlinks=False)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system can (Linux): no moment is without either."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    at_fdcwd, rename_exchange = -100, 2
    return rename(at_fdcwd, os.fsencode(one), at_fdcwd, os.fsencode(other), rename_exchange) == 0


def _flush(path: Path) -> None:
    """Hand a file or folder to the disk, so that a crash after the swap cannot leave it empty."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
