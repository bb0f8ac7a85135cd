"""`credo detect`: which rows of a table are unlike what a run knows, and whether it would notice an attack."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say
from credo.cli.options import Run, TableOut


def detect(
    run: Run,
    suspect: Annotated[
        Path | None, typer.Option(help="Table with the input columns, to look for strange rows in.", show_default=False)
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            help="In place of --suspect, for classes: attack clean rows by KIND:SIZE or KIND:SIZE:NORM, such as "
            "fgsm:0.1 or pgd:0.5:l2, in standard deviations of the inputs.",
            show_default=False,
        ),
    ] = None,
    clean: Annotated[
        Path | None,
        typer.Option(
            help="Table of rows that are as they should be, not those of training.",
            show_default="the rows that the run held out",
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="Classes: entropy, conditional_entropy, mutual_information or max_probability. Numbers: variance or "
            "epistemic.",
            show_default="entropy; epistemic",
        ),
    ] = None,
    fpr: Annotated[float, typer.Option(help="Share of clean rows that may be flagged.")] = 0.05,
    out: TableOut = None,
) -> None:
    """Flag rows of a table on which the model knows less than on all but a few clean rows.

    The threshold is the smallest score with at most a share --fpr of clean rows above it. The answer has the columns
    row (counted from 1 below the heading), score, threshold, flagged and those of SUSPECT. With --attack one half of
    the clean rows fixes the threshold, the other is attacked, and what is caught of the successful attacks is said.
    """
    from credo.applications.detection import Attack
    from credo.cli.output import write_or_print, write_picture
    from credo.errors import InputError
    from credo.tables import load
    from credo.tables.detection import attacked

    if (suspect is None) == (attack is None):
        raise InputError("Say what to detect by one of --suspect FILE and --attack KIND:SIZE.")
    if suspect is not None:
        notes: list[str] = []
        flagged = load(run).detect(suspect, clean=clean, score=score, fpr=fpr, tell=notes.append)
        say(*notes[:-1])
        write_or_print(flagged, out, "rows", notes[-1])
        return
    how = Attack.parse(str(attack))
    attacks, detection = attacked(load(run), how, clean, score, fpr, say)
    print(attacks)
    if detection is None:
        print("No attack succeeded, so there is nothing to detect.")
        if out is not None:
            say(f"{out} was not written. A larger size, or more rows with --clean FILE, may find an attack.")
        return
    print(detection)
    if out is not None:
        write_or_print(detection.to_pandas(), out, "scores")
        write_picture(detection.plot(), out.with_suffix(".png"))
