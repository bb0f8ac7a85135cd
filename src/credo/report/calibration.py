"""Figures of stated probabilities beside what happened."""

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom

from credo.evaluation.metrics.judge import wilson
from credo.report.readout import add_readout, spans
from credo.report.style import INK, MODEL, MUTED, WRONG, axes, legend
from credo.report.views import COVERAGE, ClassView, RealView

LEVELS = np.linspace(0.05, 0.95, 19)
ENDS = (0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2)
BY_CHANCE = "90 % range if calibrated"


def pit_histogram(view: RealView) -> Figure:
    """Where observations fall in their own predictive distribution; flat is calibrated."""
    assert view.pit is not None
    count = len(view.pit)
    bins = int(np.clip(np.sqrt(count), 5, 20))
    figure, area = axes(
        "Where observations fall in their prediction",
        "predicted probability of a value this low (PIT)",
        "rows",
    )
    area.hist(np.clip(view.pit, 0, 1), bins=bins, range=(0, 1), color=MODEL, alpha=0.75, rwidth=0.94, label="observed")
    low, high = binom.interval(COVERAGE, count, 1 / bins)
    area.axhline(count / bins, color=INK, lw=1)
    for i, edge in enumerate((low, high)):
        area.axhline(edge, color=INK, lw=1, ls="--", label=None if i else BY_CHANCE)
    area.set_ylim(top=max(area.get_ylim()[1], 1.05 * high))
    area.set_xlim(0, 1)
    legend(figure)
    return figure


def coverage_curve(view: RealView) -> Figure:
    """How often central intervals held, at every level; above the line is too wide, below too narrow."""
    assert view.pit is not None
    figure, area = axes(
        "Do intervals hold as often as they say?",
        "stated probability of the interval",
        "share of rows inside it",
    )
    depth = 2 * np.abs(view.pit - 0.5)
    count = len(depth)
    observed = np.array([(depth <= level).mean() for level in LEVELS])
    fine = np.linspace(0, 1, 101)
    low, high = (binom.ppf(q, count, fine) / count for q in ENDS)
    area.fill_between(fine, low, high, color=MUTED, alpha=0.28, lw=0, label=BY_CHANCE)
    area.plot([0, 1], [0, 1], color=INK, lw=1)
    line = area.plot(LEVELS, observed, color=MODEL, lw=1.8, marker="o", ms=4, label="observed")[0]
    by_chance = spans(*(binom.ppf(q, count, LEVELS) / count for q in ENDS))
    add_readout(line, about={BY_CHANCE: by_chance})
    area.text(0.04, 0.95, "too wide", color=MUTED, fontsize=9.5, va="top")
    area.text(0.96, 0.05, "too narrow", color=MUTED, fontsize=9.5, ha="right")
    area.set(xlim=(0, 1), ylim=(0, 1.02))
    legend(figure)
    return figure


def reliability(view: ClassView, bins: int = 10) -> Figure:
    """Accuracy against confidence, with 90 % intervals and the number of rows in each bin."""
    figure, area = axes(
        "Is the confidence justified?",
        "confidence (probability of the named class)",
        "share that was right (rows on top)",
    )
    start = 1 / view.probs.shape[1]
    edges = np.linspace(start, 1, bins + 1)
    bin_index = np.clip(np.digitize(view.confidence, edges) - 1, 0, bins - 1)
    area.plot([start, 1], [start, 1], color=INK, lw=1, label="justified")
    for i in np.unique(bin_index):
        inside = bin_index == i
        count, right = int(inside.sum()), int(view.right[inside].sum())
        x, y = float(view.confidence[inside].mean()), right / count
        low, high = wilson(right, count, COVERAGE)
        area.vlines(x, low, high, color=MODEL, alpha=0.45, lw=3)
        dot = area.scatter([x], [y], s=34, color=MODEL, lw=0, zorder=3)
        add_readout(dot, f"{count:,} row{'s' * (count != 1)}", about={"90 % range": spans([low], [high])})
        area.text(0.5 * (edges[i] + edges[i + 1]), 1.075, f"{count:,}", color=INK, fontsize=8.5, ha="center")
    area.plot([], [], color=MODEL, marker="o", lw=3, alpha=0.8, label="observed, 90 % range")
    pad = 0.03 * (1 - start)
    area.set(xlim=(start - pad, 1 + pad), ylim=(-0.02, 1.14))
    area.set_yticks(np.linspace(0, 1, 6))
    legend(figure)
    return figure


def confidence_histogram(view: ClassView) -> Figure:
    """How sure the predictions are, right and wrong ones apart."""
    figure, area = axes("How sure is it?", "confidence (probability of the named class)", "rows")
    start = 1 / view.probs.shape[1]
    parts = [view.confidence[view.right], view.confidence[~view.right]]
    area.hist(
        parts, bins=20, range=(start, 1), stacked=True, color=[MODEL, WRONG], rwidth=0.92,
        label=[f"right ({len(parts[0]):,})", f"wrong ({len(parts[1]):,})"],
    )  # fmt: skip
    area.set_xlim(start, 1)
    legend(figure)
    return figure
