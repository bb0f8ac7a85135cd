"""Figures of predicted classes: which are taken for which."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from credo.report.readout import add_readout
from credo.report.style import INK, axes, plain, shading
from credo.report.views import ClassView

MOST_NUMBERS = 12
MOST_CELLS = 40  # classes up to which each pair can be pointed at


def confusion(view: ClassView) -> Figure:
    """Counts of true against named classes; shading is the share of each true class."""
    assert view.target is not None
    number = len(view.labels)
    counts = np.zeros((number, number), int)
    np.add.at(counts, (view.target, view.guess), 1)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    figure, area = axes("Which class is taken for which?", "named class", "true class")
    area.grid(False)
    image = area.imshow(shading(0.7 * share), aspect="auto", interpolation="none")
    if number <= MOST_CELLS:
        rows, columns = np.indices(counts.shape).reshape(2, -1)
        about = {"rows": [f"{c:,}" for c in counts.ravel()]}
        about["share of the true class"] = [f"{100 * s:.0f} %" for s in share.ravel()]
        if number > MOST_NUMBERS:  # the axes have no names then
            about |= {"true": [view.labels[i] for i in rows], "named": [view.labels[j] for j in columns]}
        add_readout(image, "", points=(columns, rows), about=about)
    if number <= MOST_NUMBERS:
        names = [plain(label, 14) for label in view.labels]
        area.set_xticks(range(number), names)
        if max(map(len, names)) * number > 40:
            for text in area.get_xticklabels():
                text.set(rotation=35, ha="right")
        area.set_yticks(range(number), names)
        for i, j in np.ndindex(number, number):
            if counts[i, j]:
                area.text(j, i, f"{counts[i, j]:,}", ha="center", va="center", color=INK, fontsize=9.5)
    else:
        area.xaxis.set_major_locator(MaxNLocator(integer=True))
        area.yaxis.set_major_locator(MaxNLocator(integer=True))
        area.set(xlabel="named class (index)", ylabel="true class (index)")
    area.set(xticks=area.get_xticks(), xlim=(-0.5, number - 0.5), ylim=(number - 0.5, -0.5))
    return figure
