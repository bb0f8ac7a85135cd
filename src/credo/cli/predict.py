"""`credo predict`: predictions with their uncertainty, as a table."""

from typing import Annotated

import typer

from credo.cli.console import say
from credo.cli.options import Inputs, Run, TableOut


def predict(
    run: Run,
    table: Inputs,
    out: TableOut = None,
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
    from credo.cli.columns import beside, carried_columns, round_numbers
    from credo.cli.output import write_or_print
    from credo.tables import load
    from credo.tables.read.text import TEXT_ENDINGS

    opened = load(run)
    rows = opened.rows(table, fate="; their predictions are left empty", tell=say)
    columns = carried_columns(rows.frame, keep or [], opened.encoder)
    result = opened.predict(rows, interval=interval)
    if out is None or out.name.lower().endswith(TEXT_ENDINGS):
        result = round_numbers(result)
    write_or_print(beside(rows.frame, columns, result), out, "predictions")
