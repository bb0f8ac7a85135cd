"""Pictures of benchmarks: readable at 1200 pixels and on a phone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks import published
from benchmarks.markdown import mean_and_error, number
from benchmarks.uci_board import Board, names
from credo.report.style import CYCLE, INK, MUTED, dress, legend

MARKERS = "osD^vPX*"
FARTHEST = 1.5  # nats below the best published row; what lies further down is an arrow at the edge
PIXELS = 1200


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, 1200 pixels wide, on white."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=PIXELS / figure.get_figwidth(), facecolor="white")
    return path


def uci(board: Board) -> Figure:
    """For each set, how far each model is above the best published row for a neural network, in nats per row."""
    sets, models = names(board)
    sets = [name for name in sets if published.best(name) is not None]
    apart = min(0.8 / max(len(models), 1), 0.2)
    figure = Figure(figsize=(8.0, 1.9 + max(0.5, 0.14 * len(models) + 0.2) * len(sets)), layout="constrained")
    area = figure.add_subplot()
    dress(area, "Test log-likelihood beside the best published row", "nats per row (right is better)", "", 13)
    gaps = {(s, m): _gap(board, s, m) for s in sets for m in models}
    lows = [gap - 2 * error for gap, error in gaps.values() if np.isfinite(gap)]
    low = max(min([*lows, -0.1]) - 0.05, -FARTHEST)
    high = max([gap + error for gap, error in gaps.values() if np.isfinite(gap)] + [0.1]) * 1.08
    for j, model in enumerate(models):
        shift = (len(models) - 1) / 2 - j
        positions = [len(sets) - 1 - i + apart * shift for i in range(len(sets))]
        _model(area, [gaps[s, model] for s in sets], positions, (low, high), j, model)
    _others(area, sets, low)
    area.axvline(0, color=INK, lw=1.4)
    for i in range(1, len(sets)):
        area.axhline(i - 0.5, color=MUTED, lw=0.6, alpha=0.5)
    labels = [f"{name}\n{number(float(_best(name)[1]))} {_best(name)[0]}" for name in sets]
    area.set_yticks(range(len(sets)), labels[::-1])
    area.tick_params(labelsize=11)
    area.set_xlim(low, high)
    area.set_ylim(-0.55, len(sets) - 0.45)
    area.grid(axis="y", visible=False)
    legend(figure, 4)
    for text in figure.legends[0].get_texts():
        text.set_fontsize(11)
    return figure


def _best(name: str) -> tuple[str, str]:
    return published.best(name) or ("", "nan")


def _gap(board: Board, name: str, model: str) -> tuple[float, float]:
    cell = board.get((name, model))
    if cell is None or not cell.rows:
        return np.nan, 0.0
    mean, error = mean_and_error(cell.values("log_likelihood"))
    return mean - float(_best(name)[1]), error or 0.0


def _model(
    area: Axes,
    gaps: Sequence[tuple[float, float]],
    heights: Sequence[float],
    ends: tuple[float, float],
    j: int,
    model: str,
) -> None:
    low = ends[0]
    edge = low + 0.012 * (ends[1] - low)
    colour, marker = CYCLE[j % len(CYCLE)], MARKERS[j % len(MARKERS)]
    inside = [(gap, error, y) for (gap, error), y in zip(gaps, heights) if np.isfinite(gap) and gap > low]
    x, errors, y = (np.array([one[i] for one in inside]) for i in range(3))
    area.errorbar(
        x, y, xerr=errors, fmt=marker, color=colour, ms=7, lw=1.8, capsize=3, label=model, zorder=3
    )  # fmt: skip
    for (gap, _), height in zip(gaps, heights):
        if np.isfinite(gap) and gap <= low:
            area.plot(edge, height, marker="<", color=colour, ms=8, zorder=3)
            area.annotate(
                number(gap, 1), (edge, height), (9, 0), textcoords="offset points", va="center", fontsize=9,
                color=colour,
            )  # fmt: skip


def _others(area: Axes, sets: Sequence[str], low: float) -> None:
    """All other published rows as thin marks."""
    points = [
        (float(row.log_likelihood[name]) - float(_best(name)[1]), len(sets) - 1 - i)
        for i, name in enumerate(sets)
        for row in published.UCI
        if name in row.log_likelihood and row.name != _best(name)[0]
    ]
    x, y = (np.array([point[i] for point in points if low < point[0]]) for i in (0, 1))
    area.plot(x, y, "|", color=MUTED, ms=17, mew=1.6, label="other published rows", zorder=1)


def airfoil(lines: Sequence[dict[str, Any]]) -> Figure:
    """Negative log-likelihood and RMSE against the seconds of a fit; lines join lengths of the same chains."""
    kinds = list(dict.fromkeys(line["model"] for line in lines))
    figure = Figure(figsize=(8.0, 7.4 + 0.14 * len(kinds)), layout="constrained")
    areas = figure.subplots(2, 1, sharex=True)
    for area, score, name in zip(areas, ("nll", "rmse"), ("negative log-likelihood", "RMSE")):
        last = area is areas[-1]
        title = "Airfoil: what a fit predicts, and what it takes"
        dress(area, "" if last else title, "seconds of a fit" if last else "", f"{name} (down is better)", 13)
        for j, kind in enumerate(kinds):
            group = sorted((line for line in lines if line["model"] == kind), key=lambda line: line["seconds"])
            x = [line["seconds"] for line in group]
            y, error = ([line[score][i] or 0.0 for line in group] for i in (0, 1))
            colour = CYCLE[j % 8]
            hollow = {1: {"mfc": "white"}, 2: {"fillstyle": "left", "markerfacecoloralt": "white"}}
            area.errorbar(x, y, yerr=error, fmt="none", ecolor=colour, lw=1.8, capsize=3, zorder=2)
            area.plot(
                x, y, MARKERS[j % 8] + "-", color=colour, ms=8, lw=1.8, mew=1.6, zorder=3,
                label=None if last else kind, **hollow.get(j // 8, {}),
            )  # fmt: skip
        beside = published.AIRFOIL
        point = float(beside["seconds"]), float(beside[score])
        area.plot(*point, "*", color=INK, ms=14, label=None if last else beside["name"])
        area.set_xscale("log")
        area.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        area.xaxis.set_minor_formatter(NullFormatter())
        area.tick_params(labelsize=11)
    legend(figure, 3)
    for text in figure.legends[0].get_texts():
        text.set_fontsize(11)
    return figure
