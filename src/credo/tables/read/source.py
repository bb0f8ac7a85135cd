"""A table from whatever holds one: a file, or a data frame of pandas, polars or Arrow."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from credo.errors import InputError
from credo.tables.read.binary import brief
from credo.tables.read.files import TableFile, frame_of_arrow, read_with_notes


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands out its columns as Arrow does: polars, pyarrow, DuckDB (the PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


@runtime_checkable
class Interchangeable(Protocol):
    """A table with the data frame interchange protocol."""

    def __dataframe__(self) -> Any: ...


def read_source(table: Any, texts: Collection[str] = ()) -> TableFile:
    """The table as a frame of pandas, with sentences about what is unusual in a file.

    Args:
        table: a path, or a data frame of pandas, polars, Arrow or whatever speaks the protocols of Arrow.
        texts: columns that a file of text holds as they are written, as in `read_with_notes`.

    Example:
        >>> import pyarrow as pa
        >>> read_source(pa.table({"x": [1.0, 2.0]})).frame["x"].tolist()
        [1.0, 2.0]
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow.interchange import from_dataframe

    if isinstance(table, str | os.PathLike):
        return read_with_notes(table, texts)
    if isinstance(table, pd.DataFrame):
        if len(table) == 0:
            raise InputError("The table has no rows; give it at least two.")
        return TableFile(table, [])
    try:
        if isinstance(table, ArrowStream):
            arrow = pa.table(table)
        elif isinstance(table, Interchangeable):
            arrow = from_dataframe(table)
        else:
            raise InputError(
                "A table is a path to a file or a data frame of pandas, polars or Arrow, got "
                f"{type(table).__name__}; put arrays into a data frame with named columns."
            )
    except (pa.ArrowException, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The {type(table).__name__} cannot be read as a table: {brief(error)}.") from error
    if arrow.num_rows == 0:
        raise InputError("The table has no rows; give it at least two.")
    return TableFile(frame_of_arrow(table_name(table), arrow), [])


def table_name(table: Any) -> str:
    """What sentences call a table: its path, or "the table".

    Example:
        >>> table_name("houses.csv"), table_name(None)
        ('houses.csv', 'the table')
    """
    if not isinstance(table, str | os.PathLike):
        return "the table"
    return os.fsencode(Path(table)).decode("utf-8", "replace")  # a name may not be UTF-8
