"""A figure of decisions: what each action is worth along the rows, and what knowing more would be worth."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.applications.decisions.chosen import Decisions
from credo.report.style import CYCLE, INK, MODEL, MUTED, NOISE, dress, legend, plain, shown_note, thin_indices

MOST_BARS = 14


def plot(decisions: Decisions, unit: str = "utility") -> Figure:
    """Utilities of the actions, or the amounts, over the rows; how often each is taken; the value of information.

    Args:
        decisions: what `credo.decide` gave.
        unit: the word for utility on the axes.
    """
    figure = Figure(figsize=(11.6, 4.4), dpi=110, layout="constrained")
    rows, shares, value = figure.subplots(1, 3, width_ratios=(1.7, 1, 1.15))
    if decisions.amounts is None:
        _utilities(rows, decisions, unit)
    else:
        _amounts(rows, decisions)
    _shares(shares, decisions)
    _value(value, decisions, unit)
    legend(figure, 6)
    return figure


def colours(decisions: Decisions) -> list[str]:
    """One colour for each action; abstaining is grey."""
    cycle = [CYCLE[i % len(CYCLE)] for i in range(len(decisions.actions))]
    return [MUTED if name == "abstain" else colour for name, colour in zip(decisions.actions, cycle)]


def _utilities(area: Axes, decisions: Decisions, unit: str) -> None:
    """A line for each action, over rows in the order in which the first two part; where lines cross, it turns."""
    values = decisions.values
    gap = values[:, 0] - values[:, -1 if len(decisions.actions) < 3 else 1] if values.shape[1] > 1 else values[:, 0]
    order = np.argsort(-gap, kind="stable")
    rows = order[thin_indices(len(order))]
    position = np.arange(len(rows))
    what = "" if str(decisions.risk) == "expected utility" else f", {decisions.risk}"
    dress(area, "What each action is worth", f"rows, in order of utility{shown_note(len(order))}", unit + what)
    for i, (name, colour) in enumerate(zip(decisions.actions, colours(decisions))):
        area.plot(position, values[rows, i], color=colour, lw=1.6, label=plain(name, 24))
    area.plot(position, values[rows].max(1), color=INK, lw=0.9, ls=(0, (2, 2)), label="the best")
    area.margins(x=0.01)
    if values.shape[1] > 2:  # a line that leaves the frame is worse than two others; the choice is between those
        low, high = np.sort(values, 1)[:, -2].min(), values.max()
        area.set_ylim(low - 0.12 * (high - low or 1.0), high + 0.08 * (high - low or 1.0))


def _amounts(area: Axes, decisions: Decisions) -> None:
    assert decisions.amounts is not None
    assert decisions.plug_in_amounts is not None
    order = np.argsort(decisions.plug_in_amounts, kind="stable")
    rows = order[thin_indices(len(order))]
    position = np.arange(len(rows))
    dress(area, "The best amount", f"rows, in order of the point prediction{shown_note(len(order))}", "amount")
    area.plot(position, decisions.plug_in_amounts[rows], color=NOISE, lw=1.6, label="by the point prediction")
    acts = decisions.best[rows] == 0
    area.plot(position[acts], decisions.amounts[rows][acts], ".", color=MODEL, ms=4.5, label="best amount")
    if not acts.all():
        area.plot(position[~acts], decisions.amounts[rows][~acts], "x", color=MUTED, ms=4, label="abstain")
    area.margins(x=0.01)


def _shares(area: Axes, decisions: Decisions) -> None:
    """Bars: how often each action is taken."""
    counts = np.bincount(decisions.best, minlength=len(decisions.actions))
    keep = np.sort(np.argsort(-counts, kind="stable")[:MOST_BARS])
    positions = np.arange(len(keep))
    dress(area, "How often taken", "share of rows (%)", "")
    area.barh(positions, 100 * counts[keep] / len(decisions), color=[colours(decisions)[i] for i in keep], height=0.62)
    for position, i in zip(positions, keep):
        share = 100 * counts[i] / len(decisions)
        words = "< 1" if 0 < share < 1 else f"{share:.0f}"
        area.text(share + 1.5, float(position), words, va="center", color=INK, fontsize=9)
    area.set_yticks(positions, [plain(decisions.actions[i], 16) for i in keep])
    area.set(xlim=(0, max(100 * counts.max() / len(decisions) * 1.16, 10)), ylim=(len(keep) - 0.4, -0.6))
    area.grid(False, axis="y")


def _value(area: Axes, decisions: Decisions, unit: str) -> None:
    """Bars: what it would add, on average, to know the parameters and the outcomes."""
    parameters, outcome = float(decisions.value_of_parameters.mean()), float(decisions.value_of_outcome.mean())
    dress(area, "What knowing would add", f"{unit} a row", "")
    names = ["parameters\n(more data)", "outcomes\n(perfect test)"]
    area.barh([0, 1], [parameters, outcome], color=[MODEL, NOISE], height=0.5)
    top = max(parameters, outcome, 1e-12)
    for position, number in enumerate((parameters, outcome)):
        area.text(number + 0.02 * top, position, f"{number:.3g}", va="center", color=INK, fontsize=9)
    area.set_yticks([0, 1], names)
    area.set(xlim=(0, 1.22 * top), ylim=(1.6, -0.6))
    area.grid(False, axis="y")
