"""What came of a fit, in at most `MOST` lines for a person who knows the table and no statistics."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from credo.tables.columns.kinds import MONTH_FIRST, THOUSANDS
from credo.tables.columns.unused import in_one_sentence, short
from credo.tables.doubts import FEWEST, LOG_LOSS, WARNING
from credo.tables.summary import one_line

if TYPE_CHECKING:
    from credo.tables.run import Run

MOST = 8
TARGETS, CLASSES, PARTS = 3, 4, 4  # that are named
METHODS = {
    "deep_ensemble": "several networks that learned apart and answer together",
    "ensemble_chains": "many networks that fit the rows about equally well and answer together",
    "infinite_width": "smooth curves through the rows (a Gaussian process)",
}
# What an alarm of `credo.evaluation.diagnostics` means, and what helps.
ALARMS = {
    "unconverged": "the answer was still moving when the fit ended; give it more time, such as --budget 5m",
    "modes": "parts of the fit settled on different answers, and predictions average over them; try --effort best",
    "low_ess": "it rests on few independent draws, so numbers are rough; give it more time, such as --budget 5m",
    "divergences": "some steps lost their way, so ranges may be wrong; try another method, or none for auto",
    "energy": "parts of the answer were reached too seldom; give it more time, such as --budget 5m",
    "unfinished": "it ended half-way between what was assumed and what the rows say; give it more --steps",
    "weights": "THE METHOD FAILED on this table: do not use this run; take another method",
    "noise_bound": "it knows its own rows by heart, so ranges may be too narrow; try --method auto",
    "collapsed": "it claims to know more than so few rows can tell, so ranges may be too narrow; try another method",
    "constant": "it is equally sure everywhere, which is suspicious; check the columns, or try another method",
    "prior": "it has learned next to nothing from the rows; give it more time, or try another method",
    "off_mode": "it ended before it had found the best fit; give it more --steps",
}


def brief_lines(run: Run) -> list[str]:
    """What was learned, from what, how good it is beside a guess, what to worry about, and where it is.

    Args:
        run: a fit on a table.
    """
    lines = [_learned(run), _chosen(run), *_scores(run.metrics, run.encoder.classes)]
    lines += [line for line in (in_one_sentence(run.notes), _careful(list(worries(run)))) if line]
    return [one_line(line) for line in [*lines, _next(run)]]


def number(value: Any) -> str:
    """Three digits that matter, as people write them.

    Example:
        >>> [number(x) for x in (0.01234, 9.0, 58.07, 123456.7, None)]
        ['0.0123', '9', '58.1', '123,000', 'unknown']
    """
    if value is None or not math.isfinite(value):
        return "unknown"
    if value == 0 or not 1e-4 <= abs(value) < 1e12:
        return f"{value:.3g}"
    decimals = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _learned(run: Run) -> str:
    encoder, names = run.encoder, _listed(_names(run), TARGETS)
    if encoder.classes is not None:
        what = f"one of {len(encoder.classes)} classes: {_listed(encoder.classes, CLASSES)}"
    else:
        what = "a count" if encoder.task == "count" else "a number" if len(_names(run)) == 1 else "numbers"
    path = run.table.get("table")
    of = f" of {os.path.basename(path)}" if path else ""
    rows, columns = run.metrics["train_rows"], len(encoder.columns)
    columns_words = f"{columns:,} column{'s' * (columns != 1)}"
    return f"Learned to predict {names} ({what}) from {rows:,} rows and {columns_words}{of}."


def _chosen(run: Run) -> str:
    from credo.tables.duration import words  # brings JAX along

    method, parts = run.fit.config["method"], run.fit.config.get("parts")
    what = METHODS.get(method, "")
    if parts:
        parts = sorted(parts, key=lambda part: -part["weight"])
        method = f"a mix of {len(parts)} models"
        what = _listed([f"{part['name']} {100 * part['weight']:.0f} %" for part in parts], PARTS)
    chosen = "Chosen" if run.why else "Method"
    seconds = run.metrics.get("seconds_wall")
    took = "" if seconds is None else f"; it took {words(seconds)}"
    return f"{chosen}: {method}{f' ({what})' if what else ''}{took}."


def _scores(metrics: dict[str, Any], classes: Any) -> list[str]:
    """One or two lines on the rows that were held out."""
    rows = metrics["test_rows"]
    if not rows:
        return ["No rows were held out, so nothing tells how good it is: `credo evaluate` scores rows that you have."]
    on = f"On {rows:,} row{'s' * (rows != 1)} held out{' (few, so only roughly)' if rows < FEWEST else ''}"
    if classes is not None:
        return _class_scores(metrics, classes, on)
    errors = metrics.get("test_errors", {})
    if len(errors) == 1:
        (error,) = errors.values()
        lines = [f"{on}, its typical error is {number(error['rmse'])} (guessing the mean: {number(error['guess'])})."]
    else:
        each = [f"{short(name)} {number(error['rmse'])} ({number(error['guess'])})" for name, error in errors.items()]
        lines = [f"{on}, its typical errors (in brackets those of guessing the mean) are {_some(each, TARGETS)}."]
    coverage = metrics.get("test_coverage_90")
    held = "" if coverage is None else f"Ranges that should hold 90 % of new rows held {100 * coverage:.0f} % of these."
    return [*lines, held] if held else lines


def _class_scores(metrics: dict[str, Any], classes: Any, on: str) -> list[str]:
    right, usual = metrics["test_accuracy"], metrics["test_majority_accuracy"]
    lines = [f"{on}, it names the right class for {_share(right)} (always naming the commonest: {_share(usual)})."]
    found, sure = metrics.get("test_recall"), metrics.get("test_precision")
    if found is not None and sure is not None and math.isfinite(found) and math.isfinite(sure):
        which = short(classes[1])
        lines.append(
            f"It finds {_share(found)} of the '{which}' rows, and {_share(sure)} of those it picks are '{which}'."
        )
    return lines


def worries(run: Run) -> Iterator[str]:
    """What speaks against the fit, the worst first."""
    from credo.training.loop import BUDGET_SPENT

    status = run.status
    if not status.ok:
        yield f"THE FIT FAILED: do not use it. {status.notes[-1] if status.notes else ''}".strip()
    elif status.outcome != "finished":
        yield f"the fit was {status.outcome} before its end"
    for note in status.notes:
        if note.startswith(LOG_LOSS):
            yield "its probabilities are worse than the plain shares of the classes: do not use them"
        elif note.startswith(WARNING):
            yield "its ranges held too few of these rows: do not trust them yet; give it more time, or more rows"
        elif note.startswith(BUDGET_SPENT):
            yield "the time was too short for it to learn much; give it a larger --budget"
    for alarm in dict.fromkeys(alarm.id for alarm in run.fit.alarms):
        yield ALARMS[alarm]
    for name, error in run.metrics.get("test_errors", {}).items():
        if run.metrics["test_rows"] >= FEWEST and error["rmse"] >= error["guess"]:
            yield f"its predictions of {short(name)} are no better than guessing the mean"
    for note in run.notes:
        if MONTH_FIRST in note or THOUSANDS in note:
            yield note


def _careful(found: list[str]) -> str:
    if not found:
        return ""
    more = f" ({len(found) - 1} more with --verbose and in the report.)" if len(found) > 1 else ""
    return f"Careful: {found[0].rstrip('.')}.{more}"


def _next(run: Run) -> str:
    if run.folder is None:
        return "It is kept in memory alone."
    folder = shlex.quote(os.fspath(run.folder))
    if run.status.outcome in ("interrupted", "stopped by the disk"):
        return f"Saved in {run.folder}. Next: credo resume {folder}"
    return f"Saved in {run.folder}. Next: credo predict {folder} NEW.csv, and for details: credo report {folder}"


def _share(value: float) -> str:
    return "unknown" if not math.isfinite(value) else f"{100 * value:.0f} %"


def _names(run: Run) -> list[str]:
    target = run.encoder.target
    return [target] if isinstance(target, str) else target


def _listed(names: Any, most: int) -> str:
    return _some([short(name) for name in names], most)


def _some(words: list[str], most: int) -> str:
    return ", ".join(words) if len(words) <= most else f"{', '.join(words[:most])} and {len(words) - most} more"
