"""Reading and writing tables: CSV, TSV, Parquet, Feather and Excel, each failure in one sentence."""

from __future__ import annotations

import csv
import gzip
import os
import stat
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from credo.errors import InputError
from credo.storage.atomic_write import replaced_file
from credo.tables.read.binary import ARROW_ENDINGS, PARQUET_ENDINGS, brief, read_binary
from credo.tables.read.excel import EXCEL_ENDINGS, read_excel
from credo.tables.read.text import TEXT_ENDINGS, read_text

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

ENDINGS = TEXT_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS

# Above this many rows float64 columns that lose nothing by it are kept as float32.
SHRINK_ROWS = 1_000_000


class TableFile(NamedTuple):
    """What a file holds, and sentences about how it was read."""

    frame: pd.DataFrame
    notes: list[str]


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table whose format is told by its ending; raises `InputError` with one sentence."""
    return read_with_notes(path).frame


def read_with_notes(path: str | os.PathLike[str], texts: Collection[str] = ()) -> TableFile:
    """Read a table as `read_table` does, and say where something about the file is unusual, such as its encoding.

    Columns named in `texts` are not turned into numbers where a file of text holds them: "1.234" may be 1234.
    """
    path = Path(path)
    ending = _ending(path, ENDINGS + EXCEL_ENDINGS)
    _check_readable(path)
    notes: list[str] = []
    if ending in EXCEL_ENDINGS:
        table, notes = read_excel(path)
    elif ending in TEXT_ENDINGS:
        table, notes = read_text(path, ending, texts)
    else:
        table = read_binary(path, ending)
    _check_names(path, table.column_names)
    if table.num_rows == 0:
        raise InputError(f"The table {path} has column names but no rows; add rows below its header.")
    return TableFile(frame_of_arrow(path, table, release=True), notes)


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table in the format told by its ending; the file appears whole or not at all."""
    path = Path(path)
    ending = _ending(path, ENDINGS)
    if path.is_dir():
        raise InputError(f"Cannot write the table {path}: it is a folder; name a file.")
    if not path.parent.is_dir():
        raise InputError(f"Cannot write the table {path}: there is no folder {path.parent}; make it first.")
    _check_names(path, [str(name) for name in frame.columns])
    try:
        with replaced_file(path) as part:
            _write(frame, part, ending)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write the table {path}: {reason}; choose another place.") from error


def _ending(path: Path, endings: tuple[str, ...]) -> str:
    name = path.name.lower()
    matches = [ending for ending in endings if name.endswith(ending)]
    if not matches:
        listed = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise InputError(f"The ending of {path} is not that of a table; use {listed} (from elsewhere: save as CSV).")
    return max(matches, key=len)


def _check_readable(path: Path) -> None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"There is no file {path}; check the path.") from None
    except (OSError, ValueError) as error:  # a link that leads to itself, a name that is too long or holds a zero
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"The file {path} cannot be opened ({reason}); check the path.") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder, not a table; name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is a pipe or a device, not a file; save the table as a file.")
    if not os.access(path, os.R_OK):
        raise InputError(f"The file {path} may not be read; change its permissions.")
    if status.st_size == 0:
        raise InputError(f"The file {path} is empty; it needs a line of column names and rows below it.")


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise InputError(f"The table {path} has no columns; give it at least a target and an input.")
    if any(_is_fraction(name) for name in names) and all(_is_number(name) for name in names):
        raise InputError(f"The first line of {path} holds numbers, not column names; add a line of names above.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"The table {path} has more than one column named '{twice[0]}'; rename all but one.")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _is_fraction(name: str) -> bool:
    return _is_number(name) and not name.strip().lstrip("-").isdigit()


def _plain_types(table: pa.Table) -> pa.Table:
    """Turn decimals into floats and times of day into durations, which pandas would hold as objects."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        kind: Any = None
        if pa.types.is_decimal(field.type):
            kind = pa.float64()
        elif pa.types.is_time(field.type):
            kind = pa.duration(field.type.unit)
        if kind is not None:
            column = table.column(position)
            if pa.types.is_duration(kind):
                column = column.cast(pa.int32() if field.type.bit_width == 32 else pa.int64()).cast(pa.int64())
            table = table.set_column(position, field.name, column.cast(kind))
    return table


def frame_of_arrow(path: Any, table: pa.Table, release: bool = False) -> pd.DataFrame:
    """A table of Arrow as a frame of pandas.

    Args:
        path: what sentences call it.
        table: the table.
        release: give its memory back on the way; nobody may use it any more.
    """
    import numpy as np
    import pyarrow as pa

    table, rows = _plain_types(table), table.num_rows
    try:
        frame = table.to_pandas(date_as_object=False, split_blocks=True, self_destruct=release)
    except (pa.ArrowException, ValueError, LookupError) as error:  # a time zone that there is not is a LookupError
        raise InputError(f"Cannot read {path} as a table: {brief(error)}; repair the file.") from error
    del table
    if rows > SHRINK_ROWS:
        for name in frame.columns:
            if frame[name].dtype == np.float64:
                frame[name] = _shrink(frame[name].to_numpy())
    return frame


def _shrink(values: Any) -> Any:
    """Return float32 values where rounding moves none by more than a millionth of the column's spread."""
    import numpy as np

    if np.isnan(values).all():
        return values.astype(np.float32)
    with np.errstate(all="ignore"):
        largest, spread = np.nanmax(np.abs(values)), np.nanstd(values)
        small = np.isfinite(largest) and largest < 1e30 and largest * 2.0**-24 <= 1e-6 * spread
    return values.astype(np.float32) if small else values


def _write(frame: pd.DataFrame, path: Path, ending: str) -> None:
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    except pa.ArrowException as error:
        raise InputError(f"Cannot write the table: {brief(error)}; give each column one type.") from error
    if ending in TEXT_ENDINGS:
        return _write_text(table, path, ending)
    # A stream, because Arrow takes no path whose name is not UTF-8.
    with pa.OSFile(os.fsencode(path), "wb") as file:
        if ending in PARQUET_ENDINGS:
            import pyarrow.parquet as parquet

            parquet.write_table(table, file)
        else:
            import pyarrow.feather as feather

            feather.write_feather(table, file)


def _write_text(table: pa.Table, path: Path, ending: str) -> None:
    import pyarrow.csv as writer

    delimiter = "\t" if ending.startswith(".tsv") else ","
    opener: Any = gzip.open if ending.endswith(".gz") else open
    # The header goes through the csv module because Arrow would quote every name.
    with opener(path, "wb") as file:
        file.write(_header(table.column_names, delimiter).encode())
        options = writer.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
        writer.write_csv(table, file, options)


def _header(names: list[str], delimiter: str) -> str:
    import io

    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
    return line.getvalue()
