"""Files with a digest, for checkpoints and stores: regular files, read only where their SHA-256 is the one written."""

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
# What reading a foreign document may raise.
DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def write_record(path: Path, document: dict[str, Any]) -> None:
    """Write a document whose first line is the digest of the rest."""
    content = json.dumps(document).encode()
    with replaced_file(path) as part:
        part.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def read_record(path: Path) -> dict[str, Any]:
    """The document that `write_record` wrote."""
    with _open(path) as file:
        digest, _, content = file.read(MOST_RECORD).partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ArtifactError(f"{_short(path)} is not what was written")
    document: dict[str, Any] = json.loads(content)
    return document


def write_arrays(path: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Write arrays of any type; returns the entry that `read_arrays` needs."""
    contiguous = {name: np.ascontiguousarray(np.asarray(x)) for name, x in arrays.items()}
    # As bytes: the file format does not know every type of JAX.
    plain = {name: x.reshape(-1).view(np.uint8) for name, x in contiguous.items()}
    with replaced_file(path) as part:
        digest = write_tensors(part, plain)
    kinds = {name: [x.dtype.name, list(np.shape(arrays[name]))] for name, x in contiguous.items()}
    return {"sha256": digest, "arrays": kinds}


def read_arrays(path: Path, entry: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a file that was checked; `entry` is what `write_arrays` returned."""
    raw, arrays = read_tensors(path), {}
    for name, (dtype, shape) in entry["arrays"].items():
        arrays[name] = np.array(raw[name]).view(jnp.dtype(dtype)).reshape(shape)
    return arrays


def check(path: Path, digest: str, start: int = 0, stop: int | None = None) -> None:
    """Raise where a file, or these bytes of it, are not what was written; the message ends a caller's sentence."""
    with _open(path) as file:
        sha256, rest = hashlib.sha256(), float("inf") if stop is None else stop - start
        file.seek(start)
        while rest > 0 and (piece := file.read(int(min(rest, PIECE_BYTES)))):
            sha256.update(piece)
            rest -= len(piece)
    if sha256.hexdigest() != digest:
        raise ArtifactError(f"{_short(path)} is not what was written")


def _short(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _open(path: Path) -> BinaryIO:
    try:
        return regular_file(path).open("rb")
    except FileNotFoundError as error:
        raise ArtifactError(f"{_short(path)} is missing") from error
    except Damaged as error:  # which begins with the file's name
        raise ArtifactError(f"{path.parent.name}/{error}") from error
    except OSError as error:
        raise ArtifactError(f"{_short(path)} cannot be read: {error.strerror}") from error
