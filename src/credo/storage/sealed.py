"""Files with a digest, which are read only where they are what was written.

Checkpoints and stores go through here: regular files alone, their SHA-256 looked at before anything is made of their
bytes.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

from credo.errors import ArtifactError
from credo.storage.archives import Damaged, regular_file
from credo.storage.atomic_write import replaced_file
from credo.storage.tensors import read_tensors, write_tensors

PIECE_BYTES = 2**20
MOST_RECORD = 2**28  # bytes of a record: no fit writes one as large
# What a document that is none of ours makes of its reader.
DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def write_record(path: Path, document: dict[str, Any]) -> None:
    """Write a document whose first line is the digest of the rest."""
    content = json.dumps(document).encode()
    with replaced_file(path) as part:
        part.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_record(path: Path) -> dict[str, Any]:
    """The document that `write_record` wrote."""
    with _opened(path) as file:
        digest, _, content = file.read(MOST_RECORD).partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ArtifactError(f"{_short(path)} is not what was written")
    document: dict[str, Any] = json.loads(content)
    return document


def write_arrays(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Write arrays of any type; gives what `read_arrays` wants to know of the file."""
    held = {name: np.ascontiguousarray(np.asarray(x)) for name, x in arrays.items()}
    # As bytes: the file format does not know every type of JAX.
    plain = {name: x.reshape(-1).view(np.uint8) for name, x in held.items()}
    with replaced_file(path) as part:
        digest = write_tensors(part, plain)
    kinds = {name: [x.dtype.name, list(np.shape(arrays[name]))] for name, x in held.items()}
    return {"sha256": digest, "arrays": kinds}


def read_arrays(path: Path, known: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a file that was checked."""
    found, arrays = read_tensors(path), {}
    for name, (dtype, shape) in known["arrays"].items():
        arrays[name] = np.array(found[name]).view(jnp.dtype(dtype)).reshape(shape)
    return arrays


def check(path: Path, digest: str, start: int = 0, stop: int | None = None) -> None:
    """Raise what is wrong with a file, or with these bytes of it, as the end of a sentence."""
    with _opened(path) as file:
        found, left = hashlib.sha256(), float("inf") if stop is None else stop - start
        file.seek(start)
        while left > 0 and (piece := file.read(int(min(left, PIECE_BYTES)))):
            found.update(piece)
            left -= len(piece)
    if found.hexdigest() != digest:
        raise ArtifactError(f"{_short(path)} is not what was written")


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _opened(path: Path) -> BinaryIO:
    try:
        return regular_file(path).open("rb")
    except FileNotFoundError as error:
        raise ArtifactError(f"{_short(path)} is missing") from error
    except Damaged as error:  # which begins with the file's name
        raise ArtifactError(f"{path.parent.name}/{error}") from error
    except OSError as error:
        raise ArtifactError(f"{_short(path)} cannot be read: {error.strerror}") from error
