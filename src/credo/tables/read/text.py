"""CSV and TSV: the separator, the encoding and the blank lines of a text file, packed or not."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import zlib
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from credo.errors import InputError
from credo.tables.read.binary import brief

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
# A line longer than this cannot be read; the reader's default of 1 MB is too short for wide tables.
BLOCK_BYTES = 1 << 24
HEAD_BYTES = 1 << 16
# What texts are written in that are not UTF-8. All bytes but five are letters of Windows-1252; all are of Latin-1.
OTHER_ENCODINGS = {"cp1252": "Windows-1252 (Latin-1)", "latin-1": "Latin-1"}
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Control characters that no text has.
NOT_TEXT = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b"))


class Header(NamedTuple):
    """The line of column names and how many blank lines stand above it."""

    line: str
    above: int


def read_text(path: Path, ending: str, texts: Collection[str] = ()) -> tuple[pa.Table, list[str]]:
    """The table of a text file and a note where its encoding is not UTF-8; raises `InputError` in one sentence.

    Cells of the columns named in `texts` are left as they are written.
    """
    failure: Exception | None = None
    for encoding in _encodings(path, ending):
        try:
            table = _parsed(path, ending, encoding, texts)
        except UnicodeError as error:
            failure = error
            continue
        if not any(_is_binary(field.type) for field in table.schema):
            return table.rename_columns([name.strip() for name in table.column_names]), _notes(path, encoding)
    raise InputError(f"{path} is not UTF-8 text; save the file with the encoding UTF-8.") from failure


def _encodings(path: Path, ending: str) -> list[str]:
    """The encodings to try, from the first bytes of the file."""
    try:
        with _opened(path, ending) as file:
            head = file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Cannot read {path} as a table: {brief(error)}; repair the file.") from error
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return [encoding]
    # A text of mostly Latin letters has a zero in every second byte of UTF-16.
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 4 > len(head) and min(even, odd) * 20 < max(even, odd):
        return ["utf-16-le" if odd > even else "utf-16-be"]
    text = head.translate(None, NOT_TEXT) == head
    return ["utf-8", *OTHER_ENCODINGS] if text else ["utf-8"]


def _notes(path: Path, encoding: str) -> list[str]:
    if encoding == "utf-8":
        return []
    name = OTHER_ENCODINGS.get(encoding, "UTF-16")
    return [f"{path.name} is not UTF-8 and is read as {name}; save it as UTF-8 if letters look wrong."]


def _parsed(path: Path, ending: str, encoding: str, texts: Collection[str]) -> pa.Table:
    import pyarrow as pa

    header = _header(path, ending, encoding)
    if not header.line:
        raise InputError(f"The file {path} is empty; it needs a line of column names and rows below it.")
    failure: Exception | None = None
    # Quoted line breaks need the slower parser, so it is only the second try.
    for newlines in (False, True):
        try:
            return _arrow_table(path, ending, encoding, header, newlines, texts)
        except UnicodeError:
            raise
        except (pa.ArrowException, OSError) as error:
            failure = error
    raise InputError(f"Cannot read {path} as a table: {brief(failure)}; repair the file.") from failure


def _arrow_table(
    path: Path, ending: str, encoding: str, header: Header, newlines: bool, texts: Collection[str]
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as reader

    delimiter = _delimiter(header.line, ending)
    convert = reader.ConvertOptions(strings_can_be_null=True)
    # "?" is how many public data sets write a missing cell.
    convert.null_values = [*convert.null_values, "?"]
    # Names are stripped after reading, so that they are found here as they stand in the file.
    written = next(csv.reader([header.line], delimiter=delimiter), [])
    convert.column_types = {name: pa.string() for name in written if name.strip() in texts}
    alone = delimiter not in "".join(header.line.split('"')[::2])
    with ExitStack() as stack:
        source: Any = stack.enter_context(pa.OSFile(os.fsencode(path)))
        if ending.endswith(".gz"):
            source = stack.enter_context(pa.CompressedInputStream(source, "gzip"))
        return reader.read_csv(
            source,
            read_options=reader.ReadOptions(block_size=BLOCK_BYTES, encoding=encoding, skip_rows=header.above),
            # A blank line of several columns is no row; of one column it is a row whose cell is missing.
            parse_options=reader.ParseOptions(
                delimiter=delimiter, newlines_in_values=newlines, ignore_empty_lines=not alone
            ),
            convert_options=convert,
        )


def _opened(path: Path, ending: str, **options: Any) -> Any:
    if ending.endswith(".gz"):
        return gzip.open(path, "rt" if options else "rb", **options)
    return open(path, "r" if options else "rb", **options)


def _header(path: Path, ending: str, encoding: str) -> Header:
    """The first line that is not blank, or an empty one."""
    above = 0
    try:
        with _opened(path, ending, encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline=None) as file:
            for line in file:
                if line.strip():
                    return Header(line.rstrip("\n"), above)
                above += 1
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Cannot read {path} as a table: {brief(error)}; repair the file.") from error
    return Header("", above)


def _delimiter(header: str, ending: str) -> str:
    if ending.startswith(".tsv"):
        return "\t"
    outside = "".join(header.split('"')[::2])
    return max([",", ";", "\t"], key=outside.count)


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
