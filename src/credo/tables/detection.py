"""Which rows of a table are unlike those that a run knows, and whether it would notice an attack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.applications.detection import Attack, attack, detect, suspicion, threshold
from credo.errors import InputError
from credo.tables.encode.unseen import fill_gaps
from credo.tables.read.source import table_name

if TYPE_CHECKING:
    import pandas as pd

Say = Callable[[str], Any]


def flagged(run: Any, table: Any, clean: Any, score: str | None, fpr: float, say: Say) -> pd.DataFrame:
    """The rows of a table with their scores, the threshold, and whether they are above it; see `Run.detect`."""
    _check_share(fpr)
    rows = run.rows(table, tell=say)
    calm = suspicion(run.predictive(_clean_rows(run, clean, False, say)[0]), score)
    scores = suspicion(run.predictive(rows), score)
    if np.ptp(calm) < 1e-12:
        raise InputError(
            f"The score is the same for every clean row, as that of a point is: fit {run.folder or 'again'} with a "
            "method that has a spread, such as deep_ensemble, or take another --score."
        )
    _say_few(len(calm), fpr, say)
    cutoff = threshold(calm, fpr)
    above = scores > cutoff
    say(
        f"{int(above.sum())} of {len(scores)} rows ({100 * above.mean():.1f} %) are flagged, with "
        f"{100 * (calm > cutoff).mean():.1f} % of {len(calm)} clean rows above the threshold {cutoff:.4g}."
    )
    columns = {"row": rows.places + 1, "score": scores, "threshold": np.full(len(scores), cutoff), "flagged": above}
    return beside(columns, rows.used)


def attacked(run: Any, settings: Attack, clean: Any, score: str | None, fpr: float, say: Say) -> tuple[Any, Any]:
    """An attack on clean rows, and what is caught of it: one half of the rows fixes the threshold, the other is
    attacked. The second is None where no attack succeeded."""
    _check_share(fpr)
    if run.encoder.classes is None:
        raise InputError("--attack turns one class into another, and this run predicts numbers; use --suspect FILE.")
    inputs, targets = _clean_rows(run, clean, True, say)
    inputs, seed = fill_gaps(run.encoder, inputs), jax.random.key(run.seed)
    key_split, key_attack, key_detect = jax.random.split(jax.random.fold_in(seed, 5), 3)
    order = np.asarray(jax.random.permutation(key_split, len(inputs)))
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    _say_few(len(first), fpr, say)
    outcome = attack(key_attack, run.fit, inputs[second], targets[second], settings)
    if not outcome.success.any():
        return outcome, None
    return outcome, detect(key_detect, run.fit, inputs[first], inputs[second], outcome, score, max_fpr=fpr)


def beside(columns: dict[str, Any], frame: pd.DataFrame) -> pd.DataFrame:
    """Columns before those of a table, whose own may have the same names."""
    result = frame.reset_index(drop=True)
    for position, (name, column) in enumerate(columns.items()):
        result.insert(position, name, column, allow_duplicates=True)
    return result


def _clean_rows(run: Any, clean: Any, target: bool, say: Say) -> tuple[Any, Any]:
    """Encoded inputs, and targets where asked for: those of the table, or those that the run held out."""
    if clean is not None:
        rows = run.rows(clean, target=target, what="clean rows", tell=say)
        if len(rows.places) < 2:
            raise InputError(f"{table_name(clean)} has one usable row: give more.")
        return rows.inputs, run.encoder.targets(rows.used) if target else None
    held = run.heldout.get("inputs", ())
    if len(held) < 2:
        raise InputError(
            f"The run {run.folder or ''} held out {'one row' if len(held) else 'no rows'}, and training rows would "
            "make the threshold too low: give clean rows with --clean FILE."
        )
    return held, run.heldout["targets"]


def _check_share(fpr: float) -> None:
    if not 0 <= fpr < 1:
        raise InputError(f"--fpr is a share of clean rows, at least 0 and below 1; got {fpr:g}.")


def _say_few(rows: int, fpr: float, say: Say) -> None:
    if rows * fpr < 1:
        say(
            f"With {rows} clean rows a share of {fpr:g} is less than one row: the threshold is the largest clean score."
        )
