"""Reading and writing tables, and the sentence for each thing that can be wrong with a file."""

import gzip
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import credo.tables
from credo.errors import InputError
from credo.tables.read import files as tables
from credo.tables.read.files import read_table, read_with_notes, write_table

ENDINGS = ["csv", "csv.gz", "tsv", "tsv.gz", "parquet", "feather", "arrow"]
BUNDLED = Path(credo.tables.__file__).parent / "bundled" / "diabetes.csv"


def mixed_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": [1.5, -2.25, 1e6 + 0.125],
            "whole": [1, 2, 3],
            "flag": [True, False, True],
            "text": ["a,b", 'say "x"', "two\nlines"],
            "day": pd.to_datetime(["2024-01-31", "2024-02-29", "1999-12-31"]),
        }
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(tmp_path, ending):
    frame = mixed_frame()
    write_table(frame, tmp_path / f"table.{ending}")
    back = read_table(tmp_path / f"table.{ending}")
    assert list(back.columns) == list(frame.columns)
    for name in ["number", "whole", "flag", "text"]:
        assert back[name].tolist() == frame[name].tolist()
    assert (back["day"] == frame["day"]).all()
    assert [path.name for path in tmp_path.iterdir()] == [f"table.{ending}"]


def write(path: Path, content: str | bytes) -> Path:
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", "", r"The file .*t\.csv is empty; it needs a line of column names"),
        ("t.csv", "\n \n", r"The file .*t\.csv is empty"),
        ("t.csv.gz", "", r"The file .*t\.csv\.gz is empty"),
        ("t.csv", "a,b\n", r"The table .*t\.csv has column names but no rows; add rows"),
        ("t.csv", "a,a\n1,2\n", r"more than one column named 'a'; rename all but one"),
        ("t.csv", "a, a\n1,2\n", r"more than one column named 'a'; rename all but one"),
        ("t.csv", "a,b\n1,2\n3\n", r"Cannot read .*t\.csv as a table: .*Expected 2 columns, got 1.*; repair"),
        ("t.csv", b"a,b\n\xff\x00\x01\x02,1\n", r"t\.csv is not UTF-8 text; save the file with the encoding UTF-8"),
        ("t.csv", b"\xff\xfea\x00,\x00b\x00\n\x00\x00\xd8", r"t\.csv is not UTF-8 text; save"),
        ("t.csv", b"\xff\xfea\x00,\x00b\x00\n\x00", r"The table .*t\.csv has column names but no rows"),
        (
            "t.csv",
            "0.5,1.25,3\n0.25,1,4\n",
            r"The first line of .*t\.csv holds numbers, not column names; add",
        ),
        ("t.ods", "a,b\n1,2\n", r"The ending of .*t\.ods is not that of a table; use \.csv, .* or \.xlsm \(from"),
        ("t", "a,b\n1,2\n", r"The ending of .*t is not that of a table; use \.csv"),
        ("t.parquet", "a,b\n1,2\n", r"Cannot read .*t\.parquet as a Parquet table: .*; write the file again"),
        ("t.feather", "a,b\n1,2\n", r"Cannot read .*t\.feather as a Feather or Arrow table: .*; write"),
        ("t.arrow", b"\x00" * 64, r"Cannot read .*t\.arrow as a Feather or Arrow table: .*; write"),
    ],
)
def test_bad_file_gets_one_sentence(tmp_path, name, content, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        read_table(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


NAMES = ["Zürich", "Köln", "Orléans"]


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("cp1252", "Windows-1252"),
        ("latin-1", "Windows-1252"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_encodings_are_found_and_said(tmp_path, name, encoding, said):
    content = "größe,town\n" + "".join(f"{i},{town}\n" for i, town in enumerate(NAMES))
    frame, notes = read_with_notes(write(tmp_path / name, content.encode(encoding)))
    assert frame.to_dict("list") == {"größe": [0, 1, 2], "town": NAMES}
    assert [f"is read as {said}" in note for note in notes] == ([] if said is None else [True])


def test_a_byte_that_windows_does_not_know_is_latin_1(tmp_path):
    frame, notes = read_with_notes(write(tmp_path / "t.csv", b"a,b\ncaf\xe9,1\nx\x81,2\n"))
    assert frame["a"].tolist() == ["café", "x\x81"]
    assert "is read as Latin-1" in notes[0]


def test_late_bytes_that_are_not_utf8_decide_about_the_whole_file(tmp_path):
    rows = b"".join(b"x%d,1\n" % i for i in range(200_000))
    frame, notes = read_with_notes(write(tmp_path / "t.csv", b"a,b\n" + rows + b"caf\xe9,1\n"))
    assert len(frame) == 200_001
    assert frame["a"].iloc[-1] == "café"
    assert len(notes) == 1


@pytest.mark.parametrize("place", [2, 10, 15, 30, -6, -2])
def test_a_damaged_packed_file_is_one_sentence(tmp_path, place):
    whole = bytearray(gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i % 97) for i in range(300))))
    whole[place] ^= 0xFF
    with pytest.raises(InputError, match=r"Cannot read .*t\.csv\.gz as a table: .*; repair the file\.$"):
        read_table_of_bytes(tmp_path / "t.csv.gz", whole)


