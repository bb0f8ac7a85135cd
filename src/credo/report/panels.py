"""Small multiples of partial dependence: one panel for each input, in the units of the table."""

from typing import Any, NamedTuple

import matplotlib.dates as mdates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, NullLocator

from credo.applications import Effects, PartialDependence
from credo.report.readout import add_readout, spans
from credo.report.style import CYCLE, INK, MODEL, WIDE, dress, legend, plain, thin_indices
from credo.report.words import number, percent
from credo.tables.columns.shown import WEEKDAYS, Shown, shown_inputs
from credo.tables.encode.columns import NumericColumn

MOST_PANELS = 12
MOST_CLASSES = 4
MOST_LABELS = 8
MOST_TICKS = 200
FEW = 6  # numbers so few have a dot and a label each
WIDE_RATIO = 20  # largest over smallest number from which a column that was encoded by logarithms gets a log axis
QUARTERS, QUARTER_NAMES = (0, 90, 181, 273), ("Jan", "Apr", "Jul", "Oct")
UNNAMED = "_"  # what matplotlib leaves out of legends


class Line(NamedTuple):
    """One line of every panel: its name, the index of its output (None: there is one), its colour."""

    name: str
    output: int | None
    colour: str
    in_legend: bool = True

    @property
    def label(self) -> str:
        """What the legend says."""
        return self.name if self.in_legend else UNNAMED

    def of(self, values: np.ndarray) -> np.ndarray:
        """The values of this output."""
        return values if self.output is None else values[..., self.output]


def panels(effects: Effects, encoder: Any, inputs: np.ndarray, output: int | None = None) -> Figure:
    """One panel for each of the strongest inputs, all on one scale.

    Args:
        effects: what `credo.tables.effects.table_effects` gave.
        encoder: the table's encoder.
        inputs: encoded rows, for the ticks.
        output: which of several numbers.
    """
    names = effects.order[:MOST_PANELS]
    across = 2 if len(names) == 4 else min(len(names), 3)
    down = -(-len(names) // across)
    figure = Figure(figsize=(WIDE[0], 0.7 + 2.45 * down), dpi=110)
    figure.set_layout_engine(ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.07))
    areas = figure.subplots(down, across, sharey=True, squeeze=False)
    rows = np.asarray(inputs)
    shown, lines = shown_inputs(encoder, rows), _lines(encoder, output)
    for i, area in enumerate(areas.flat):
        if i >= len(names):
            area.set_visible(False)
            continue
        one = shown[names[i]]
        known_rows = rows[one.has_value(rows)][:, list(one.places)]
        _panel(area, effects.curves[one.name], one, known_rows, lines, first=i == 0)
        y_label = "" if i % across else _y_label(encoder, lines, output)
        dress(area, _heading(effects, one.name, lines), plain(one.name, 32), y_label, size=9.5)
    if encoder.classes is not None:  # no margin beyond what a probability can be
        low, high = areas[0, 0].get_ylim()
        areas[0, 0].set_ylim(max(low, 0.0), min(high, 1.0))
    legend(figure, 5)
    return figure


def _lines(encoder: Any, output: int | None) -> list[Line]:
    if encoder.classes is None:
        return [Line("mean prediction", output, MODEL)]
    labels = [plain(label, 16) for label in encoder.classes]
    if len(labels) == 2:  # of two probabilities that sum to 1 the second says all
        return [Line(f"probability of {labels[1]}", 1, MODEL)]
    return [Line(label, i, CYCLE[i]) for i, label in enumerate(labels[:MOST_CLASSES])]


def _y_label(encoder: Any, lines: list[Line], output: int | None) -> str:
    if encoder.classes is not None:
        return lines[0].name if len(lines) == 1 else "probability"
    return plain(encoder.target if output is None else encoder.target[output], 28)


def _heading(effects: Effects, name: str, lines: list[Line]) -> str:
    row = effects.names.index(name)
    strongest = max(float(line.of(effects.strength[row])) for line in lines)
    words = f"strength {number(strongest)}"
    if effects.matters is None:
        return words
    share = percent(float(effects.matters[row])).replace("over ", "> ").replace("under ", "< ")  # titles are narrow
    return f"{words}, matters {share}"


