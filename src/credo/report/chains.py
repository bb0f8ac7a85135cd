"""Figures that tell whether chains can be believed: energies, and ranks of every chain."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from credo.report.readout import add_readout, digits
from credo.report.style import CYCLE, INK, MODEL, MUTED, NOISE, SIZE, axes, legend

MOST_CHAINS = 8


def energy(trace: Mapping[str, Any]) -> Figure:
    """The spread of energies beside that of their changes from draw to draw (Betancourt, 2016)."""
    values = np.asarray(trace["energy"], float)
    centred = (values - values.mean(1, keepdims=True)).ravel()
    changes = np.diff(values, axis=1).ravel()
    figure, area = axes("Energy", "energy − its mean (nats)", "share of draws")
    edges = np.histogram_bin_edges(np.concatenate([centred, changes]), 40).tolist()
    for data, colour, label in ((centred, MODEL, "of all draws"), (changes, NOISE, "changes between draws")):
        area.hist(
            data, edges, weights=np.full(len(data), 1 / len(data)), color=colour, alpha=0.35, label=label, lw=0
        )  # fmt: skip
        area.hist(data, edges, weights=np.full(len(data), 1 / len(data)), histtype="step", color=colour, lw=1.4)
    legend(figure, 2)
    return figure


def ranks(counts: Sequence[Sequence[int]], name: str) -> Figure:
    """How often draws of each chain have each rank among all draws: even where chains agree."""
    shown = np.asarray(counts, float)[:MOST_CHAINS]
    height = max(SIZE[1], 1.3 + 0.42 * len(shown))
    title = f"Ranks of the {name}"
    figure, area = axes(title, "rank among the draws of all chains", "chain", (SIZE[0], height))
    bins = shown.shape[1]
    expected = shown.sum(1, keepdims=True) / bins
    most = max(2.0, float((shown / expected).max()))
    edges = np.arange(bins + 1) / bins
    for i, (row, even) in enumerate(zip(shown, expected)):
        base = len(shown) - 1 - i
        heights = 0.86 * row / even[0] / most
        steps = area.stairs(base + heights, edges, baseline=base, fill=True, color=CYCLE[i % len(CYCLE)], alpha=0.6)
        counted = {"draws": [digits(v) for v in row], "where chains agree": [digits(even[0])] * bins}
        add_readout(steps, "", points=((edges[:-1] + edges[1:]) / 2, base + heights), about=counted)
        label = "where chains agree" if i == 0 else "_"
        area.hlines(base + 0.86 / most, 0, 1, color=INK, lw=1, ls="--", label=label)
        area.axhline(base, color=MUTED, lw=0.6)
    area.set_yticks(np.arange(len(shown)) + 0.43, [str(len(shown) - i) for i in range(len(shown))])
    area.xaxis.set_major_locator(MaxNLocator(5))
    area.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f} %")
    area.set_xlim(0, 1)
    area.set_ylim(0, len(shown))
    legend(figure, 1)
    return figure


def replicated(checks: Mapping[str, Any]) -> dict[str, Figure]:
    """One figure for each posterior predictive check: what the model makes, and what was observed.

    Args:
        checks: what `credo.evaluation.diagnostics.posterior_predictive_check` gave.
    """
    figures = {}
    for name, check in checks.items():
        figure, area = axes(f"{name[:1].upper()}{name[1:]} of replicated data", name, "draws")
        values = np.asarray(check.replicated, float)
        bins = np.histogram_bin_edges(values, min(30, max(5, len(np.unique(values))))).tolist()
        area.hist(values, bins, color=MODEL, alpha=0.55, label="what the model makes", lw=0)
        area.axvline(check.observed, color=INK, lw=1.8, label=f"the data (p = {check.p_value:.2f})")
        legend(figure, 2)
        figures[name] = figure
    return figures


def of_chains(fit: Any) -> dict[str, Figure]:
    """The figures of chains; empty for other methods."""
    figures: dict[str, Figure] = {}
    diagnostics = fit.diagnostics
    if diagnostics.kind != "chains":
        return figures
    for name, counts in diagnostics.ranks.items():
        figures[f"ranks_of_{name.replace(' ', '_')}"] = ranks(counts, name)
    if "energy" in fit.trace and np.shape(fit.trace["energy"])[1] >= 20:
        figures["energy"] = energy(fit.trace)
    return figures
