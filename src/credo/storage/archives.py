"""Reading from a folder: regular files inside it, of bounded size and depth. Nothing in them is executed.

Needs NumPy alone: exported predictors take this module along. Whatever is wrong with a file is `Damaged`; callers add
what to do.
"""

import hashlib
import io
import json
import math
import os
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

MOST_JSON = 2**26  # bytes of a JSON document
MOST_DEPTH = 100  # lists and tables of a document inside each other
MOST_ARRAYS = 2**33  # bytes of all arrays of an archive


class Damaged(ValueError):
    """A file is not what was written; the text says in what way."""


def regular_file(path: Any, *, inside: bool = True) -> Path:
    """The path of a regular file; a device, a pipe or, unless it is the user's own, a link to another folder is none.

    A link may lead to endless data, and a pipe waits for a writer.

    Args:
        path: of the file.
        inside: refuse links that lead out of its folder.
    """
    path = Path(path)
    try:
        target, folder = path.resolve(strict=True), path.parent.resolve(strict=True)
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a zero byte in a name
        raise Damaged(f"{path.name} cannot be looked at") from error
    if not stat.S_ISREG(mode):
        raise Damaged(f"{path.name} is not a regular file")
    if inside and not target.is_relative_to(folder):
        raise Damaged(f"{path.name} is a link to another folder")
    return path


def read_file(path: Any, most: int, *, inside: bool = True) -> bytes:
    """All of a regular file of at most so many bytes (see `regular_file`)."""
    with regular_file(path, inside=inside).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise Damaged(f"{Path(path).name} has {size} bytes, more than {most}")
        return file.read(most + 1)


def read_json(path: Any, most: int = MOST_JSON) -> Any:
    """The document in a JSON file."""
    return parse_json(read_file(path, most))


def parse_json(content: bytes | str) -> Any:
    """A JSON document whose lists and tables lie at most `MOST_DEPTH` deep.

    Example:
        >>> parse_json('{"a": [1, 2]}')
        {'a': [1, 2]}
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Damaged(f"it is not JSON ({type(error).__name__})") from error
    level, depth = [document], 0
    while level := [part for item in level for part in _parts(item)]:
        depth += 1
        if depth > MOST_DEPTH:
            raise Damaged(f"its parts lie more than {MOST_DEPTH} deep")
    return document


def _parts(item: Any) -> Any:
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]


def read_arrays(path: Any) -> dict[str, np.ndarray]:
    """The arrays of an .npz file, each against its checksum."""
    return parse_arrays(read_file(path, MOST_ARRAYS))


def parse_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive.

    Example:
        >>> file = io.BytesIO()
        >>> np.savez(file, a=np.arange(2))
        >>> parse_arrays(file.getvalue())["a"].tolist()
        [0, 1]
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_ARRAYS:
                raise Damaged("its arrays are too large")
            return {m.filename.removesuffix(".npy"): _array(archive.read(m)) for m in members}
    except Damaged:
        raise
    except (
        zipfile.BadZipFile, zlib.error, OSError, ValueError, KeyError, EOFError, RuntimeError, NotImplementedError,
        MemoryError, SyntaxError, TypeError, OverflowError, IndexError,
    ) as error:  # fmt: skip
        raise Damaged(f"it holds no arrays ({type(error).__name__})") from error


def _array(content: bytes) -> np.ndarray:
    """One array in NumPy's format; its header must agree with its bytes."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read(file)
    body = file.read()
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise Damaged("an array is not what its header says")
    flat = np.frombuffer(body, dtype).copy()
    return flat.reshape(shape, order="F" if columns_first else "C")


def document_digest(document: dict[str, Any]) -> str:
    """The SHA-256 of a document without its entry `document_digest`."""
    content = {name: value for name, value in document.items() if name != "document_digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
