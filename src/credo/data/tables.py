"""Reading and writing tables: CSV, TSV, Parquet and Feather, each failure in one sentence."""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow")
ENDINGS = TEXT_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS

# A line longer than this cannot be read; the reader's default of 1 MB is too short for wide tables.
BLOCK_BYTES = 1 << 24
# Above this many rows float64 columns that lose nothing by it are kept as float32.
SHRINK_ROWS = 1_000_000


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table whose format is told by its ending; raises `InputError` with one sentence."""
    path = Path(path)
    ending = _ending(path)
    _check_readable(path)
    if ending in TEXT_ENDINGS:
        table = _read_text(path, ending)
    else:
        table = _read_binary(path, ending)
    _check_names(path, table.column_names)
    if table.num_rows == 0:
        raise InputError(f"The table {path} has column names but no rows; add rows below its header.")
    return _to_frame(path, _plain_types(table))


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table in the format told by its ending; the file appears whole or not at all."""
    path = Path(path)
    ending = _ending(path)
    if path.is_dir():
        raise InputError(f"Cannot write the table {path}: it is a folder; name a file.")
    if not path.parent.is_dir():
        raise InputError(f"Cannot write the table {path}: there is no folder {path.parent}; make it first.")
    _check_names(path, [str(name) for name in frame.columns])
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _write(frame, part, ending)
        os.replace(part, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"Cannot write the table {path}: {reason}; choose another place.") from error
    finally:
        part.unlink(missing_ok=True)


def _ending(path: Path) -> str:
    name = path.name.lower()
    found = [ending for ending in ENDINGS if name.endswith(ending)]
    if not found:
        raise InputError(
            f"The ending of {path} is not that of a table; "
            "use .csv, .csv.gz, .tsv, .parquet, .feather or .arrow (spreadsheets: save as CSV)."
        )
    return max(found, key=len)


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a table; name a file in it.")
    if not path.exists():
        raise InputError(f"There is no file {path}; check the path.")
    if not os.access(path, os.R_OK):
        raise InputError(f"The file {path} may not be read; change its permissions.")
    if path.stat().st_size == 0:
        raise InputError(f"The file {path} is empty; it needs a line of column names and rows below it.")


def _read_text(path: Path, ending: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv as reader

    header = _header_line(path, ending)
    if not header.strip():
        raise InputError(f"The file {path} is empty; it needs a line of column names and rows below it.")
    delimiter = _delimiter(header, ending)
    options = reader.ConvertOptions(strings_can_be_null=True)
    # "?" is how many public data sets write a missing cell.
    options.null_values = [*options.null_values, "?"]
    failure: Exception | None = None
    # Quoted line breaks need the slower parser, so it is only the second try.
    for newlines in (False, True):
        try:
            table = reader.read_csv(
                path,
                read_options=reader.ReadOptions(block_size=BLOCK_BYTES),
                parse_options=reader.ParseOptions(delimiter=delimiter, newlines_in_values=newlines),
                convert_options=options,
            )
            break
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            failure = error
    else:
        raise InputError(f"Cannot read {path} as a table: {_brief(failure)}; repair the file.") from failure
    for field in table.schema:
        if pa.types.is_binary(field.type):
            raise InputError(
                f"Column '{field.name}' of {path} is not UTF-8 text; save the file with the encoding UTF-8."
            )
    return table.rename_columns([name.strip() for name in table.column_names])


def _header_line(path: Path, ending: str) -> str:
    opener: Any = gzip.open if ending.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline=None) as file:
            for line in file:
                if line.strip():
                    return line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text; save the file with the encoding UTF-8.") from error
    except (OSError, EOFError) as error:
        raise InputError(f"Cannot read {path} as a table: {_brief(error)}; repair the file.") from error
    return ""


def _delimiter(header: str, ending: str) -> str:
    if ending.startswith(".tsv"):
        return "\t"
    outside = "".join(header.split('"')[::2])
    return max([",", ";", "\t"], key=outside.count)


def _read_binary(path: Path, ending: str) -> pa.Table:
    import pyarrow as pa

    try:
        if ending in PARQUET_ENDINGS:
            import pyarrow.parquet as parquet

            with parquet.ParquetFile(path) as file:
                return file.read()
        with pa.OSFile(str(path)) as file:
            return _open_arrow(file).read_all()
    except (pa.ArrowException, OSError) as error:
        kind = "Parquet" if ending in PARQUET_ENDINGS else "Feather or Arrow"
        raise InputError(
            f"Cannot read {path} as a {kind} table: {_brief(error)}; write the file again or give it its true ending."
        ) from error


def _open_arrow(file: Any) -> Any:
    """Open the file form (Feather 2) or, for `.arrow`, the stream form."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


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

    for place, field in enumerate(table.schema):
        kind: Any = None
        if pa.types.is_decimal(field.type):
            kind = pa.float64()
        elif pa.types.is_time(field.type):
            kind = pa.duration(field.type.unit)
        if kind is not None:
            column = table.column(place)
            if pa.types.is_duration(kind):
                column = column.cast(pa.int32() if field.type.bit_width == 32 else pa.int64()).cast(pa.int64())
            table = table.set_column(place, field.name, column.cast(kind))
    return table


def _to_frame(path: Path, table: pa.Table) -> pd.DataFrame:
    import numpy as np
    import pyarrow as pa

    rows = table.num_rows
    try:
        frame = table.to_pandas(date_as_object=False, split_blocks=True, self_destruct=True)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"Cannot read {path} as a table: {_brief(error)}; repair the file.") from error
    del table
    # A named index, as pandas stores it in Parquet and Feather, is a column like any other.
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=named) if named else frame
    frame = frame.reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
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
        raise InputError(f"Cannot write the table: {_brief(error)}; give each column one type.") from error
    if ending in PARQUET_ENDINGS:
        import pyarrow.parquet as parquet

        parquet.write_table(table, path)
    elif ending in ARROW_ENDINGS:
        import pyarrow.feather as feather

        feather.write_feather(table, path)
    else:
        _write_text(table, path, ending)


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


def _brief(error: Exception | None) -> str:
    """Return the first line of another library's message, without its final stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ")[:200] if lines else type(error).__name__
