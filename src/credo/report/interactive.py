"""What the script of a page must know about a figure: its axes, and the values behind its marks.

A figure is drawn once, by matplotlib. `mark` names the groups of its SVG that move when a reader zooms, and `describe`
gives the axes and the series that a reader can point at, so that the script draws nothing a second time.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.dates import AutoDateFormatter, ConciseDateFormatter, DateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.scale import SymmetricalLogTransform

from credo.report.readout import Readout, readout_of
from credo.report.style import INK

DIGITS = 6


def mark(figure: Figure) -> None:
    """Name the groups of a figure's SVG: "plot-" and the directions in which they follow the data."""
    for i, area in enumerate(figure.axes):
        area.set_gid(f"plot-axes-{i}")
        for axis in (area.xaxis, area.yaxis):
            axis.get_offset_text().set_gid(f"{axis.axis_name}tick_offset")
        for j, artist in enumerate(_drawn(area)):
            follows = _transform(artist).contains_branch_seperately(area.transData)
            ways = "".join(w for w, yes in zip("xy", follows) if yes)
            shape = " shape" if isinstance(artist, Collection) and not isinstance(artist, PathCollection) else ""
            if ways:
                artist.set_gid(f"plot-{ways}{shape}-{i}-{j}")


def describe(figure: Figure, width: float, height: float) -> str:
    """Axes and series as JSON that is safe inside a page; empty where there is nothing to read.

    Args:
        figure: a figure that was drawn, so that its layout is known.
        width, height: of the SVG's view box.
    """
    shown = [area for area in figure.axes if area.get_visible()]
    areas = [_area(area, shown, width, height) for area in shown]
    if not any(area["series"] for area in areas):
        return ""
    return safe_json({"axes": areas})


def safe_json(value: Any) -> str:
    """JSON that no text can break out of: a script element ends at the first "</" whatever stands around it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _drawn(area: Axes) -> Iterator[Artist]:
    """What was drawn on the axes, without frame, title and ticks."""
    yield from (*area.lines, *area.collections, *area.patches, *area.texts)


def _transform(artist: Any) -> Any:
    if isinstance(artist, PathCollection):
        return artist.get_offset_transform()
    return artist.get_data_transform() if isinstance(artist, Patch) else artist.get_transform()


def _area(area: Axes, every: Sequence[Axes], width: float, height: float) -> dict[str, Any]:
    box = area.get_position()
    groups = [min(every.index(other) for other in g.get_siblings(area) if other in every) for g in _shared(area)]
    x, y = _axis(area.xaxis, area.get_xlim()), _axis(area.yaxis, area.get_ylim())
    y["label"] = y["label"] or words(every[groups[1]].get_ylabel())  # only the first of a row of panels is labelled
    free = "" if area.images else "".join(n for n, a in (("x", x), ("y", y)) if a["kind"] != "labels")
    if any(isinstance(bars, BarContainer) for bars in area.containers):
        free = free.replace("y", "")  # bars without their foot mislead
    return {
        "box": [round(v, 2) for v in (box.x0 * width, (1 - box.y1) * height, box.x1 * width, (1 - box.y0) * height)],
        "x": x,
        "y": y,
        "zoom": free,
        "groups": groups,
        "series": _at_once(list(_series(area))),
    }


def _at_once(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Series with the same x as an earlier one have its number instead: lines of many members stand at the same."""
    grids = [one["x"] for one in series]
    first = [grids.index(x) for x in grids]
    return [one if j == i else one | {"x": j} for i, (j, one) in enumerate(zip(first, series))]


def _shared(area: Axes) -> tuple[Any, Any]:
    return area.get_shared_x_axes(), area.get_shared_y_axes()


