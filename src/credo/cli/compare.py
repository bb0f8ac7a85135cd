"""`credo compare`: which model for this table?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, say
from credo.cli.limits import MOST_SEED


def compare(
    table: Annotated[Path, typer.Argument(help="CSV (also .gz), TSV, Parquet, Feather or Excel.", show_default=False)],
    target: Annotated[
        list[str],
        typer.Option(help="Column to predict; repeat it for several numbers.", show_default=False, metavar="COL"),
    ],
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
    task: Annotated[str, typer.Option(help="auto, regression, classification or count.")] = "auto",
    drop: Annotated[
        list[str] | None, typer.Option(help="Column that is no input; may be repeated.", metavar="COL")
    ] = None,
    missing: Annotated[
        str,
        typer.Option(help="Missing cells: auto (learns what a gap means), error, drop (leaves rows out) or impute."),
    ] = "auto",
    network: Annotated[str | None, typer.Option(help='Such as "mlp:50,50".', show_default="each method's own")] = None,
    split_by: Annotated[str | None, typer.Option(help="Hold out whole groups of this column.", metavar="COL")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same folds.", min=0, max=MOST_SEED)] = 0,
    jobs: Annotated[int, typer.Option(help="Fits that run side by side.", min=1)] = 1,
    folder: Annotated[
        Path | None, typer.Option(help="Keep what is done here; the same command goes on.", metavar="DIR")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="HTML page to write.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Fit several methods and baselines on the same folds of TABLE and rank them by how well they predict."""
    from credo.registry import find

    for name in [] if methods in (None, "all") else str(methods).split(","):
        if name.strip() not in ("auto", "linear", "forest", "boosting", "gp"):
            find(name.strip())  # before anything slow is imported
    import credo

    def tell(model: str, fold: int, cell: dict[str, Any]) -> None:
        say(f"  fold {fold + 1}: {model} " + ("refuses" if cell["refused"] else f"{cell['seconds']:.1f} s"))

    chosen: Any = {"all": True, "none": False}.get(baselines, baselines)
    found = credo.compare(
        str(table), target[0] if len(target) == 1 else target, methods=methods, baselines=chosen, folds=folds,
        budget=budget, steps=steps, task=task, missing=missing, drop=list(drop or []), network=network,
        split_by=split_by, seed=seed, jobs=jobs, folder=folder, callback=tell, announce=say,
    )  # fmt: skip
    say(*found.notes)
    if out is not None:
        from credo.report.comparison import write_comparison
        from credo.tables.read.source import table_name

        say(f"Written: {write_comparison(found, table_name(table.name), out)}")
    if as_json:
        said = {"sentences": found.sentences(), "warnings": found.warnings()}
        emit({"table": found.table, "refused": found.refused} | said)
    else:
        _show(found)
    if not found.table:
        raise typer.Exit(1)


def _show(found: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from credo.report.comparison import rows_of

    head, body = rows_of(found)
    shown = Table(header_style="bold")
    for i, heading in enumerate(head):
        shown.add_column(heading, no_wrap=True, justify="left" if i == 0 else "right")
    for line in body:
        shown.add_row(*line)
    if body:
        # A pipe has no width; a table that is cut would lose numbers.
        width = sum(max(len(row[i]) for row in [head, *body]) + 3 for i in range(len(head))) + 2
        Console(width=max(Console().width, width)).print(shown)
    print("\n".join([*found.sentences(), *found.warnings()]))
