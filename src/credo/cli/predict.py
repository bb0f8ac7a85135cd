"""`credo predict`: predictions with their uncertainty, as a table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import say


def predict(
    run: Annotated[Path, typer.Argument(help="Run directory of a fit.", show_default=False)],
    table: Annotated[Path, typer.Argument(help="Table with the input columns.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="File to write (CSV, Parquet, Feather).", show_default="CSV on stdout")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of TABLE to carry along; may be repeated.",
            show_default="one that is called an id",
            metavar="COL",
        ),
    ] = None,
    interval: Annotated[float, typer.Option(help="Probability of the interval from lower to upper.")] = 0.9,
) -> None:
    """Predict every row of TABLE.

    Numbers get the columns mean, std, aleatoric_std, epistemic_std, lower and upper; classes get label, p_CLASS for
    each class, entropy, aleatoric_entropy and mutual_information. Text shows six digits, and four of std; Parquet and
    Feather keep all.
    """
    import sys

    from credo.cli.columns import beside, kept_columns, prediction_frame, rounded
    from credo.tables.run import inputs_of, open_table_run, read_rows, usable_rows
    from credo.tables.score import predictive_at
    from credo.errors import InputError
    from credo.tables.read.files import write_table
    from credo.tables.read.text import TEXT_ENDINGS

    if not 0 < interval < 1:
        raise InputError(f"--interval lies between 0 and 1, got {interval:g}.")
    opened = open_table_run(run)
    frame = read_rows(opened, table)
    kept = kept_columns(frame, keep or [], opened.encoder)
    rows = usable_rows(opened, frame, table, "; their predictions are left empty")
    inputs = inputs_of(opened, frame.iloc[rows])
    predictive = predictive_at(opened.fit, opened.encoder, inputs, opened.table.get("seed", 0))
    result: Any = prediction_frame(predictive, opened.encoder, interval, rows, len(frame))
    if out is None or out.name.lower().endswith(TEXT_ENDINGS):
        result = rounded(result)
    result = beside(frame, kept, result)
    if out is None:
        result.to_csv(sys.stdout, index=False)
    else:
        write_table(result, out)
        say(f"Wrote {len(result)} predictions to {out}.")
