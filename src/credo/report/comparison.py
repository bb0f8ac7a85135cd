"""A comparison of models as a table, a picture and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from credo.registry import METRICS
from credo.report.html import Section, bullets, gallery, page, paragraphs, table
from credo.report.readout import add_readout, digits, spans
from credo.report.style import CYCLE, INK, MUTED, dress, legend, plain
from credo.storage.atomic_write import write_file

COLUMNS = {
    "log_likelihood": "log-likelihood",
    "rmse": "RMSE",
    "crps": "CRPS",
    "accuracy": "accuracy",
    "brier": "Brier",
    "coverage_90": "90 % cover",
    "width_90": "90 % width",
    "loo": "LOO",
    "evidence": "evidence",
    "seconds": "s / fold",
}


def rows_of(comparison: Any) -> tuple[list[str], list[list[str]]]:
    """Headings and cells, as text."""
    shown = [name for name in COLUMNS if any(row.get(name) is not None for row in comparison.table)]
    head = ["model", *("seconds" if name == "seconds" and comparison.folds == 1 else COLUMNS[name] for name in shown)]
    head.insert(2, "behind the first")
    body = []
    for row in comparison.table:
        line = [row["model"] + (" *" if row["failed"] else ""), *(_cell(name, row.get(name)) for name in shown)]
        line.insert(2, "–" if row is comparison.table[0] else _behind(row))
        line[-1] += " †" if row["over"] else ""
        body.append(line)
    return head, body


def _behind(row: dict[str, Any]) -> str:
    if not np.isfinite(row["behind"]):
        return "–"
    ends = f" ({_nats(row['behind_low'])} to {_nats(row['behind_high'])})" if np.isfinite(row["behind_low"]) else ""
    return f"{_nats(row['behind'])}{ends}"


def _nats(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.2g}"


def _cell(name: str, value: float | None) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    if name in ("accuracy", "coverage_90"):
        return f"{100 * value:.1f} %"
    return f"{value:.1f}" if name == "seconds" else f"{value:.4g}"


def best_cells(comparison: Any) -> list[tuple[int, int]]:
    """(row, column) in `rows_of` of the best value of each score."""
    shown = [name for name in COLUMNS if any(row.get(name) is not None for row in comparison.table)]
    cells = []
    for j, name in enumerate(shown):
        sign = METRICS[name].better if name in METRICS else 0
        best = best_of([row.get(name) for row in comparison.table], sign)
        cells += [(i, j + 1 + (j > 0)) for i in best]
    return cells


def best_of(values: Sequence[float | None], sign: int) -> list[int]:
    """Indices of the best value: the largest for sign 1, the smallest for −1; empty for 0 or for a single number."""
    finite = [sign * v for v in values if v is not None and np.isfinite(v)]
    if not sign or len(finite) < 2:
        return []
    return [i for i, v in enumerate(values) if v is not None and sign * v == max(finite)]


def figure(comparison: Any) -> Figure:
    """Nats by which each model is behind the first, and what they cost in seconds."""
    rows = comparison.table
    picture = Figure(figsize=(9.6, 1.5 + 0.34 * len(rows)), dpi=110, layout="constrained")
    left, right = picture.subplots(1, 2, sharey=True, width_ratios=[2, 1])
    dress(left, "Behind the first, per row", "nats (left is better)", "")
    dress(right, "Time", "seconds" if comparison.folds == 1 else "seconds per fold", "")
    positions = np.arange(len(rows))[::-1]
    base = np.array([row["model"] in _baselines() for row in rows], bool)
    for mask, colour, marker, name in ((~base, CYCLE[0], "o", "networks"), (base, MUTED, "s", "baselines")):
        _dots(left, right, [row for row, chosen in zip(rows, mask) if chosen], positions[mask], colour, marker, name)
    left.axvline(0, color=INK, lw=0.8, alpha=0.5)
    ends = [np.nanmax([row["behind"], row["behind_high"]]) for row in rows if np.isfinite(row["behind"])] or [1.0]
    # One hopeless model must not squeeze the others into a line.
    widest, middle = max(ends), float(np.median(ends))
    if widest > 20 * max(middle, 1e-3):
        left.set_xscale("symlog", linthresh=max(middle, 1e-3))
    spent = [row["seconds"] for row in rows if np.isfinite(row["seconds"])] or [1.0]
    right.set_xscale("log")
    right.set_xlim(10 ** np.floor(np.log10(min(spent))), 10 ** np.ceil(np.log10(max(spent) * 1.01)))
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value + 0.0:g}"))
    right.xaxis.set_minor_formatter(NullFormatter())
    left.set_yticks(positions, [plain(row["model"], 24) for row in rows])
    left.set_ylim(-0.6, len(rows) - 0.4)
    if base.any():
        legend(picture)
    return picture


def _dots(
    left: Axes, right: Axes, rows: list[dict[str, Any]], positions: np.ndarray, colour: str, marker: str, name: str
) -> None:
    """One mark for each row that has a score on the left, with its interval if there is one, and one at its seconds on
    the right."""
    if not rows:
        return
    cost = right.scatter([row["seconds"] for row in rows], positions, s=36, color=colour, marker=marker)
    add_readout(cost, "")
    has_score = np.isfinite([row["behind"] for row in rows])
    scored = [row for row, chosen in zip(rows, has_score) if chosen]
    if not scored:
        return
    low, high = ([row[f"behind_{end}"] for row in scored] for end in ("low", "high"))
    about = {"log-likelihood": [digits(row["log_likelihood"]) for row in scored]}
    if np.isfinite(high).all():
        left.hlines(positions[has_score], low, high, color=colour, lw=2.2)
        about = {"interval": spans(low, high)} | about
    gaps = [row["behind"] for row in scored]
    behind = left.scatter(gaps, positions[has_score], s=36, color=colour, marker=marker, label=name)
    add_readout(behind, "", about=about)


def _baselines() -> tuple[str, ...]:
    from credo.evaluation.baselines import BASELINES

    return tuple(BASELINES)


def comparison_page(comparison: Any, name: str) -> str:
    """One self-contained page."""
    head, body = rows_of(comparison)
    target = comparison.target if isinstance(comparison.target, str) else ", ".join(comparison.target)
    sections = [Section("Which model?", bullets(comparison.sentences()))]
    if comparison.table:
        over = "rows" if comparison.split_by is None else f"whole groups of '{comparison.split_by}'"
        notes = [
            f"Every row was held out once, in {comparison.folds} folds; scores are means over all {comparison.rows:,} "
            f"rows. Behind the first: nats per row, with the {100 * comparison.level:.0f} % interval of a bootstrap "
            f"over {over}, both models on the same ones.",
            "LOO and evidence are nats per training row, where the method has them.",
            "Seconds are those of pilot, fit, predictions and scores.",
        ]
        shown = table(head, body, numbers=True, best=best_cells(comparison)) + paragraphs(notes) + marks(comparison)
        sections.append(Section("Scores", shown))
        captions = {"behind": "Left: distance to the first in log-likelihood per row. Right: seconds per fold."}
        sections.append(Section("Quality and time", gallery({"behind": figure(comparison)}, captions, "comparison")))
    if comparison.notes:
        sections.append(Section("The table", bullets(comparison.notes)))
    return page(f"Models for {target}", sections, f"{name}: {comparison.task}, {comparison.rows:,} rows")


def marks(comparison: Any) -> str:
    """What the marks of the table mean, as a list; nothing where there are none."""
    warnings = comparison.warnings()
    return bullets(warnings) if warnings else ""


def write_comparison(comparison: Any, name: str, out: Path) -> Path:
    """Write the page and return where it is."""
    write_file(out, comparison_page(comparison, name))
    return out
