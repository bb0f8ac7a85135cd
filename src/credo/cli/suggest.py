"""`credo suggest`: which rows of a table without labels to label next."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say
from credo.cli.options import Run, TableOut


def suggest(
    run: Run,
    table: Annotated[Path, typer.Argument(help="Table of rows that have no label yet.", show_default=False)],
    rows: Annotated[int, typer.Option(help="How many rows to suggest.", min=1)] = 10,
    acquisition: Annotated[
        str, typer.Option(help="bald, batch_bald, power_bald, epig, variance, entropy or random.")
    ] = "batch_bald",
    out: TableOut = None,
) -> None:
    """Say which rows of TABLE are most worth a label, best first.

    A label is worth what it tells about the network's weights (bald), together with the other labels of the batch
    (batch_bald, the default), or about the labels of the other rows (epig). The answer has the columns rank, row
    (counted from 1 below the heading), value (of the row on its own, in nats; a variance for variance) and those of
    TABLE.
    """
    from credo.cli.output import write_or_print
    from credo.tables import load

    write_or_print(load(run).suggest(table, rows, acquisition=acquisition, tell=say), out, "suggestions")
