"""Safetensors files of any size in bounded memory: written array by array, and read through a memory map.

The format: eight bytes with the length of the header, the header (JSON: name → dtype, shape, data_offsets), then the
numbers, little-endian in C order without gaps. Small files go through the safetensors library, and it reads and checks
the large ones too.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from credo.core.pieces import extent, release
from credo.errors import ArtifactError

LARGE_BYTES = 2**28  # files from here on are written in pieces and mapped instead of read
PIECE_BYTES = 2**26
SMALL_ARRAY = 2**16  # arrays up to this size are read even from large files
METADATA = {"format": "credo"}
CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "uint64": "U64", "int32": "I32",
    "uint32": "U32", "int16": "I16", "uint16": "U16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64",
}  # fmt: skip
DTYPES = {code: np.dtype(name).newbyteorder("<") for name, code in CODES.items()}


def write_tensors(path: Path, arrays: dict[str, np.ndarray]) -> str:
    """Write arrays to a file; gives its SHA-256."""
    from safetensors.numpy import save

    if sum(x.nbytes for x in arrays.values()) < LARGE_BYTES:
        content = save({name: np.asarray(x, order="C") for name, x in arrays.items()}, metadata=METADATA)
        path.write_bytes(content)
        return hashlib.sha256(content).hexdigest()
    # Wide numbers first, as the library does: every array then begins at a multiple of its own width.
    ordered = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    digest = hashlib.sha256()
    with path.open("wb") as file:
        header = _header(arrays, ordered)
        digest.update(header)
        file.write(header)
        for name in ordered:
            for part in _in_order(arrays[name]):
                digest.update(part)
                file.write(part)
                release(arrays[name])
    return digest.hexdigest()


def _header(arrays: dict[str, np.ndarray], ordered: list[str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": METADATA}
    end = 0
    for name in ordered:
        x, start = arrays[name], end
        end += x.nbytes
        entries[name] = {"dtype": CODES[x.dtype.name], "shape": list(x.shape), "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _in_order(x: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array in C order, in pieces."""
    if extent(x) <= PIECE_BYTES:
        little = x.astype(x.dtype.newbyteorder("<"), order="C", copy=False)
        yield little.reshape(-1).view(np.uint8).data
        return
    row = extent(x[0])
    if row > PIECE_BYTES:
        for part in x:
            yield from _in_order(part)
        return
    step = max(1, (PIECE_BYTES - row) // abs(x.strides[0]) + 1)  # the extent of so many rows is that of a piece
    for start in range(0, len(x), step):
        yield from _in_order(x[start : start + step])


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file; those of a large one are read-only memory maps."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        if path.stat().st_size < LARGE_BYTES:
            return load_file(path)
        with safe_open(path, "numpy"):  # the library checks the header against the file
            return _mapped(path)
    except SafetensorError as error:
        raise ArtifactError(f"its arrays are damaged ({error})") from error


def _mapped(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entries: dict[str, Any] = json.loads(file.read(length))
        content = np.memmap(file, np.uint8, "r")
    entries.pop("__metadata__", None)
    arrays = {}
    for name, entry in entries.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None or end - start != dtype.itemsize * math.prod(entry["shape"]):
            raise ArtifactError(f"its array '{name}' has the type {entry['dtype']}, which is not one of credo's")
        array = content[start:end].view(dtype).reshape(entry["shape"])
        arrays[name] = array if array.nbytes > SMALL_ARRAY else np.array(array)
    release(content)
    return arrays