def _axis(axis: Axis, limits: tuple[float, float]) -> dict[str, Any]:
    """An axis: its label, its kind, its ends on that kind's scale, and the names of its ticks where they are names."""
    axis_data: dict[str, Any] = {"label": words(axis.get_label_text()), "kind": axis.get_scale()}
    formatter = axis.get_major_formatter()
    ticks = [(float(t), words(label.get_text())) for t, label in zip(axis.get_majorticklocs(), axis.get_ticklabels())]
    if isinstance(formatter, AutoDateFormatter | ConciseDateFormatter | DateFormatter):
        axis_data["kind"] = "date"
    elif axis_data["kind"] == "linear":
        labelled = [(t, label) for t, label in ticks if label]
        if labelled and all(label.endswith("%") for _, label in labelled):
            axis_data["percent"] = True
        elif any(not _is_number(label, t, abs(limits[1] - limits[0])) for t, label in labelled):
            axis_data |= {"kind": "labels", "names": labelled}
    axis_data["ends"] = [float(v) for v in axis.get_transform().transform(np.asarray(limits, float))]
    if axis_data["kind"] == "symlog":
        transform = axis.get_transform()
        assert isinstance(transform, SymmetricalLogTransform)
        axis_data["threshold"] = transform.linthresh
    return axis_data


def _is_number(label: str, position: float, span: float) -> bool:
    try:
        return abs(float(label.replace("−", "-").replace(",", "")) - position) <= 0.02 * span
    except ValueError:
        return False


def words(text: str) -> str:
    """A text of a figure as a reader sees it."""
    return " ".join(text.replace(r"\$", "$").split())


def _series(area: Axes) -> Iterator[dict[str, Any]]:
    for bars in area.containers:
        if isinstance(bars, BarContainer):
            yield from _one(bars, "bars", *_bars(bars), bars.patches[0].get_facecolor() if bars.patches else INK)
    for line in area.lines:
        x, y = (np.asarray(line.convert_xunits(line.get_xdata(orig=False)), float), np.asarray(line.get_ydata(), float))
        if all(line.get_transform().contains_branch_seperately(area.transData)) and (len(x) > 2 or _only_marks(line)):
            yield from _one(line, "points" if _only_marks(line) else "line", x, y, line.get_color())
    for collection in area.collections:
        if isinstance(collection, PathCollection) and len(collection.get_facecolor()):
            points = np.asarray(collection.get_offsets(), float)
            yield from _one(collection, "points", points[:, 0], points[:, 1], collection.get_facecolor()[0])
        elif readout_of(collection):
            yield from _one(collection, "points", [], [], INK)
    for other in (*area.images, *area.patches):
        if readout_of(other):
            yield from _one(other, "points", [], [], other.get_facecolor() if isinstance(other, Patch) else INK)


def _only_marks(line: Line2D) -> bool:
    return line.get_marker() not in ("", "None", None) and (
        line.get_linestyle() in ("None", "", " ") or line.get_linewidth() == 0
    )


def _bars(bars: BarContainer) -> tuple[np.ndarray, np.ndarray]:
    """Middles and heights."""
    return np.array([p.get_x() + p.get_width() / 2 for p in bars.patches]), np.array(
        [p.get_height() for p in bars.patches]
    )


def _one(artist: Any, kind: str, x: Any, y: Any, colour: Any) -> Iterator[dict[str, Any]]:
    more = readout_of(artist) or Readout()
    if more.points is not None:
        x, y = more.points
    if more.silent or not len(x):
        return
    # A histogram of several parts names the first bar of each.
    named = artist.patches[0] if isinstance(artist, BarContainer) and artist.patches else artist
    label = str(named.get_label())
    label = "" if label.startswith("_") else label
    shade = to_hex(colour)
    series: dict[str, Any] = {"kind": kind, "name": words(label) if more.name is None else more.name}
    series |= {"colour": "currentColor" if shade == INK else shade, "x": _numbers(x), "y": _numbers(y)}
    if more.about:
        series["about"] = [[head, list(map(str, values))] for head, values in more.about.items()]
    yield series


def _numbers(values: Any) -> list[float | None]:
    """Numbers with as many digits as a reader can use; None where not finite, because JSON has no word for that."""
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in np.asarray(values, float)]
