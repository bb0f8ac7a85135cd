"""Large safetensors files: what the library writes and reads, in pieces and through a memory map."""

import hashlib
import json

import numpy as np
import pytest
from safetensors.numpy import load, load_file, save

from credo.core.pieces import extent, mapping
from credo.errors import ArtifactError
from credo.storage import tensors

RNG = np.random.default_rng(0)
ARRAYS = {
    "b": RNG.normal(size=(4, 50, 3)).astype(np.float32), "a": RNG.normal(size=(300, 7)),
    "flags": RNG.normal(size=9) > 0,
    "scalar": np.array(2.5), "none": np.zeros((3, 0), np.int32), "half": RNG.normal(size=5).astype(np.float16),
    "bytes": np.arange(77, dtype=np.uint8), "complex": np.ones(3, np.complex64), "long": np.arange(3, dtype=np.int64),
}  # fmt: skip


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(tensors, "LARGE_BYTES", 0)
    monkeypatch.setattr(tensors, "PIECE_BYTES", 100)
    monkeypatch.setattr(tensors, "SMALL_ARRAY", 64)


def test_the_library_reads_what_is_written_in_pieces(large, tmp_path):
    path = tmp_path / "x.safetensors"
    strided = ARRAYS | {"b": ARRAYS["b"].swapaxes(0, 1).copy().swapaxes(0, 1), "a": ARRAYS["a"][::2, ::-1]}
    digest = tensors.write_tensors(path, strided)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    library, ours = load_file(path), tensors.read_tensors(path)
    assert set(library) == set(ours) == set(ARRAYS)
    for name, x in strided.items():
        for found in (library[name], ours[name]):
            assert found.dtype == x.dtype
            assert found.shape == x.shape
            assert np.array_equal(found, x)
    assert mapping(ours["b"]) is not None
    assert not ours["b"].flags.writeable
    assert mapping(ours["scalar"]) is None


def test_small_files_are_those_of_the_library(tmp_path):
    path = tmp_path / "x.safetensors"
    tensors.write_tensors(path, ARRAYS)
    assert path.read_bytes() == save(ARRAYS, metadata={"format": "credo"})
    assert all(mapping(x) is None for x in tensors.read_tensors(path).values())


def test_a_file_in_pieces_has_the_numbers_of_the_library(large, tmp_path):
    path = tmp_path / "x.safetensors"
    tensors.write_tensors(path, ARRAYS)
    assert load(path.read_bytes()).keys() == ARRAYS.keys()
    path.write_bytes(save(ARRAYS))
    assert all(np.array_equal(x, ARRAYS[name]) for name, x in tensors.read_tensors(path).items())


def _cut(data: bytes) -> bytes:
    return data[:-5]


def _longer(data: bytes) -> bytes:
    return data + b"12345"


def _header(change):
    def one(data: bytes) -> bytes:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        change(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data[8 + length :]

    return one


DAMAGE = {
    "cut": _cut, "longer": _longer, "empty": lambda data: b"", "length": lambda data: b"\xff" * 8 + data[8:],
    "shape": _header(lambda h: h["b"].update(shape=[5, 50, 3])),
    "type": _header(lambda h: h["b"].update(dtype="F8_E5M2")),
    "outside": _header(lambda h: h["b"].update(data_offsets=[0, 10**12])),
    "negative": _header(lambda h: h["b"].update(shape=[-4, -50, 3])),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_large_files_are_refused(kind, large, tmp_path):
    path = tmp_path / "x.safetensors"
    tensors.write_tensors(path, ARRAYS)
    path.write_bytes(DAMAGE[kind](path.read_bytes()))
    with pytest.raises(ArtifactError, match="array"):
        tensors.read_tensors(path)


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_numbers_between_others_are_read_in_short_stretches(axes, monkeypatch):
    """No piece reaches over more of its file than it may, whatever the order of the axes."""
    monkeypatch.setattr(tensors, "PIECE_BYTES", 4000)
    whole = np.arange(20 * 30 * 50, dtype=np.float32).reshape(20, 30, 50)
    x = whole[:, :, 7:10].transpose(axes)
    pieces = [bytes(part) for part in tensors._in_order(x)]
    assert b"".join(pieces) == x.tobytes()
    assert len(pieces) >= extent(x) // 4000  # by their own size they would be nine
