"""`credo evaluate`: scores on a table with known targets."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import emit, say
from credo.cli.options import AsJson, Run


def evaluate(
    run: Run,
    table: Annotated[Path, typer.Argument(help="Table with input and target columns.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Score RUN on the rows of TABLE, on the table's own scale."""
    from credo.tables import load
    from credo.tables.summary import in_words, of_classes

    opened = load(run)
    scores = opened.score(table, tell=say)
    if as_json:
        emit(scores)
        return
    head = f"{opened.fit.config['method']} on {scores['rows']} rows, with 90 % bootstrap intervals:"
    classes = of_classes(scores, opened.encoder.classes or (), scores.get("confusion"))
    print("\n".join([head, *in_words(scores, scores["intervals"]), *classes]))
