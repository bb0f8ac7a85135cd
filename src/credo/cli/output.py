"""Where a command puts the table that it made."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from credo.cli.console import say

if TYPE_CHECKING:
    import pandas as pd


def write_or_print(frame: "pd.DataFrame", out: Path | None, what: str, said: str = "") -> None:
    """Write the table to a file, or to stdout as CSV.

    Args:
        frame: the table.
        out: the file; None is stdout.
        what: its rows are called.
        said: a sentence about them: on stdout where the table is in a file.
    """
    from credo.tables.read.files import write_table

    if out is None:
        frame.to_csv(sys.stdout, index=False)
        say(*[said] if said else [])
        return
    write_table(frame, out)
    if said:
        print(said)
    say(f"Wrote {len(frame)} {what} to {out}.")