def read_table_of_bytes(path, content):
    path.write_bytes(content)
    return read_table(path)


def test_blank_lines_of_one_column_are_missing_cells(tmp_path):
    numbers = [str(i) if i % 100 else "" for i in range(1, 201)]
    frame = read_table(write(tmp_path / "t.csv", "\nx\n" + "\n".join(numbers) + "\n"))
    assert len(frame) == 200
    assert np.flatnonzero(frame["x"].isna()).tolist() == [99, 199]
    write_table(frame, tmp_path / "again.csv")
    assert read_table(tmp_path / "again.csv").equals(frame)
    assert len(read_table(write(tmp_path / "u.csv", "\n  \na,b\n1,2\n\n3,4\n\n"))) == 2


def test_links_that_lead_nowhere_and_pipes(tmp_path):
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with pytest.raises(InputError, match=r"loop\.csv cannot be opened \(Too many levels of symbolic links\)"):
        read_table(tmp_path / "loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"pipe\.csv is a pipe or a device, not a file"):
        read_table(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="cannot be opened"):
        read_table(tmp_path / ("x" * 5000 + ".csv"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_name_that_is_not_utf8(tmp_path, ending):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9." + ending.encode()))
    write_table(mixed_frame(), path)
    assert read_table(path)["whole"].tolist() == [1, 2, 3]


def test_workbooks_are_read(tmp_path):
    pytest.importorskip("openpyxl")
    frame = mixed_frame().assign(mixed=["a", 2, 3.5], hole=[1.0, None, 2.5], blank=["x", None, "?"])
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="first", index=False, startrow=2, startcol=1)
        frame.to_excel(book, sheet_name="second")
    back, notes = read_with_notes(tmp_path / "t.xlsx")
    assert notes == ["t.xlsx has 2 sheets; 'first', the first, is read."]
    for name in ("number", "whole", "flag", "text", "day"):
        assert back[name].tolist() == frame[name].tolist(), name
    assert back["mixed"].tolist() == ["a", "2", "3.5"]
    assert back["hole"].isna().tolist() == [False, True, False]
    assert back["blank"].isna().tolist() == [False, True, True]
    whole = (tmp_path / "t.xlsx").read_bytes()
    for damaged in (whole[:-100], whole[:100], b"a,b\n1,2\n"):
        with pytest.raises(InputError, match=r"Cannot read .*bad\.xlsx as an Excel workbook: .*; save"):
            read_table_of_bytes(tmp_path / "bad.xlsx", damaged)
    pd.DataFrame().to_excel(tmp_path / "none.xlsx")
    with pytest.raises(InputError, match=r"first sheet of .* is empty"):
        read_table(tmp_path / "none.xlsx")


def test_workbooks_without_openpyxl_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        InputError, match=r"needs openpyxl, which is not installed; pip install 'credo\[excel\]', or save"
    ):
        read_table_of_bytes(tmp_path / "t.xlsx", b"PK")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*none\.csv; check the path\."):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder\.csv is a folder, not a table; name a file in it\."):
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "feather"])
def test_truncated_file(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    write_table(pd.DataFrame({"a": np.random.default_rng(0).normal(size=5000)}), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"Cannot read .*t\."):
        read_table(path)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_no_rows_and_duplicate_names_in_binary_tables(tmp_path, ending):
    write_table(pd.DataFrame({"a": np.array([], float)}), tmp_path / f"none.{ending}")
    with pytest.raises(InputError, match="has column names but no rows"):
        read_table(tmp_path / f"none.{ending}")
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    path = tmp_path / f"twice.{ending}"
    with pa.OSFile(str(path), "wb") as file:
        if ending == "parquet":
            pa.parquet.write_table(table, file)
        else:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    with pytest.raises(InputError, match="more than one column named 'a'"):
        read_table(path)


def test_arrow_stream_is_read(tmp_path):
    table = pa.table({"a": [1, 2, 3]})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert read_table(tmp_path / "t.arrow")["a"].tolist() == [1, 2, 3]


def test_separators_names_and_missing_marks(tmp_path):
    frame = read_table(write(tmp_path / "t.csv", "\ufeffa; b;c\n1,5;x;?\n2;;3\n"))
    assert list(frame.columns) == ["a", "b", "c"]
    assert frame["b"].isna().tolist() == [False, True]
    assert frame["c"].isna().tolist() == [True, False]
    frame = read_table(write(tmp_path / "t.tsv", "a\tb\n1\tx, y\n"))
    assert frame["b"].tolist() == ["x, y"]


def test_whole_number_names_are_allowed(tmp_path):
    assert list(read_table(write(tmp_path / "t.csv", "0,1\n5,6\n")).columns) == ["0", "1"]


def test_types_that_arrive_as_objects_become_numbers(tmp_path):
    table = pa.table(
        {
            "price": pa.array([Decimal("1.25"), Decimal("2")], pa.decimal128(20, 2)),
            "clock": pa.array([3600, 90], pa.time32("s")),
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    frame = read_table(tmp_path / "t.parquet")
    assert frame["price"].dtype == np.float64
    assert frame["price"].tolist() == [1.25, 2.0]
    assert frame["clock"].dt.total_seconds().tolist() == [3600.0, 90.0]


def test_named_index_becomes_a_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 8], name="when"))
    frame.to_parquet(tmp_path / "t.parquet")
    back = read_table(tmp_path / "t.parquet")
    assert back["when"].tolist() == [7, 8]
    assert back.index.tolist() == [0, 1]


