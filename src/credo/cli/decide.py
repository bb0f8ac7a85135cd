"""`credo decide`: the action of largest expected utility for every row of a table."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import say
from credo.cli.options import Inputs, Run, TableOut


def decide(
    run: Run,
    table: Inputs,
    utility: Annotated[
        Path | None,
        typer.Option(
            help="Table of utilities. Classes: a column of actions, then one for each class. Numbers: columns action, "
            "threshold, utility_below, utility_above.",
            show_default=False,
        ),
    ] = None,
    newsvendor: Annotated[
        str | None,
        typer.Option(
            help="UNDER,OVER: what each unit too few and each unit too many costs; the action is the amount.",
            show_default=False,
        ),
    ] = None,
    out: TableOut = None,
    risk: Annotated[
        str, typer.Option(help="mean, cvar:SHARE (mean of the worst share) or exponential:AVERSION.")
    ] = "mean",
    over: Annotated[
        str, typer.Option(help="What the risk is about: outcomes, or parameters (noise averaged out).")
    ] = "outcomes",
    abstain: Annotated[
        str | None,
        typer.Option(
            help="COST of a further action, to abstain; or COST,CHANCE where another then decides, who is right with "
            "that chance.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Choose the best action for every row of TABLE, given what each action is worth.

    Utilities are larger for better; write costs as negative numbers. Columns of the result: action (and amount),
    expected_utility, second_best and loss_of_second (what is lost by it), chance_best, value_of_parameters (what
    more data could bring at most), value_of_outcome, and the utility of each action. Where TABLE has the target, the
    utility that came true is printed, and that of acting on the point prediction. Beside --out goes a picture.
    """
    from credo.applications.decisions.risk import risk_of
    from credo.cli.output import write_or_print, write_picture
    from credo.errors import InputError
    from credo.tables import load

    if over not in ("outcomes", "parameters"):
        raise InputError(f"--over is outcomes or parameters, got {over}.")
    how, leave = risk_of(risk), _abstain(abstain)
    if (utility is None) == (newsvendor is None):
        raise InputError("Give what actions are worth by one of --utility FILE and --newsvendor UNDER,OVER.")
    opened = load(run)
    rows = opened.rows(table, fate="; their decisions are left empty", tell=say)
    decisions = opened.decide(rows, utility or _order(str(newsvendor)), risk=how, over=over, abstain=leave)
    text = "\n".join([decisions.summary(), *_realised(decisions, opened.encoder, rows.used)])
    result = decisions.to_pandas()
    if len(rows.places) < len(rows.frame):
        result = result.set_index(rows.places).reindex(range(len(rows.frame)))
    write_or_print(result, out, "decisions", text)
    if out is not None:
        write_picture(decisions.plot(), out.with_suffix(".png"))


def _order(text: str) -> Any:
    from credo.applications import newsvendor

    return newsvendor(*_pair(text, "--newsvendor takes two numbers, UNDER,OVER, such as 3,1"))


def _abstain(text: str | None) -> Any:
    if text is None:
        return None
    words = "--abstain takes a cost, such as 0.5, or a cost and a chance, such as 0.5,0.9"
    return _pair(text, words) if "," in text else _number(text, words)


def _pair(text: str, words: str) -> tuple[float, float]:
    from credo.errors import InputError

    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"{words}; got {text}.")
    return _number(parts[0], words), _number(parts[1], words)


def _number(text: str, words: str) -> float:
    from credo.errors import InputError

    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{words}; got {text}.") from error


def _realised(decisions: Any, encoder: Any, frame: Any) -> list[str]:
    """What came true, where the table has targets."""
    import numpy as np

    from credo.tables.encode.scale import true_targets
    from credo.tables.read import parse

    frame = parse.named_frame(frame)
    if encoder.target not in frame.columns:
        return []
    labelled = np.flatnonzero(~parse.missing_mask(frame[encoder.target]))
    if len(labelled) == 0:
        return []
    targets = true_targets(encoder, encoder.targets(frame.iloc[labelled]))
    missing = len(frame) - len(labelled)
    note = [f"{missing} of {len(frame)} rows have no target and are not scored."] if missing else []
    return [str(decisions.rows(labelled).score(targets)), *note]
