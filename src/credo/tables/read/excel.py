"""Excel workbooks: the first sheet, read through pandas and openpyxl."""

from __future__ import annotations

import datetime
import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.read.binary import brief

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EXCEL_ENDINGS = (".xlsx", ".xlsm")
# A sheet has at most 2²⁰ rows of 2¹⁴ columns; what unpacks to more than this is no table of a person.
MOST_BYTES = 1 << 32


def read_excel(path: Path) -> tuple[pa.Table, list[str]]:
    """The first sheet of a workbook and a note where there are others; raises `InputError` in one sentence."""
    if importlib.util.find_spec("openpyxl") is None:
        raise InputError(
            f"Reading {path.name} needs openpyxl, which is not installed; pip install 'credo[excel]', or save the "
            "sheet as CSV."
        )
    try:
        _check_size(path)
        frame, sheets = _first_sheet(path)
        table = _as_arrow(frame)
    except InputError:
        raise
    # openpyxl and its XML parser raise what they happen to meet in a damaged file.
    except Exception as error:
        raise InputError(
            f"Cannot read {path} as an Excel workbook: {brief(error)}; save it again or save the sheet as CSV."
        ) from error
    if len(sheets) == 1:
        return table, []
    return table, [f"{path.name} has {len(sheets)} sheets; '{sheets[0]}', the first, is read."]


def _check_size(path: Path) -> None:
    with zipfile.ZipFile(path) as packed:
        if sum(part.file_size for part in packed.infolist()) > MOST_BYTES:
            raise InputError(f"{path} unpacks to more than {MOST_BYTES >> 30} GB; save the sheet as CSV.")


def _first_sheet(path: Path) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        # Names stay as they are written: pandas would call the second "x" "x.1".
        rows = pd.read_excel(book, sheet_name=sheets[0], header=None, na_values=["?"])
    rows = rows.dropna(how="all").dropna(axis=1, how="all")
    if rows.empty:
        raise InputError(f"The first sheet of {path} is empty; it needs a line of column names and rows below it.")
    frame = rows.iloc[1:].reset_index(drop=True)
    frame.columns = [_name(cell) for cell in rows.iloc[0]]
    return frame, sheets


def _name(cell: Any) -> str:
    import pandas as pd

    is_whole = isinstance(cell, float) and cell.is_integer()
    return "" if pd.isna(cell) else str(int(cell) if is_whole else cell).strip()


def _as_arrow(frame: pd.DataFrame) -> pa.Table:
    """Each column as the one type that its cells have, or as text where they have several."""
    import pyarrow as pa

    columns = [_column([_cell(value) for value in frame.iloc[:, position]]) for position in range(frame.shape[1])]
    return pa.Table.from_arrays(columns, names=list(frame.columns))


def _cell(value: Any) -> Any:
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value.to_pytimedelta()
    if isinstance(value, datetime.time):
        return datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
    return value.item() if isinstance(value, np.generic) else value


def _column(cells: list[Any]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
