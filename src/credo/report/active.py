"""The figure of active learning: scores against the number of labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.errors import InputError
from credo.report.style import CYCLE, MUTED, NORMAL_90, axes, legend

WORDS = {"accuracy": "accuracy (%)", "log_likelihood": "log likelihood (nats a row)", "rmse": "root mean squared error"}
STYLES = ("-", "--", "-.", ":")


def plot(runs: Sequence[Any]) -> Figure:
    """A curve for each acquisition; of several runs with one acquisition the mean with a 90 % interval.

    Args:
        runs: what `credo.applications.active.learn` gave.
    """
    name = runs[0].main
    factor = 100.0 if name == "accuracy" else 1.0
    groups: dict[str, list[Any]] = {}
    for run in runs:
        if name not in run.scores:
            raise InputError(f"All runs must have the score {name}: fit them with test rows of one kind.")
        groups.setdefault(run.acquisition, []).append(run)
    several = max(len(group) for group in groups.values())
    title = "What each label is worth" + (f" (mean of {several} runs, 90 % interval)" if several > 1 else "")
    figure, area = axes(title, "labelled rows", WORDS.get(name, name), (7.2, 4.2))
    for i, (acquisition, group) in enumerate(groups.items()):
        sizes = group[0].sizes
        if any(run.sizes != sizes for run in group):
            raise InputError(f"Runs with the acquisition {acquisition} have other numbers of labels: plot them apart.")
        values = factor * np.array([run.scores[name] for run in group])
        mean = values.mean(0)
        colour = MUTED if acquisition == "random" else CYCLE[i % len(CYCLE)]
        area.plot(
            sizes, mean, color=colour, lw=2, ls=STYLES[i % 4], marker="o", ms=3, label=acquisition.replace("_", " ")
        )
        if len(group) > 1:
            error = NORMAL_90 * values.std(0, ddof=1) / len(group) ** 0.5
            area.fill_between(sizes, mean - error, mean + error, color=colour, alpha=0.18, lw=0)
    legend(figure, min(5, len(groups)))
    return figure
