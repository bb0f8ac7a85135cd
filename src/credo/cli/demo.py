"""`credo demo`: everything once, on a table that comes with credo."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run, its predictions and its report.")] = Path("credo-demo"),
    steps: Annotated[int | None, typer.Option(help="Steps of the fit.", min=1, show_default="the method's")] = None,
) -> None:
    """Fit, score, predict and report on 442 diabetes patients."""
    import shutil

    import credo
    from credo.cli import fit, predict, report

    table = Path(str(credo.__file__)).parent / "tables" / "bundled" / "diabetes.csv"
    run, predictions, page = out / "run", out / "predictions.csv", out / "report.html"
    out.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(run / "checkpoint", ignore_errors=True)  # of a demo that was stopped
    say("How far will diabetes have progressed after a year? Learning from 442 patients …")
    fit.fit(table, ["progression"], run, steps=steps)
    predict.predict(run, table, predictions)
    report.write([run], page)
    print(
        f"Predictions: {predictions}\n"
        f"Report:      {page}\n\n"
        "Next:\n"
        f"  credo fit {table} --target progression --method nuts --network mlp:10 --steps 200 --out {out / 'nuts'}\n"
        f"  credo report {run} {out / 'nuts'} --out {out / 'compared.html'}\n"
        "  credo fit YOUR.csv --target COLUMN --out my-run"
    )
