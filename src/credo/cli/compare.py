"""`credo compare`: which model for this table?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, say
from credo.cli.options import AsJson, Drop, Missing, Seed, SplitBy, Table, Target, Task


def compare(
    table: Table,
    target: Target,
    methods: Annotated[
        str | None,
        typer.Option(help='Names with commas between, or "all".', metavar="NAMES", show_default="some of each kind"),
    ] = None,
    baselines: Annotated[
        str, typer.Option(help='Models that are no networks: "all", "none" or names with commas between.')
    ] = "all",
    folds: Annotated[int, typer.Option(help="Each row is held out once, in so many folds.", min=2)] = 5,
    budget: Annotated[
        str | None,
        typer.Option(
            help='Time of each fit, a pilot included and compilation aside: "60s", "5m". It ends the main phase alone: '
            "starts and warm-up are done in full, and baselines take what they take; † marks what took far longer.",
            metavar="TIME",
            show_default="the method's",
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of each fit instead.", min=1)] = None,
    task: Task = "auto",
    drop: Drop = None,
    missing: Missing = "auto",
    network: Annotated[str | None, typer.Option(help='Such as "mlp:50,50".', show_default="each method's own")] = None,
    split_by: SplitBy = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Fits that run side by side.", min=1)] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Keep what is done here; the same command goes on.", metavar="DIR")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML page to write.", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit several methods and baselines on the same folds of TABLE and rank them by how well they predict."""
    from credo.registry import find

    for name in [] if methods in (None, "all") else str(methods).split(","):
        if name.strip() not in ("auto", "linear", "forest", "boosting", "gp"):
            find(name.strip())  # before anything slow is imported
    import credo

    def show(model: str, fold: int, cell: dict[str, Any]) -> None:
        say(f"  fold {fold + 1}: {model} " + ("refuses" if cell["refused"] else f"{cell['seconds']:.1f} s"))

    selected: Any = {"all": True, "none": False}.get(baselines, baselines)
    comparison = credo.compare(
        str(table), target[0] if len(target) == 1 else target, methods=methods, baselines=selected, folds=folds,
        budget=budget, steps=steps, task=task, missing=missing, drop=list(drop or []), network=network,
        split_by=split_by, seed=seed, jobs=jobs, folder=folder, callback=show, announce=say,
    )  # fmt: skip
    say(*comparison.notes)
    if out is not None:
        from credo.report.comparison import write_comparison
        from credo.tables.read.source import table_name

        say(f"Written: {write_comparison(comparison, table_name(table.name), out)}")
    if as_json:
        messages = {"sentences": comparison.sentences(), "warnings": comparison.warnings()}
        emit({"table": comparison.table, "refused": comparison.refused} | messages)
    else:
        from credo.cli.output import print_table
        from credo.report.comparison import rows_of

        if comparison.table:
            print_table(*rows_of(comparison))
        print("\n".join([*comparison.sentences(), *comparison.warnings()]))
    if not comparison.table:
        raise typer.Exit(1)
