"""The figure of gradient noise: variances of every estimator, one group of parameters below the other."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.report.style import CYCLE, SIZE, axes, legend, plain

MOST_GROUPS = 12


def gradient_variance(variances: Any) -> Figure:
    """Variances of estimates of the bound's gradient, by group of parameters and in total.

    Args:
        variances: what `credo.evaluation.diagnostics.gradient_variance` gave.
    """
    names = [*variances.groups[:MOST_GROUPS], "in total"]
    height = max(SIZE[1], 1.6 + 0.34 * len(names))
    title = f"Noise of gradients from {variances.num_samples} draws"
    figure, area = axes(title, "variance of the gradient of the bound", "", (SIZE[0], height))
    positions = np.arange(len(names))[::-1]
    for i, (name, values) in enumerate(variances.variance.items()):
        shown = np.maximum([*values[:MOST_GROUPS], variances.total(name)], 1e-30)
        area.plot(shown, positions, "o", color=CYCLE[i % len(CYCLE)], ms=6, label=name)
    area.set_xscale("log")
    area.set_yticks(positions, [plain(name, 24) for name in names])
    legend(figure, 2)
    return figure
