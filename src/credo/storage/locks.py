"""One run at a time writes to a folder.

The lock is the operating system's and lies on the folder itself: a process that ends, however it ends, holds nothing
any more, and nothing is left behind.
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
    """Hold a folder, which is made where there is none; InputError where another run holds it.

    A thread that holds it already goes on. Where the system knows no locks on folders, and for None, nothing is held.
    """
    if folder is None:
        yield
        return
    place = Path(os.path.realpath(folder))
    made = [path for path in (place, *place.parents) if not path.exists()]
    descriptor, known = _acquired(place)
    try:
        yield
    finally:
        if known is not None:
            _held.folders.remove(known)
        with suppress(OSError):  # it holds something, as it should
            for path in made:
                path.rmdir()
        if descriptor is not None:
            os.close(descriptor)


def _acquired(place: Path) -> tuple[int | None, tuple[int, int] | None]:
    """An open descriptor with the lock, and what it is on; None twice where there is nothing to hold."""
    try:
        import fcntl
    except ImportError:
        return None, None
    while True:
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file; choose another folder to write to.")
        try:
            place.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(place, os.O_RDONLY)
        except OSError as error:
            raise Unwritable(f"Cannot write the folder {place}: {error.strerror}; choose another place.") from error
        known = _identity(os.fstat(descriptor))
        if known in _held.folders:
            os.close(descriptor)
            return None, None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise InputError(
                f"Another run is writing to {place}; wait until it has ended, or choose another folder."
            ) from error
        except OSError:  # a file system without locks
            os.close(descriptor)
            return None, None
        with suppress(FileNotFoundError):
            if known == _identity(os.stat(place)):
                _held.folders.add(known)
                return descriptor, known
        os.close(descriptor)  # whoever held it put another folder in its place


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
