"""`credo detect`: which rows of a table are unlike what a run knows, and whether it would notice an attack."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import say


def detect(
    run: Annotated[Path, typer.Argument(help="Run directory of a fit.", show_default=False)],
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
    out: Annotated[
        Path | None, typer.Option(help="File to write (CSV, Parquet, Feather).", show_default="CSV on stdout")
    ] = None,
) -> None:
    """Flag rows of a table on which the model knows less than on all but a few clean rows.

    The threshold is the smallest score with at most a share --fpr of clean rows above it. The answer has the columns
    row (counted from 1 below the heading), score, threshold, flagged and those of SUSPECT. With --attack one half of
    the clean rows fixes the threshold, the other is attacked, and what is caught of the successful attacks is said.
    """
    from credo.applications.detection import Attack
    from credo.tables.run import open_table_run
    from credo.errors import InputError

    if (suspect is None) == (attack is None):
        raise InputError("Say what to detect by one of --suspect FILE and --attack KIND:SIZE.")
    if not 0 <= fpr < 1:
        raise InputError(f"--fpr is a share of clean rows, at least 0 and below 1; got {fpr:g}.")
    how = None if attack is None else Attack.parse(attack)
    opened = open_table_run(run)
    if how is not None:
        _attacked(opened, how, clean, score, fpr, out)
    else:
        _flagged(opened, suspect, clean, score, fpr, out)


def _clean_rows(opened: Any, clean: Path | None, target: bool) -> tuple[Any, Any]:
    """Encoded inputs, and targets where asked for: those of the file, or those that the run held out."""
    from credo.tables.run import inputs_of, read_rows
    from credo.errors import InputError

    if clean is not None:
        frame = read_rows(opened, clean)
        rows = opened.encoder.keep(frame, target=target)
        if len(rows) < 2:
            raise InputError(f"{clean} has {'one usable row' if len(rows) else 'no usable rows'}: give more.")
        if len(rows) < len(frame):
            say(f"{len(frame) - len(rows)} of {len(frame)} clean rows have missing cells and are left out.")
        frame = frame.iloc[rows]
        inputs = inputs_of(opened, frame)
        return inputs, opened.encoder.targets(frame) if target else None
    held = opened.heldout.get("inputs", ())
    if len(held) < 2:
        raise InputError(
            f"The run {opened.folder} held out {'one row' if len(held) else 'no rows'}, and training rows would make "
            "the threshold too low: give clean rows with --clean FILE."
        )
    return held, opened.heldout["targets"]


def _scores(opened: Any, inputs: Any, score: str | None) -> Any:
    from credo.applications.detection import suspicion
    from credo.tables.score import predictive_at

    predictive = predictive_at(opened.fit, opened.encoder, inputs, opened.table.get("seed", 0))
    return suspicion(predictive, score)


def _few(rows: int, fpr: float) -> None:
    if rows * fpr < 1:
        say(
            f"With {rows} clean rows a share of {fpr:g} is less than one row: the threshold is the largest clean score."
        )


def _flagged(opened: Any, suspect: Any, clean: Path | None, score: str | None, fpr: float, out: Path | None) -> None:
    import sys

    import numpy as np

    from credo.applications.detection import threshold
    from credo.tables.run import inputs_of, read_rows, usable_rows
    from credo.errors import InputError
    from credo.tables.read.files import write_table

    frame = read_rows(opened, suspect)
    rows = usable_rows(opened, frame, suspect, " and are left out")
    inputs, _ = _clean_rows(opened, clean, target=False)
    base = _scores(opened, inputs, score)
    found = _scores(opened, inputs_of(opened, frame.iloc[rows]), score)
    if np.ptp(base) < 1e-12:
        raise InputError(
            f"The score is the same for every clean row, as that of a point is: fit {opened.folder} with a method that "
            "has a spread, such as deep_ensemble, or take another --score."
        )
    _few(len(base), fpr)
    at = threshold(base, fpr)
    result = frame.iloc[rows].reset_index(drop=True)
    columns = {"row": rows + 1, "score": found, "threshold": np.full(len(rows), at), "flagged": found > at}
    for place, (name, column) in enumerate(columns.items()):
        result.insert(place, name, column, allow_duplicates=True)
    count = int((found > at).sum())
    told = (
        f"{count} of {len(rows)} rows ({100 * count / len(rows):.1f} %) are flagged, with "
        f"{100 * (base > at).mean():.1f} % of {len(base)} clean rows above the threshold {at:.4g}."
    )
    if out is None:
        result.to_csv(sys.stdout, index=False)
        say(told)
    else:
        write_table(result, out)
        print(told)
        say(f"Wrote {len(result)} rows to {out}.")


def _attacked(opened: Any, how: Any, clean: Path | None, score: str | None, fpr: float, out: Path | None) -> None:
    import jax
    import numpy as np

    from credo.applications.detection import attack, detect
    from credo.errors import InputError
    from credo.tables.read.files import write_table

    if opened.encoder.classes is None:
        raise InputError("--attack turns one class into another, and this run predicts numbers; use --suspect FILE.")
    inputs, targets = _clean_rows(opened, clean, target=True)
    seed = jax.random.key(opened.table.get("seed", 0))
    key_split, key_attack, key_detect = jax.random.split(jax.random.fold_in(seed, 5), 3)
    order = np.asarray(jax.random.permutation(key_split, len(inputs)))
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    _few(len(first), fpr)
    attacked = attack(key_attack, opened.fit, inputs[second], targets[second], how)
    print(attacked)
    if not attacked.success.any():
        print("No attack succeeded, so there is nothing to detect.")
        if out is not None:
            say(f"{out} was not written. A larger size, or more rows with --clean FILE, may find an attack.")
        return
    found = detect(key_detect, opened.fit, inputs[first], inputs[second], attacked, score, max_fpr=fpr)
    print(found)
    if out is not None:
        write_table(found.to_pandas(), out)
        place = out.with_suffix(".png")
        try:
            found.plot().savefig(place, facecolor="white", dpi=150)
        except OSError as error:
            raise InputError(f"Cannot write {place}: {error.strerror or error}; choose another --out.") from error
        say(f"Wrote the scores to {out} and their picture to {place}.")
