"""Figures of continual learning: how well each task is remembered after the next ones."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from credo.report.style import CYCLE, INK, MUTED, dress, legend, shading

MOST_NUMBERS = 12  # tasks whose scores are written into the map
WORDS = {"accuracy": "accuracy", "log_likelihood": "log likelihood (nats a row)"}


def plot(result: Any) -> Figure:
    """The score of every task after every task, as a map with numbers, and its mean along the tasks.

    Args:
        result: what `credo.applications.continual.learn` gave.
    """
    name = result.main
    share = name == "accuracy"
    matrix = np.asarray(result.scores[name], float) * (100 if share else 1)
    average = np.asarray(result.average, float) * (100 if share else 1)
    word = "accuracy (%)" if share else WORDS.get(name, name)
    figure = Figure(figsize=(10.2, 4.2), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    _map(left, matrix, word)
    number = len(matrix)
    steps = np.arange(number)  # tasks are counted as everywhere in credo.applications.continual
    dress(right, "What stays as tasks go by", "after task", word)
    for i in range(number):
        few = number <= len(CYCLE)
        name = f"task {i}" if few else ("_" if i else "each task")
        right.plot(
            steps[i:], matrix[i:, i], color=CYCLE[i] if few else MUTED, lw=1.2, marker="o", ms=3.5 if few else 2.5,
            alpha=0.85 if few else 0.6, label=name,
        )  # fmt: skip
    right.plot(steps, average, color=INK, lw=2.6, marker="s", ms=5, label="mean so far")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.margins(x=0.06, y=0.12)
    legend(figure, 6)
    return figure


def _map(area: Any, matrix: np.ndarray, word: str) -> None:
    """Rows are moments, columns are tasks; darker is better."""
    number = len(matrix)
    dress(area, f"Each task's {word}", "task", "after task")
    area.grid(False)
    scored = np.isfinite(matrix)
    low, high = matrix[scored].min(), matrix[scored].max()
    strength = np.where(scored, (matrix - low) / (high - low if high > low else 1.0), 0.0)
    area.imshow(shading(np.where(scored, 0.12 + 0.58 * strength, 0.0)), aspect="auto", interpolation="none")
    if number <= MOST_NUMBERS:
        area.set_xticks(range(number), [str(i) for i in range(number)])
        area.set_yticks(range(number), [str(i) for i in range(number)])
        size = 9.5 if number <= 6 else 7.5
        for t, i in zip(*np.nonzero(scored)):
            area.text(i, t, f"{matrix[t, i]:.1f}", ha="center", va="center", color=INK, fontsize=size)
    area.set(xlim=(-0.5, number - 0.5), ylim=(number - 0.5, -0.5))
