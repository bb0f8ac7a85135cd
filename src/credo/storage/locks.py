"""One run at a time writes to a folder.

The lock is the operating system's, on the folder itself: a process that ends, however it ends, releases it, and nothing
is left behind.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from credo.errors import InputError, Unwritable


class _Held(threading.local):
    """(device, inode) of the folders that this thread holds."""

    def __init__(self) -> None:
        self.folders: set[tuple[int, int]] = set()


_held = _Held()


@contextmanager
def locked(folder: Any) -> Iterator[None]:
    """Hold a folder, creating it if needed; InputError where another run holds it.

    A thread may lock a folder twice. Where the system has no locks on folders, and for None, nothing is held.
    """
    if folder is None:
        yield
        return
    path = Path(os.path.realpath(folder))
    created = [parent for parent in (path, *path.parents) if not parent.exists()]
    descriptor, identity = _acquire(path)
    try:
        yield
    finally:
        if identity is not None:
            _held.folders.remove(identity)
        with suppress(OSError):  # it holds something, as it should
            for parent in created:
                parent.rmdir()
        if descriptor is not None:
            os.close(descriptor)


def _acquire(path: Path) -> tuple[int | None, tuple[int, int] | None]:
    """An open descriptor with the lock, and the folder's identity; None twice where there is nothing to hold."""
    try:
        import fcntl
    except ImportError:
        return None, None
    while True:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; choose another folder to write to.")
        try:
            path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise Unwritable(f"Cannot write the folder {path}: {error.strerror}; choose another place.") from error
        identity = _identity(os.fstat(descriptor))
        if identity in _held.folders:
            os.close(descriptor)
            return None, None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise InputError(
                f"Another run is writing to {path}; wait until it has ended, or choose another folder."
            ) from error
        except OSError:  # a file system without locks
            os.close(descriptor)
            return None, None
        with suppress(FileNotFoundError):
            if identity == _identity(os.stat(path)):
                _held.folders.add(identity)
                return descriptor, identity
        os.close(descriptor)  # whoever held it put another folder in its place


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
