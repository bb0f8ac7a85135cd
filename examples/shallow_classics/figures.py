"""One picture for each problem: four panels with common axes, and the posterior of the number of nodes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.report.style import CYCLE, INK, MODEL, MUTED, NOISE, WRONG, dress

LAYOUT = [["reversible_jump", "gibbs", "nodes"], ["nuts", "process", "nodes"]]
NAMES = {"reversible_jump": "reversible_jump", "gibbs": "gibbs", "nuts": "nuts", "process": "Gaussian process"}
MARKS = "os^Dv<>P"
OUTER, INNER = "#f3d08a", "#7fb2de"  # opaque, so that the inner band has the colour that the legend says
Z = 1.645  # 90 % of a normal
SHOWN_PATHS = 2


def figure_of(problem: Any, answers: dict[str, Any]) -> Figure:
    """The picture of a problem.

    Args:
        problem: a `Curve` or a `Series`.
        answers: what each method said, by the names of the layout.
    """
    figure = Figure(figsize=(12.5, 6.6), dpi=110, layout="constrained", facecolor="white")
    areas = figure.subplot_mosaic(LAYOUT, width_ratios=[1, 1, 0.8])
    figure.get_layout_engine().set(w_pad=0.08)
    figure.suptitle(problem.title, fontsize=14, fontweight="bold", color=INK, x=0.01, ha="left")
    first = areas["reversible_jump"]
    for name, answer in answers.items():
        area = areas[name]
        if area is not first:
            area.sharex(first)
            area.sharey(first)
        score = f"{answer.log_likelihood.mean():.3f}".replace("-", "−")
        title = f"{NAMES[name]}: log-likelihood {score}"
        dress(area, title, problem.labels[0], problem.labels[1], size=10.5)
        (draw_series if hasattr(problem, "lags") else draw_curve)(area, problem, answer)
    for name in ("reversible_jump", "gibbs"):
        areas[name].set_xlabel("")
        areas[name].tick_params(labelbottom=False)
    for name in ("gibbs", "process"):
        areas[name].set_ylabel("")
        areas[name].tick_params(labelleft=False)
    draw_nodes(areas["nodes"], answers["reversible_jump"].fits[0].fit)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=6, frameon=False, fontsize=10, labelcolor=INK)
    return figure


def draw_curve(area: Axes, problem: Any, answer: Any) -> None:
    """Data, mean and bands along the input."""
    grid, found = answer.grid, answer.along
    low, high = found.interval(0.9)
    inner = Z * np.sqrt(found.epistemic)
    area.fill_between(grid, low, high, color=OUTER, lw=0, label="90 % of observations")
    low, high = found.mean - inner, found.mean + inner
    area.fill_between(grid, low, high, color=INNER, lw=0, label="90 % of the function")
    area.plot(grid, found.mean, color=INK, lw=1.5, label="mean")
    seen = problem.targets
    if problem.truth is not None:
        true = problem.truth[0](grid)
        area.plot(grid, true, color=WRONG, lw=1.4, ls="--", label="true function")
        seen = np.concatenate([seen, true])
    area.scatter(problem.inputs, problem.targets, s=11, color=INK, lw=0, alpha=0.75, zorder=3, label="training rows")
    area.set_ylim(*limits(seen))


def draw_series(area: Axes, problem: Any, answer: Any) -> None:
    """The end of the training part, the values after it, and two kinds of predictions of them."""
    start, first = problem.num_train, problem.num_train - problem.shown
    past, future = slice(first, start), slice(start, None)
    times = problem.times[future]
    low, high = np.quantile(answer.ahead.paths, (0.05, 0.95), axis=0)
    area.fill_between(times, low, high, color=MODEL, alpha=0.25, lw=0, label="90 % of forecast paths")
    for i, path in enumerate(answer.ahead.paths[:SHOWN_PATHS]):
        area.plot(times, path, color=MODEL, lw=0.9, alpha=0.8, label="some of the paths" if not i else None)
    found = answer.ahead.one_step
    bars, few = found.interval(0.9), len(times) < 30
    width, size = (2.4, 4.0) if few else (1.5, 2.8)
    area.vlines(times, *bars, color=NOISE, lw=width, alpha=0.85, label="one step ahead: 90 %")
    area.plot(times, found.mean, "_", color=WRONG, ms=1.6 * size, mew=1.5, label="one step ahead: mean")
    area.plot(problem.times[past], problem.values[past], ".-", color=INK, lw=0.8, ms=4, label="last training values")
    area.plot(times, problem.values[future], "o", color="white", mec=INK, ms=size, mew=0.9, label="held-out values")
    area.set_ylim(*limits(problem.values[first:]))


def limits(values: np.ndarray, margin: float = 0.2) -> tuple[float, float]:
    """The range of the data and a share of it more."""
    more = margin * np.ptp(values)
    return values.min() - more, values.max() + more


def draw_nodes(area: Axes, fit: Any) -> None:
    """How probable each number of nodes is: before the data, over all chains, and in each chain alone."""
    most = fit.model.network.nodes().num
    counts = np.asarray(fit.trace["nodes"]).round().astype(int)
    shares = np.stack([np.bincount(chain, minlength=most + 1) / len(chain) for chain in counts])
    place = np.arange(most + 1)
    prior = 0.5**place
    dress(area, "reversible_jump: hidden nodes", "hidden nodes (0: linear)", "probability", size=10.5)
    area.bar(place, shares.mean(0), width=0.75, color=MODEL, alpha=0.35, lw=0, label="posterior, all chains")
    area.hlines(prior / prior.sum(), place - 0.38, place + 0.38, color=MUTED, lw=1.5, ls=(0, (2, 1)), label="prior")
    spread = np.linspace(-0.24, 0.24, len(shares))
    for i, chain in enumerate(shares):
        mark, colour = MARKS[i % len(MARKS)], CYCLE[(i + 1) % len(CYCLE)]
        area.plot(place + spread[i], chain, mark, color=colour, ms=4.5, label=f"chain {i + 1}")
    area.set_xticks(place)
    area.set_ylim(0, None)
    area.legend(fontsize=9, frameon=False, labelcolor=INK, loc="upper right")
