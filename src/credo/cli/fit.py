"""`credo fit`: learn from a table."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, say
from credo.cli.options import AsJson, Drop, Missing, Seed, SplitBy, Table, Target, Task, Verbose
from credo.tables.auto.choice import AUTO


def fit(
    table: Table,
    target: Target,
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory to write.", show_default="runs/ and the table's name", metavar="RUN"),
    ] = None,
    task: Task = "auto",
    method: Annotated[
        str, typer.Option(help="Inference method (`credo methods` lists them), or auto.", metavar="NAME")
    ] = AUTO,
    network: Annotated[
        str | None,
        typer.Option(
            help='Hidden widths and activation: "mlp:50,50", "mlp:50:tanh"; "shallow:8": one layer and a linear part.',
            show_default="the method's, often mlp:50",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of the method (learning_rate=0.01) or the model (prior=normal:1.0, likelihood=student_t, "
            "noise=0.1, temperature=1.0); may be repeated.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps, or draws of each chain.", min=1, show_default="the method's")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help='Time instead of steps, compilation aside: "60s", "5m".', metavar="TIME")
    ] = None,
    effort: Annotated[
        str,
        typer.Option(
            help="Of auto, which mixes models by how well each predicts rows that it has not seen: quick (a few "
            "seconds), normal (up to half a minute) or best (minutes); compilation comes on top.",
            metavar="HOW",
        ),
    ] = "normal",
    batch_size: Annotated[
        int | None, typer.Option(help="Rows of a minibatch.", min=1, show_default="all up to 512, else 128")
    ] = None,
    seed: Seed = 0,
    holdout: Annotated[float, typer.Option(help="Share of rows to score on.")] = 0.1,
    drop: Drop = None,
    missing: Missing = "auto",
    weights: Annotated[str | None, typer.Option(help="Column of row weights.", metavar="COL")] = None,
    split_by: SplitBy = None,
    time: Annotated[str | None, typer.Option(help="Hold out the latest rows by this column.", metavar="COL")] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints of an unfinished run.", min=0.0)
    ] = 30.0,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Learn from TABLE to predict a column, score on held-out rows and write a run directory."""
    from credo.registry import find

    if method != AUTO:
        find(method)  # before anything slow is imported
    from credo import tables
    from credo.tables.model import parse_settings

    run = tables.fit(
        table, target, task=task, method=method, network=network, settings=parse_settings(settings or []), steps=steps,
        budget=budget, effort=effort, batch_size=batch_size, seed=seed, holdout=holdout, drop=drop or [],
        missing=missing, weights=weights, split_by=split_by, time=time, out=free_folder(table) if out is None else out,
        checkpoint_every=checkpoint_every, tell=say, tell_notes=verbose,
    )  # fmt: skip
    finish(run, as_json, verbose)


def free_folder(table: Path) -> Path:
    """runs/NAME, or runs/NAME-2 and so on where that is taken."""
    name = table.name.removesuffix(".gz").rpartition(".")[0] or table.name
    folders = (Path("runs") / (name if i == 1 else f"{name}-{i}") for i in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())


def finish(run: Any, as_json: bool, verbose: bool) -> None:
    """Print what came of a fit, in few lines or all of it; exit code 1 where it failed, 130 where it was stopped."""
    from credo.tables.brief import brief_lines

    if as_json:
        emit(run.facts())
    elif verbose:
        print(f"{run.summary()}\nRun: {run.folder}")
    else:
        print("\n".join(brief_lines(run)))
    if not run.status.ok:
        say(str(run.status))
        raise typer.Exit(1)
    if "interrupted" in str(run.status):
        raise typer.Exit(130)
