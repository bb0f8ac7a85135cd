"""`credo effects`: what each input of a run does, as a table and a picture."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import say
from credo.cli.options import Run


def effects(
    run: Run,
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Table with the input columns, to average over.", show_default="the rows that the run held out"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for effects.png and effects.html.", show_default="RUN")
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of bands and intervals.")] = 0.9,
) -> None:
    """Show what each input does to the prediction: how strongly, along which curve, and whether it matters.

    The curve of an input is the mean prediction over the rows with that input moved and all others left (partial
    dependence), with a band over the posterior. Strength is the curve's standard deviation over the rows, in units of
    the target. A date shows its trend, with weekdays, hours and seasons averaged out, and a curve for each of these of
    which the rows span two turns. Whether an input matters is known for fits by gibbs or reversible_jump with --set
    select_inputs=true.
    """
    from credo.report.effects import left_out, of_dates
    from credo.tables import load

    opened = load(run)
    inputs = opened.inputs(rows, tell=say)
    result = opened.effects(inputs, level=level)
    print(result)
    say(*of_dates(result, opened.encoder), *left_out(result, opened.encoder))
    for path in write(opened, result, inputs, out or run):
        say(f"Wrote {path}.")


def write(opened: Any, result: Any, inputs: Any, folder: Path) -> list[Path]:
    """Write the picture and the page."""
    from credo.errors import InputError
    from credo.report.effects import TITLE, effect_figures, effect_page
    from credo.report.nodes import node_section

    figures = effect_figures(result, opened.encoder, inputs)
    page = effect_page(
        f"{TITLE}: {opened.folder.resolve().name}", result, opened.encoder, figures, node_section(opened.fit, 2, "run")
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, figure in figures.items():
            paths.append(folder / f"{name.replace('panels', 'effects')}.png")
            figure.savefig(paths[-1], facecolor="white", dpi=150)
        paths.append(folder / "effects.html")
        paths[-1].write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"The effects cannot be written to {folder}: {reason}; choose another --out.") from error
    return paths
