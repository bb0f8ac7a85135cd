"""Figures of how the fit went: losses of every member, or what every chain did, phase by phase."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.report.readout import add_readout
from credo.report.style import CYCLE, INK, MUTED, WIDE, axes, legend, retitle, thin_indices, title_of

Phases = Mapping[str, Mapping[str, np.ndarray]]
MOST_POINTS = 1200  # of all lines of a figure together: two for each pixel of a phone
NAMES = {"adapt": "warm-up", "sample": "draws that are kept", "optimise": "optimisation"}


def smooth(values: np.ndarray, window: int) -> np.ndarray:
    """A running mean over the steps (last axis), with shorter windows at both ends."""
    window = max(1, min(window, values.shape[-1]))
    if window == 1:
        return values
    total = np.cumsum(np.concatenate([np.zeros((*values.shape[:-1], 1)), values], -1), -1)
    steps = np.arange(values.shape[-1])
    first = np.maximum(steps - window // 2, 0)
    last = np.minimum(steps + (window + 1) // 2, values.shape[-1])
    return (total[..., last] - total[..., first]) / (last - first)


def join_phases(phases: Phases, metric: str) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """A metric over all phases that have it [member, step], and where each phase starts."""
    parts = [(name, np.asarray(m[metric], float)) for name, m in phases.items() if metric in m]
    starts = np.cumsum([0, *(p.shape[1] for _, p in parts)])
    values = np.concatenate([p for _, p in parts], axis=1) if parts else np.zeros((0, 0))
    return values, [(name, int(start)) for (name, _), start in zip(parts, starts)]


def _phase_marks(area: Axes, starts: list[tuple[str, int]], end: int) -> None:
    if len(starts) < 2:
        return
    edges = [start for _, start in starts] + [end]
    for i, (name, start) in enumerate(starts):
        if i % 2 == 0:
            area.axvspan(start, edges[i + 1], color=MUTED, alpha=0.13, lw=0)
        area.text(
            0.5 * (start + edges[i + 1]), 1.0, NAMES.get(name, name), transform=area.get_xaxis_transform(), color=INK,
            fontsize=9.5, ha="center", va="bottom",
        )  # fmt: skip
    area.set_xlim(0, end)
    retitle(area, title_of(area), pad=20)  # above the names of the phases


def loss_trace(phases: Phases, metric: str = "loss") -> Figure:
    """The loss of every member, raw and smoothed."""
    values, starts = join_phases(phases, metric)
    figure, area = axes("Loss while training", "step", "loss per row (nats)", WIDE)
    end = values.shape[1]
    finite = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(finite).all():
        area.text(0.5, 0.5, "no step had a finite loss", color=INK, ha="center", transform=area.transAxes)
        return figure
    even = smooth(np.nan_to_num(finite, nan=float(np.nanmedian(finite))), max(1, end // 50))
    at = thin_indices(end, max(120, MOST_POINTS // len(values)))
    steps = "every step" if len(at) == end else f"single steps ({len(at):,} of {end:,})"
    for i, (raw, line) in enumerate(zip(finite, even)):
        colour = CYCLE[i % len(CYCLE)]
        first = i == 0
        raw_line = area.plot(at, raw[at], color=colour, alpha=0.28, lw=0.8, label=steps if first else None)[0]
        text = "running mean" if len(values) == 1 else f"running mean of each of {len(values)} members"
        mean_line = area.plot(at, line[at], color=colour, lw=1.6, label=text if first else None)[0]
        add_readout(raw_line, "this step", silent=len(values) > 1)
        add_readout(mean_line, f"member {i + 1}, running mean" if len(values) > 1 else text)
    _cut_start(area, even, finite)
    _phase_marks(area, starts, end)
    legend(figure, 2)
    return figure


def _cut_start(area: Axes, even: np.ndarray, raw: np.ndarray) -> None:
    """Leave the steep start out of sight where it would flatten all the rest."""
    later = raw[:, raw.shape[1] // 20 :]
    if np.isnan(later).all():
        return
    low, high = np.nanpercentile(later, 0.2), np.nanpercentile(later, 99.8)
    low = min(low, float(even[:, even.shape[1] // 20 :].min()))
    margin = 0.15 * (high - low) or 1.0
    if np.nanmax(raw) > high + 3 * margin:
        retitle(area, f"{title_of(area)} (the steep start is cut off)")
        area.set_ylim(low - margin, high + margin)


def chain_trace(phases: Phases, metric: str, config: Mapping[str, Any]) -> Figure:
    """What every chain did, step by step: one of log density, acceptance and step size."""
    titles = {
        "log_density": ("Log density of every chain", "log p(θ, data)"),
        "acceptance": ("Acceptance, running mean", "acceptance probability"),
        "step_size": ("Step size of the integrator", "leapfrog step size"),
    }
    values, starts = join_phases(phases, metric)
    figure, area = axes(titles[metric][0], "transition", titles[metric][1])
    end = values.shape[1]
    curves = smooth(values, max(1, end // 25)) if metric == "acceptance" else values
    at = thin_indices(end, max(120, MOST_POINTS // max(len(values), 1)))
    for i, line in enumerate(curves):
        label = f"chain {i + 1}" if i < 8 else None
        drawn_line = area.plot(at, line[at], color=CYCLE[i % len(CYCLE)], lw=1.1, alpha=0.85, label=label)[0]
        add_readout(drawn_line, f"chain {i + 1}")
    if metric == "acceptance":
        _target_line(area, config)
        area.set_ylim(0, 1.02)
    elif metric == "step_size":
        area.set_yscale("log")
    else:
        _readable_density(area, values, starts)
    _phase_marks(area, starts, end)
    legend(figure, 5 if len(values) == 4 else 4)  # with the aim in one line
    return figure


def _target_line(area: Axes, config: Mapping[str, Any]) -> None:
    target = config.get("settings", {}).get("target_acceptance")
    if isinstance(target, int | float):
        area.axhline(target, color=INK, lw=1, ls="--", label=f"aim ({target:g})")


def _readable_density(area: Axes, values: np.ndarray, starts: list[tuple[str, int]]) -> None:
    """Scale by the draws that are kept; the climb from the start would flatten them."""
    draws = values[:, starts[-1][1] :]
    draws = draws[np.isfinite(draws)]
    if draws.size:
        low, high = float(draws.min()), float(draws.max())
        margin = 0.35 * (high - low) or 1.0
        area.set_ylim(low - 2 * margin, high + margin)
