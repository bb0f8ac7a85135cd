"""Where a command puts the tables and pictures that it made."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credo.cli.console import say
from credo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def write_or_print(frame: "pd.DataFrame", out: Path | None, what: str, note: str = "") -> None:
    """Write the table to a file, or to stdout as CSV.

    Args:
        frame: the table.
        out: the file; None is stdout.
        what: its rows are called.
        note: a sentence about them: on stdout where the table is in a file.
    """
    from credo.tables.read.files import write_table

    if out is None:
        frame.to_csv(sys.stdout, index=False)
        say(*[note] if note else [])
        return
    write_table(frame, out)
    if note:
        print(note)
    say(f"Wrote {len(frame)} {what} to {out}.")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure, and say where it is."""
    try:
        figure.savefig(path, facecolor="white", dpi=150)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}; choose another --out.") from error
    say(f"Wrote the picture {path}.")


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print names and numbers in columns; where stdout has no width, as a pipe, no number is cut."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(header_style="bold")
    for i, heading in enumerate(head):
        shown.add_column(heading, no_wrap=True, justify="left" if i == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    width = sum(max(len(row[i]) for row in [head, *rows]) + 3 for i in range(len(head))) + 2
    Console(width=max(Console().width, width)).print(shown)