def test_large_tables_shrink_only_where_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "SHRINK_ROWS", 10)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"plain": rng.normal(size=50), "offset": 1e6 + rng.normal(size=50), "gap": np.nan})
    write_table(frame, tmp_path / "t.parquet")
    back = read_table(tmp_path / "t.parquet")
    assert back["plain"].dtype == np.float32
    assert back["offset"].dtype == np.float64
    assert back["offset"].tolist() == frame["offset"].tolist()
    assert back["gap"].isna().all()


def test_a_reader_of_the_old_file_is_not_disturbed(tmp_path):
    path = tmp_path / "t.csv"
    write_table(pd.DataFrame({"a": [1]}), path)
    with path.open() as reader:
        write_table(pd.DataFrame({"a": [2, 3]}), path)
        assert reader.read() == "a\n1\n"
    assert path.read_text() == "a\n2\n3\n"


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    write_table(pd.DataFrame({"a": [1]}), path)

    def fail(table, place, ending):
        Path(place).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables, "_write_text", fail)
    with pytest.raises(InputError, match=r"Cannot write the table .*t\.csv: No space left on device; choose"):
        write_table(pd.DataFrame({"a": [2]}), path)
    monkeypatch.undo()
    assert read_table(path)["a"].tolist() == [1]
    assert [item.name for item in tmp_path.iterdir()] == ["t.csv"]


def test_bad_places_to_write(tmp_path):
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(InputError, match=r"there is no folder .*none; make it first"):
        write_table(frame, tmp_path / "none" / "t.csv")
    with pytest.raises(InputError, match="is not that of a table"):
        write_table(frame, tmp_path / "t.json")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="it is a folder; name a file"):
        write_table(frame, tmp_path / "folder.csv")


def test_mixed_column_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="give each column one type"):
        write_table(pd.DataFrame({"a": [1, "x"]}), tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_bundled_table_is_the_source_with_readable_names():
    from sklearn.datasets import load_diabetes

    source = load_diabetes(scaled=False, as_frame=True).frame
    frame = read_table(BUNDLED)
    assert list(frame.columns) == [
        *("age", "sex", "bmi", "blood_pressure", "s1", "s2", "s3", "s4", "s5", "s6", "progression")
    ]
    assert frame["sex"].map({"A": 1.0, "B": 2.0}).tolist() == source["sex"].tolist()
    for ours, theirs in zip(frame.columns, source.columns):
        if ours != "sex":
            assert frame[ours].tolist() == source[theirs].tolist()


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        (
            "credo.tables.encode.encoder, credo.tables.rows.splits, credo.tables.read.files",
            ("jax", "pandas", "pyarrow"),
        ),
        # They take half a second, and most fits use neither.
        ("credo.tables.fitting", ("scipy.stats", "scipy.optimize", "scipy.linalg", "blackjax")),
    ],
    ids=["table side", "what fits tables"],
)
def test_imports_are_light(modules, absent):
    code = f"import sys, {modules}; print([name for name in {absent} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
