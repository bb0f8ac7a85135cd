"""`credo suggest`: which rows of a table without labels to label next."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say


def suggest(
    run: Annotated[Path, typer.Argument(help="Run directory of a fit.", show_default=False)],
    table: Annotated[Path, typer.Argument(help="Table of rows that have no label yet.", show_default=False)],
    rows: Annotated[int, typer.Option(help="How many rows to suggest.", min=1)] = 10,
    acquisition: Annotated[
        str, typer.Option(help="bald, batch_bald, power_bald, epig, variance, entropy or random.")
    ] = "batch_bald",
    out: Annotated[
        Path | None, typer.Option(help="File to write (CSV, Parquet, Feather).", show_default="CSV on stdout")
    ] = None,
) -> None:
    """Say which rows of TABLE are most worth a label, best first.

    A label is worth what it tells about the network's weights (bald), together with the other labels of the batch
    (batch_bald, the default), or about the labels of the other rows (epig). The answer has the columns rank, row
    (counted from 1 below the heading), value (of the row on its own, in nats; a variance for variance) and those of
    TABLE.
    """
    import sys

    import jax
    import numpy as np

    from credo.applications.active import acquisition_scores, choose
    from credo.tables.run import inputs_of, open_table_run, read_rows, usable_rows
    from credo.errors import InputError
    from credo.tables.read.files import write_table

    opened = open_table_run(run)
    frame = read_rows(opened, table)
    usable = usable_rows(opened, frame, table, " and are left out")
    if rows > len(usable):
        say(f"{table} has {len(usable)} rows to choose from: all are suggested.")
    inputs = inputs_of(opened, frame.iloc[usable])
    key = jax.random.fold_in(jax.random.key(opened.table.get("seed", 0)), 4)
    chosen = choose(key, opened.fit, inputs, min(rows, len(usable)), acquisition)
    values = acquisition_scores(key, opened.fit, inputs, acquisition)[chosen]
    if not values.any():
        raise InputError(
            f"The posterior of {run} is a point, so a label would tell it nothing: fit with a method that has a "
            "spread, such as deep_ensemble, or take --acquisition entropy."
        )
    found = frame.iloc[usable[chosen]].reset_index(drop=True)
    for place, (name, column) in enumerate(
        {"rank": np.arange(1, len(chosen) + 1), "row": usable[chosen] + 1, "value": values}.items()
    ):
        found.insert(place, name, column, allow_duplicates=True)
    if out is None:
        found.to_csv(sys.stdout, index=False)
    else:
        write_table(found, out)
        say(f"Wrote {len(found)} suggestions to {out}.")
