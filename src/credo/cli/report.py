"""`credo report`: a page about one run, or about several side by side."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.", metavar="RUN...", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default="RUN/report.html, report.html for several"),
    ] = None,
) -> None:
    """Write a self-contained HTML page about one or several runs."""
    print(write(runs, out))


def write(runs: list[Path], out: Path | None) -> Path:
    """Write the page and say where it is."""
    from credo.report import load_run_data, write_report

    path = out or (runs[0] / "report.html" if len(runs) == 1 else Path("report.html"))
    write_report([load_run_data(run) for run in runs], path)
    say(f"Wrote the report on {len(runs)} run{'s' * (len(runs) > 1)}.")
    return path
