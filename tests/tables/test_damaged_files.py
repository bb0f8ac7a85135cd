"""A damaged Arrow, Feather or Parquet file is read or refused in a sentence; it never ends the process."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import damaged_files
from credo.errors import InputError
from credo.tables.read.files import read_table
from seeded import survivors


def test_damaged_files_do_no_harm(tmp_path):
    found = survivors(damaged_files, tmp_path, 0, 300)
    assert found.total() == 300
    assert min(found["read"], found["refused"]) > 50  # both ways are tried


@pytest.mark.full
def test_many_damaged_files_do_no_harm(tmp_path):
    assert survivors(damaged_files, tmp_path, 1000, 5000).total() == 5000


@pytest.mark.parametrize("form", damaged_files.FORMS)
def test_whole_files_of_every_type_are_read(tmp_path, form):
    path = tmp_path / ("t.parquet" if form in ("parquet", "snappy", "checked") else "t.arrow")
    for kind, column in damaged_files.columns().items():
        damaged_files.write(pa.table({"x": column}), path, form)
        assert len(read_table(path)) == damaged_files.ROWS, kind


def test_an_offset_that_leaves_its_buffer_is_refused(tmp_path):
    # Texts "red", "green", …: the second offset says that the first text is 2 GB long.
    words = pa.array(["red", "green", "blue"])
    offsets = bytearray(words.buffers()[1].to_pybytes())
    offsets[4:8] = (2**31 - 1).to_bytes(4, "little")
    broken = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(bytes(offsets)), words.buffers()[2]])
    damaged_files.write(pa.table({"x": broken}), tmp_path / "t.arrow", "feather")
    with pytest.raises(InputError, match=r"Cannot read .*t\.arrow as a Feather or Arrow table"):
        read_table(tmp_path / "t.arrow")


@pytest.mark.parametrize("odd", [b"{", b"[]", b'{"index_columns": ["gone"]}', b'{"columns": 7}', b"\xff"])
def test_what_pandas_noted_about_its_index_is_not_believed(tmp_path, odd):
    table = pa.table({"x": [1.0, 2.0]}).replace_schema_metadata({b"pandas": odd})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet")["x"].tolist() == [1.0, 2.0]


def test_an_index_without_a_name_is_no_column(tmp_path):
    pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"]).to_parquet(tmp_path / "t.parquet")
    assert json.loads(parquet.read_schema(tmp_path / "t.parquet").metadata[b"pandas"])["index_columns"]
    assert list(read_table(tmp_path / "t.parquet").columns) == ["x"]
