"""`credo evaluate`: scores on a table with known targets."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import emit, in_words, of_classes, say


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run directory of a fit.", show_default=False)],
    table: Annotated[Path, typer.Argument(help="Table with input and target columns.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Score RUN on the rows of TABLE, on the table's own scale."""
    from credo.tables.run import open_table_run, read_rows
    from credo.tables.score import confusion_of, intervals_of, predictive_at, true_targets
    from credo.errors import InputError
    from credo.tables.encode.unseen import unseen_notes

    opened = open_table_run(run)
    encoder = opened.encoder
    frame = read_rows(opened, table)
    arrays = encoder.arrays(frame, unseen="zeros")
    say(*unseen_notes(encoder, arrays.inputs))
    if len(arrays.rows) == 0:
        raise InputError(f"No row of {table} can be scored: all have missing cells or no weight.")
    if len(arrays.rows) < len(frame):
        say(f"{len(frame) - len(arrays.rows)} of {len(frame)} rows cannot be scored and are left out.")
    predictive = predictive_at(opened.fit, encoder, arrays.inputs, opened.table.get("seed", 0))
    weights = arrays.weights if encoder.weight_column else None
    truth = true_targets(encoder, arrays.targets)
    found, counts = intervals_of(predictive, truth, weights), confusion_of(predictive, truth, weights)
    scores = {name: interval.value for name, interval in found.items()}
    ends = {name: [interval.low, interval.high] for name, interval in found.items()}
    if as_json:
        classes = {} if counts is None else {"confusion": counts, "classes": encoder.classes}
        emit(scores | {"rows": len(arrays.rows), "intervals": ends} | classes)
    else:
        head = f"{opened.fit.config['method']} on {len(arrays.rows)} rows, with 90 % bootstrap intervals:"
        print("\n".join([head, *in_words(scores, ends), *of_classes(scores, encoder.classes or (), counts)]))
