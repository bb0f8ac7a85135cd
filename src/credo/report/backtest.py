"""The figure of a backtest: how often intervals held, and how large errors were, by the steps ahead."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from credo.report.style import CYCLE, INK, MUTED, dress, legend

LEVELS = (0.5, 0.8, 0.9)


def plot(backtest: Any) -> Figure:
    """Coverage against what was promised, and RMSE and CRPS, by the steps ahead.

    Args:
        backtest: what `Autoregression.backtest` gave.
    """
    figure = Figure(figsize=(9.6, 4.0), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = np.arange(1, backtest.horizon + 1)
    dress(left, f"How often intervals held ({len(backtest.values)} origins)", "steps ahead", "values inside (%)")
    for level, colour in zip(LEVELS, CYCLE):
        left.axhline(100 * level, color=colour, lw=1, ls=":", label="_")
        held, label = 100 * backtest.coverage(level), f"{100 * level:g} % intervals"
        left.plot(steps, held, color=colour, lw=1.8, marker="o", ms=3.5, label=label)
    left.plot([], [], color=MUTED, lw=1, ls=":", label="promised")
    left.set_ylim(0, 103)
    dress(right, "How large errors were", "steps ahead", "in units of the series")
    right.plot(steps, backtest.rmse, color=INK, lw=1.8, marker="s", ms=3.5, label="RMSE")
    right.plot(steps, backtest.crps, color=CYCLE[3], lw=1.8, marker="^", ms=3.5, label="CRPS")
    right.set_ylim(bottom=0)
    for area in (left, right):
        area.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, 6)
    return figure