def _panel(area: Axes, curve: PartialDependence, one: Shown, rows: np.ndarray, lines: list[Line], first: bool) -> None:
    """Bands along numbers and dates, dots at categories; only the first panel names what the legend shows."""
    at = _labelled(one, curve.grid.values)
    shapes = np.stack([curve.mean, curve.lower, curve.upper])
    for i, line in enumerate(lines):
        meaning = f"{percent(curve.level)} of the posterior"
        band = meaning if first and not i else UNNAMED
        shown = line if first else line._replace(in_legend=False)
        if at.dtype == object:
            aside = 0.2 * (i - (len(lines) - 1) / 2)
            kinds = _commonest(at, curve.grid.shares, one)
            _dots(area, at[kinds], line.of(shapes)[:, kinds], shown, band, meaning, aside)
        else:
            _band(area, at, line.of(shapes), shown, band, meaning)
    if at.dtype != object:
        _ticks(area, at, one.cells(rows), "rows" if first else UNNAMED)
        _axis(area, one, at)


def _labelled(one: Shown, features: np.ndarray) -> np.ndarray:
    """Where the points of a grid lie, or what they are called."""
    cells = one.cells(features)
    if one.part != "day_of_week":
        return cells
    return np.array([WEEKDAYS[int(day)] for day in cells], object)


def _commonest(names: np.ndarray, shares: np.ndarray, one: Shown) -> list[int]:
    """The categories that are drawn, by name; days of the week as they follow each other."""
    common = np.argsort(-shares, kind="stable")[:MOST_LABELS].tolist()
    return sorted(common) if one.part is not None else sorted(common, key=lambda i: str(names[i]))


def _band(area: Axes, at: np.ndarray, shapes: np.ndarray, line: Line, band: str, meaning: str) -> None:
    middle, low, high = shapes
    area.fill_between(at, low, high, color=line.colour, alpha=0.3, lw=0, label=band)
    curve = area.plot(
        at, middle, color=line.colour, lw=1.7, label=line.label, marker="o" if len(at) <= FEW else "", ms=4
    )[0]
    add_readout(curve, line.name, about={meaning: spans(low, high)})


def _dots(area: Axes, at: np.ndarray, shapes: np.ndarray, line: Line, band: str, meaning: str, aside: float) -> None:
    """One dot with its interval for each category."""
    middle, low, high = shapes
    position = np.arange(len(at))
    area.vlines(position + aside, low, high, color=line.colour, alpha=0.4, lw=5, label=band)
    dots = area.plot(position + aside, middle, color=line.colour, lw=0, marker="o", ms=5, label=line.label)[0]
    add_readout(dots, line.name, about={meaning: spans(low, high)})
    labels = [plain(name, 12) for name in at]
    if sum(map(len, labels)) > 24:
        area.set_xticks(position, labels, rotation=35, ha="right", rotation_mode="anchor")
    else:
        area.set_xticks(position, labels)
    area.set_xlim(-0.6, len(at) - 0.4)


def _ticks(area: Axes, at: np.ndarray, cells: np.ndarray, name: str) -> None:
    """Where the rows are; those beyond the curve's ends would only make it smaller."""
    inside = np.sort(cells[(cells >= at.min()) & (cells <= at.max())])
    shown = inside[thin_indices(len(inside), MOST_TICKS)]
    # One broken line: in a page every marker would be an element of its own.
    heights = np.tile([0.0, 0.05, np.nan], len(shown))
    area.plot(
        np.repeat(shown, 3), heights, transform=area.get_xaxis_transform(), color=INK, lw=0.8, alpha=0.55, label=name
    )


def _axis(area: Axes, one: Shown, at: np.ndarray) -> None:
    """An axis that a reader can read: few ticks, dates as dates, logarithms where numbers span orders."""
    if one.part == "day_of_year":
        area.set_xticks(QUARTERS, QUARTER_NAMES)
    elif at.dtype.kind == "M":
        locator = mdates.AutoDateLocator(minticks=2, maxticks=5)
        area.xaxis.set_major_locator(locator)
        area.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    elif _logarithmic(one.column, at):
        area.set_xscale("log")
        area.xaxis.set_minor_locator(NullLocator())
        area.xaxis.set_major_formatter(lambda x, _: number(float(x)))
    elif len(at) <= FEW:
        area.set_xticks(at, [number(float(x)) for x in at])
    else:
        area.xaxis.set_major_locator(MaxNLocator(4))


def _logarithmic(column: Any, at: np.ndarray) -> bool:
    bent = isinstance(column, NumericColumn) and column.width is not None and column.width > 0
    return bent and bool(at.min() > 0) and float(at.max() / at.min()) > WIDE_RATIO
