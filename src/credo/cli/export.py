"""`credo export`: a run as a predictor that needs no credo."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say
from credo.cli.options import Run


def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="Folder to write; it must not be there yet.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(help="numpy (NumPy alone predicts; perceptrons) or stablehlo (a program for JAX; any network)."),
    ] = "numpy",
    samples: Annotated[
        int | None,
        typer.Option(help="Draws of the weights.", show_default="all that are stored, or 200 of each member", min=1),
    ] = None,
    levels: Annotated[
        str, typer.Option(help="Quantile levels of a program, separated by commas; numpy gives every quantile.")
    ] = "0.05,0.5,0.95",
) -> None:
    """Write RUN as a folder that predicts without credo.

    Its predictions are those of `credo predict`. The folder has the predictor, predictor.json (with the table's
    encoder) and portable.py: in Python, `import portable`, then `portable.load(FOLDER).predict(rows)`.
    """
    from credo.errors import InputError
    from credo.storage.export import export as write

    try:
        quantiles = [float(word) for word in levels.split(",")]
    except ValueError as error:
        raise InputError(f"--levels takes numbers such as 0.05,0.5,0.95, got {levels}.") from error
    folder = write(run, out, form, num_samples=samples, levels=quantiles)
    size = sum(file.stat().st_size for file in folder.iterdir())
    say(f"Wrote the predictor {folder} ({size / 1024:.0f} KB, {form}).")
