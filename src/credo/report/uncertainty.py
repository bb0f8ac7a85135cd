"""Figures of aleatoric against epistemic uncertainty."""

import numpy as np
from matplotlib.figure import Figure

from credo.report.readout import add_readout, digits
from credo.report.style import INK, MODEL, NOISE, RIGHT, WRONG, axes, legend, plain, shown_note, thin_indices
from credo.report.views import ClassView, RealView, which


def split(view: RealView) -> Figure:
    """Noise against lack of knowledge for every row, as standard deviations."""
    name = plain(view.name, 24)
    figure, area = axes(
        "Noise against lack of knowledge" + shown_note(len(view.mean)),
        f"noise (aleatoric std), in units of {name}",
        "not known (epistemic std)",
    )
    rows = thin_indices(len(view.mean))
    x, y = view.aleatoric[rows], view.epistemic[rows]
    dots = area.scatter(x, y, s=18, color=MODEL, alpha=0.7, lw=0, label="one row")
    add_readout(dots, "", about={"predicted": [digits(v) for v in view.mean[rows]]} | which(view, rows))
    if np.ptp(x) < 0.02 * x.max():  # equal noise everywhere would be one invisible column at the edge
        area.set_xlim(0, 2 * x.max())
    top = max(area.get_ylim()[1], 1e-12)
    area.set_ylim(0, top)
    right = area.get_xlim()[1]
    reach = min(top, right)
    area.plot([0, reach], [0, reach], color=INK, lw=1, ls="--", label="both alike")
    area.set_xlim(right=right)
    legend(figure)
    return figure


def share(view: RealView) -> Figure:
    """How much of each prediction's variance more data could take away."""
    figure, area = axes("What could be learned away", "epistemic share of the variance", "rows")
    area.hist(view.share, bins=20, range=(0, 1), color=MODEL, alpha=0.8, rwidth=0.92, label="rows")
    middle = float(np.median(view.share))
    area.axvline(middle, color=NOISE, lw=2, label=f"middle row: {100 * middle:.0f} %")
    area.set_xlim(0, 1)
    area.set_xticks(np.linspace(0, 1, 6), [f"{100 * t:.0f} %" for t in np.linspace(0, 1, 6)])
    legend(figure)
    return figure


def entropy_split(view: ClassView) -> Figure:
    """Noise against lack of knowledge for every row, in nats, right and wrong rows apart."""
    figure, area = axes(
        "Noise against lack of knowledge" + shown_note(len(view.probs)),
        "noise: expected entropy (nats)",
        "not known: mutual information (nats)",
    )
    rows = thin_indices(len(view.probs))
    groups = [(np.ones(len(rows), bool), "one row", RIGHT, "o")]
    if view.target is not None:
        good = view.right[rows]
        groups = [(good, "right", RIGHT, "o"), (~good, "wrong", WRONG, "X")]
    for mask, label, colour, marker in groups:
        pick = rows[mask]
        size = 22 if marker == "o" else 40
        text = f"{label} ({len(pick):,})"
        x, y = view.aleatoric[pick], view.epistemic[pick]
        dots = area.scatter(x, y, s=size, color=colour, alpha=0.75, marker=marker, lw=0, label=text)
        add_readout(dots, label, about=_classes(view, pick) | which(view, pick))
    # A lack of knowledge that is next to nothing beside the noise should look so.
    top = max(1.08 * float(view.epistemic.max()), 0.05 * float(view.aleatoric.max()), 1e-6)
    area.set_ylim(-0.02 * top, top)
    area.set_xlim(left=-0.02 * max(float(view.aleatoric.max()), 1e-6))
    legend(figure)
    return figure


def _classes(view: ClassView, rows: np.ndarray) -> dict[str, list[str]]:
    """What was named, how surely, and what it was."""
    named = [f"{view.labels[view.guess[i]]} ({100 * view.confidence[i]:.0f} %)" for i in rows]
    return {"named": named} | ({} if view.target is None else {"true": [view.labels[view.target[i]] for i in rows]})
