"""Figures of predicted numbers: against what was observed, against one input, in order, and their errors."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.report.readout import add_readout, digits, spans
from credo.report.style import INK, MODEL, MUTED, NOISE, WIDE, WRONG, axes, legend, plain, shown_note, thin_indices
from credo.report.views import RealView, which

HALF_WIDTH = 1.645  # standard deviations on each side of a Gaussian's central 90 %


def predicted_observed(view: RealView) -> Figure:
    """Observed values against predictions, with 90 % intervals; misses stand out."""
    assert view.target is not None
    name = plain(view.name)
    figure, area = axes(
        "Predicted against observed" + shown_note(len(view.mean), 300), f"predicted {name}", f"observed {name}"
    )
    rows = thin_indices(len(view.mean), 300)
    low, high = float(view.mean[rows].min()), float(view.mean[rows].max())
    margin = 0.05 * (high - low) or 1.0
    ends = [low - margin, high + margin]
    area.plot(ends, ends, color=INK, lw=1, label="exactly right")
    area.set_xlim(*ends)
    for inside, colour, label in ((True, MODEL, "inside interval"), (False, WRONG, "outside")):
        chosen = rows[view.inside[rows] == inside]
        area.vlines(view.mean[chosen], view.lower[chosen], view.upper[chosen], color=colour, alpha=0.28, lw=1.3)
        marker, size = ("o", 20) if inside else ("X", 38)
        dots = area.scatter(
            view.mean[chosen], view.target[chosen], s=size, color=colour, marker=marker, lw=0, label=label
        )
        add_readout(dots, about={"90 % interval": spans(view.lower[chosen], view.upper[chosen])} | which(view, chosen))
    legend(figure, 3)
    return figure


def curve(
    view: RealView,
    x: np.ndarray,
    x_name: str,
    observed: tuple[np.ndarray, np.ndarray] | None = None,
    source: RealView | None = None,
    size: tuple[float, float] = WIDE,
) -> Figure:
    """The prediction along one input with aleatoric and epistemic bands; `source` has the observed rows."""
    figure, area = axes(f"{plain(view.name)} along {plain(x_name)}", plain(x_name), plain(view.name), size)
    bands(area, view, x)
    if observed is not None:
        rows = thin_indices(len(observed[0]))
        dots = area.scatter(observed[0][rows], observed[1][rows], s=14, color=INK, lw=0, zorder=4, label="observed")
        add_readout(dots, about=which(view if source is None else source, rows))
    legend(figure, 4)
    return figure


def bands(area: Axes, view: RealView, x: np.ndarray, *, labels: bool = True) -> None:
    """Draw the mean, the band of the mean (epistemic) and the band of new observations (with noise)."""
    order = np.argsort(x, kind="stable")
    x, mean = x[order], view.mean[order]
    low, high = view.lower[order], view.upper[order]
    half = HALF_WIDTH * view.epistemic[order]
    inner_low, inner_high = np.maximum(mean - half, low), np.minimum(mean + half, high)
    noise = "noise: 90 % of observations" if labels else None
    # The noise band is drawn around the other one, so that the two colours never mix.
    area.fill_between(x, low, inner_low, color=NOISE, alpha=0.38, lw=0, label=noise)
    area.fill_between(x, inner_high, high, color=NOISE, alpha=0.38, lw=0)
    if half.any():
        epistemic = "not known: the mean, 90 %" if labels else None
        area.fill_between(x, inner_low, inner_high, color=MODEL, alpha=0.5, lw=0, label=epistemic)
    line = area.plot(x, mean, color=INK, lw=1.6, label="mean" if labels else None)[0]
    about = {"90 % of observations": spans(low, high)}
    if half.any():
        about["the mean, 90 %"] = spans(inner_low, inner_high)
    add_readout(line, "mean", about=about)


def sorted_predictions(view: RealView) -> Figure:
    """Rows in the order of their predictions, with both bands and what was observed."""
    figure, area = axes(
        "Predictions from low to high" + shown_note(len(view.mean), 300),
        "rows, in the order of their prediction",
        plain(view.name),
        WIDE,
    )
    order = np.argsort(view.mean, kind="stable")[thin_indices(len(view.mean), 300)]
    position = np.arange(len(order))
    pick = RealView(view.name, *(v[order] for v in (view.mean, view.aleatoric, view.epistemic, view.lower, view.upper)))
    bands(area, pick, position)
    if view.target is not None:
        dots = area.scatter(position, view.target[order], s=13, color=INK, lw=0, zorder=4, label="observed")
        about = {"predicted": [digits(v) for v in pick.mean], "90 % interval": spans(pick.lower, pick.upper)}
        add_readout(dots, about=about | which(view, order))
    legend(figure, 4)
    return figure


def residuals(view: RealView) -> Figure:
    """Errors in units of their predicted standard deviation: no trend and no funnel is what is wanted."""
    assert view.target is not None
    title = "Errors against predictions" + shown_note(len(view.mean))
    figure, area = axes(title, f"predicted {plain(view.name)}", "error / predicted std")
    rows = thin_indices(len(view.mean))
    scaled = (view.target - view.mean) / np.maximum(view.std, np.finfo(float).tiny)
    area.axhspan(-HALF_WIDTH, HALF_WIDTH, color=MUTED, alpha=0.16, lw=0, label="where 90 % should lie (±1.64)")
    area.axhline(0, color=INK, lw=1)
    inside = np.abs(scaled) <= HALF_WIDTH
    for mask, colour, marker, dot, name in ((inside, MODEL, "o", 18, "inside"), (~inside, WRONG, "X", 38, "outside")):
        pick = rows[mask[rows]]
        label = None if mask is inside else "outside"
        dots = area.scatter(view.mean[pick], scaled[pick], s=dot, color=colour, marker=marker, lw=0, label=label)
        error = [digits(v) for v in view.target[pick] - view.mean[pick]]
        add_readout(dots, f"{name} the band", about={"error": error} | which(view, pick))
    reach = max(3.0, 1.08 * float(np.abs(scaled[rows]).max()))
    area.set_ylim(-reach, reach)
    legend(figure, 2)
    return figure
