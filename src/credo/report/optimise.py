"""Figures of Bayesian optimisation: the best value so far, and what the surrogate believes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.applications.optimise.batches import values_at
from credo.applications.optimise.dimensions import Category, is_log
from credo.report.style import CYCLE, INK, MODEL, MUTED, NORMAL_90, WRONG, dress, legend, plain

STYLES = ("-", "--", "-.", ":")
GRID = 160  # points along a setting in one dimension, and 40 by 40 in two


def plot(runs: Sequence[Any]) -> Figure:
    """The best value so far; of one search in one or two numbers also the surrogate and the acquisition.

    Args:
        runs: searches. Several with one surrogate and acquisition become a mean with a 90 % interval.
    """
    search = runs[0]
    shown = len(runs) == 1 and _drawable(search)
    wide = shown * len(search.space.dimensions)
    figure = Figure(figsize=(6.4, 4.0) if not wide else (11.0, 4.2), dpi=110, layout="constrained")
    areas = figure.subplots(1, 1 + wide, squeeze=False)[0] if wide != 1 else figure.subplots(1, 2, squeeze=False)[0]
    _progress(areas[0], runs)
    if wide == 1:
        _line(areas[1], search)
    elif wide == 2:
        _maps(figure, areas[1:], search)
    legend(figure, 5)
    return figure


def _drawable(search: Any) -> bool:
    if search.surrogate is None or not any(not e.failed for e in search.history):
        return False
    kinds = search.space.dimensions.values()
    return len(kinds) <= 2 and not any(isinstance(d, Category) for d in kinds)


def _progress(area: Axes, runs: Sequence[Any]) -> None:
    groups: dict[str, list[Any]] = {}
    for run in runs:
        groups.setdefault(_name(run), []).append(run)
    several = {len(group) for group in groups.values()}
    count = f"{several.pop()} runs" if len(several) == 1 else "the runs"
    title = "Best value so far" + (f" (mean of {count}, 90 % interval)" if len(runs) > len(groups) else "")
    dress(area, title, "evaluations", "best value")
    visible = []
    for i, (name, group) in enumerate(groups.items()):
        colour = MUTED if name == "random" else CYCLE[i % len(CYCLE)]
        length = min(len(run.history) for run in group)
        best = np.array([run.best_so_far[:length] for run in group])
        number, mean = np.arange(1, length + 1), best.mean(0)
        visible.append(mean[min(length // 5, 10) :])
        area.plot(number, mean, color=colour, lw=2, ls=STYLES[i % 4], label=name, drawstyle="steps-post")
        if len(group) > 1:
            error = NORMAL_90 * best.std(0, ddof=1) / len(group) ** 0.5
            area.fill_between(number, mean - error, mean + error, color=colour, alpha=0.18, lw=0, step="post")
    if len(runs) == 1:
        values = np.array([e.value for e in runs[0].history])
        area.scatter(np.arange(1, len(values) + 1), values, s=14, color=MUTED, label="evaluations", zorder=2)
        ends = np.quantile(values[np.isfinite(values)], [0.25, 0.75]) if np.isfinite(values).any() else []
        visible.append(np.asarray(ends[:1] if runs[0].maximise else ends[1:]))
    _zoom(area, np.concatenate(visible))


def _zoom(area: Axes, values: np.ndarray) -> None:
    """The first and the worst values would press the curves against the axis: they may lie outside."""
    values = values[np.isfinite(values)]
    if len(values) >= 8 and np.ptp(values) > 0:
        low, high = values.min(), values.max()
        area.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))


def _name(run: Any) -> str:
    if run.surrogate is None:
        return "random"
    return f"{run.surrogate.name}, {run.acquisition}".replace("_", " ")


def _line(area: Axes, search: Any) -> None:
    """One setting: mean, band, evaluations and the acquisition on an axis of its own."""
    (name, dimension), fitted = next(iter(search.space.dimensions.items())), search.fitted()
    rows = np.linspace(0, 1, GRID)[:, None]
    values = [dimension.decode(row) for row in rows]
    mean, std = fitted.moments(rows)
    mean = search.sign * mean
    dress(area, "What the surrogate believes", plain(name), "objective")
    area.fill_between(values, mean - 2 * std, mean + 2 * std, color=MODEL, alpha=0.18, lw=0, label="± 2 s")
    area.plot(values, mean, color=MODEL, lw=2, label="mean")
    done = [e for e in search.history if not e.failed]
    area.scatter([e.point[name] for e in done], [e.value for e in done], s=18, color=INK, zorder=3)
    worth = values_at(fitted, search.space.code([e.point for e in done]), rows, search.acquisition, search.beta)
    other = area.twinx()
    other.plot(values, worth, color=WRONG, lw=1.4, ls="--", label=_worth(search))
    other.set_yticks([])
    finite = worth[np.isfinite(worth)]
    low, high = max(finite.min(), finite.max() - 12) if search.acquisition == "log_ei" else finite.min(), finite.max()
    other.set_ylim(low, low + 3 * max(high - low, 1e-12))  # in the lower third
    other.spines[["top", "right"]].set_visible(False)
    if is_log(dimension):
        area.set_xscale("log")


def _worth(search: Any) -> str:
    return f"acquisition ({search.acquisition.replace('_', ' ')})"


def _maps(figure: Figure, areas: Sequence[Axes], search: Any) -> None:
    """Two settings: the mean with the evaluations, and the acquisition."""
    (first, one), (second, two) = search.space.dimensions.items()
    fitted, side = search.fitted(), np.linspace(0, 1, 40)
    rows = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    across, up = [one.decode(np.array([u])) for u in side], [two.decode(np.array([u])) for u in side]
    mean = search.sign * fitted.moments(rows)[0].reshape(40, 40)
    done = [e for e in search.history if not e.failed]
    worth = values_at(fitted, search.space.code([e.point for e in done]), rows, search.acquisition, search.beta)
    worth = worth.reshape(40, 40)
    if search.acquisition == "log_ei":
        worth = np.maximum(worth, worth.max() - 12)
    for area, values, title in ((areas[0], mean, "Mean of the surrogate"), (areas[1], worth, _worth(search))):
        dress(area, title.capitalize() if title[0] == "a" else title, plain(first), plain(second))
        area.grid(False)
        shades = area.contourf(across, up, values, 20, cmap="viridis")
        figure.colorbar(shades, ax=area, shrink=0.85).ax.tick_params(labelsize=8)
        if is_log(one):
            area.set_xscale("log")
        if is_log(two):
            area.set_yscale("log")
    across, up = [e.point[first] for e in done], [e.point[second] for e in done]
    areas[0].scatter(across, up, s=16, color="white", ec=INK, lw=0.6, clip_on=False, zorder=3)
    x, y = search.best.point[first], search.best.point[second]
    areas[0].scatter(x, y, s=110, marker="*", color=WRONG, ec="white", lw=0.8, label="best", zorder=4, clip_on=False)
