"""Parquet, Feather and Arrow files, checked in full before a value of theirs is used.

Lengths, offsets and codes in such a file are addresses in memory: a flipped bit among them makes a reader that
believes them read anywhere. Arrow checks them only where it is told to.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credo.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow")
INDEX_WITHOUT_NAME = re.compile(r"__index_level_\d+__")


def read_binary(path: Path, ending: str) -> pa.Table:
    """The table of a file, without the notes of the program that wrote it; raises `InputError` where it is damaged."""
    import pyarrow as pa

    try:
        table = _read_parquet(path) if ending in PARQUET_ENDINGS else _read_arrow(path)
        table.validate(full=True)
        return _without_metadata(table)
    # Whatever a library says about a damaged file, the file is what is wrong.
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError) as error:
        kind = "Parquet" if ending in PARQUET_ENDINGS else "Feather or Arrow"
        raise InputError(
            f"Cannot read {path} as a {kind} table: {brief(error)}; write the file again or give it its true ending."
        ) from error


def brief(error: Exception | None) -> str:
    """The first line of another library's message, without its final stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ")[:200] if lines else type(error).__name__


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with (
        pa.OSFile(os.fsencode(path)) as source,
        parquet.ParquetFile(source, page_checksum_verification=True) as file,
    ):
        return file.read()


def _read_arrow(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.OSFile(os.fsencode(path)) as file:
        return _open_arrow(file).read_all()


def _open_arrow(file: Any) -> Any:
    """Open the file form (Feather 2) or, for `.arrow`, the stream form."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _without_metadata(table: pa.Table) -> pa.Table:
    """The columns alone: what pandas noted about types and its index must not be believed of a foreign file.

    A named index is a column like any other; one without a name only counts the rows.
    """
    names = table.column_names
    if b"pandas" in (table.schema.metadata or {}):
        # By place, because two columns of one name are refused later, in a sentence of their own.
        table = table.select(
            [position for position, name in enumerate(names) if not INDEX_WITHOUT_NAME.fullmatch(name)]
        )
    return table.replace_schema_metadata(None)
