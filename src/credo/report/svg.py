"""A figure as SVG inside a page: small, without outside references, in the page's own text colour and font."""

import re
import threading
from html import escape
from io import StringIO

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from credo.report.interactive import describe, mark, words
from credo.report.style import INK, title_of

# Styles that every tick repeats, as classes of the page's style sheet: they would be half of a page.
CLASSES = {
    "fill: none; stroke: #868e9c; stroke-opacity: 0.22; stroke-width: 0.7; stroke-linecap: square": "grid",
    "fill: currentColor; stroke: currentColor; stroke-width: 0.8": "stroke",
    "font-size: 9.5px; text-anchor: middle; fill: currentColor": "number middle",
    "font-size: 9.5px; text-anchor: end; fill: currentColor": "number end",
}
# matplotlib reads the kind of SVG text and ids from global settings only.
_SETTINGS = threading.Lock()


def inline_svg(figure: Figure, name: str) -> str:
    """The `<svg>` element of a figure, and after it what the page's script must know to make it interactive.

    Args:
        figure: the figure.
        name: unique within the page, so that no two figures share ids.
    """
    mark(figure)
    text = _compact_svg(figure, name)
    box = _view_box(text)
    data = describe(figure, box[2], box[3])
    text = re.sub(r"<svg[^>]*>", _opening(figure, name, box).replace("\\", r"\\"), text, count=1)
    return text + (f'<script type="application/json">{data}</script>' if data else "")


def _compact_svg(figure: Figure, name: str) -> str:
    """What matplotlib draws, without what a page does not need."""
    buffer = StringIO()
    with _SETTINGS, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_figure(buffer, format="svg", facecolor="none", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for useless in (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<style.*?</style>", r" font-family: [^;\"]*;"):
        text = re.sub(useless, "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="plot-([^"]*?)[-0-9]*"', r'<g class="\1"', text)
    text = re.sub(r'<g id="([xy]tick)[^"]*"', r'<g class="\1"', text)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r' d="([^"]*)"', lambda path: f' d="{_rounded(path[1])}"', text)
    text = re.sub(r' ([xy])="(-?\d+\.\d{2})\d+"', r' \1="\2"', text)
    text = re.sub(r' transform="rotate\(-?0 [^"]*"', "", text)
    text = re.sub(r"<g( [^>]*)?>\s*((?:<use [^>]*/>\s*){2,})</g>", _styled_once, text)
    text = re.sub(r"\s*\n\s*", "\n", text).replace(f": {INK}", ": currentColor")
    for style, name in CLASSES.items():
        text = text.replace(f'style="{style}"', f'class="{name}"')
    return _unwrapped(text)


def _unwrapped(text: str) -> str:
    """Without groups that group nothing."""
    once = re.sub(r"<g>\n((?:<(?:path|use|text)[^>]*(?:/>|>[^<]*</text>)\n)*)</g>\n", r"\1", text)
    return once if once == text else _unwrapped(once)


def _styled_once(group: re.Match[str]) -> str:
    """Points of one style: say the style once, for the group."""
    styles = set(re.findall(r' style="([^"]*)"', group[2]))
    if len(styles) != 1 or group[2].count(" style=") != group[2].count("<use "):
        return group[0]
    style = f' style="{styles.pop()}"'
    return f"<g{group[1] or ''}{style}>{group[2].replace(style, '')}</g>"


def _rounded(path: str) -> str:
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", " ".join(path.split()))


def _view_box(text: str) -> list[float]:
    box = re.search(r'viewBox="([^"]*)"', text)
    return [float(v) for v in box[1].split()] if box else [0.0, 0.0, 360.0, 266.4]


def _opening(figure: Figure, name: str, box: list[float]) -> str:
    """The tag, with what there is to see in words."""
    first = figure.axes[0] if figure.axes else None
    label = name if first is None else words(title_of(first))
    if first is not None and first.get_xlabel() and first.get_ylabel():
        label += f". Across: {words(first.get_xlabel())}. Up: {words(first.get_ylabel())}."
    return f'<svg viewBox="{" ".join(f"{v:g}" for v in box)}" role="img" aria-label="{escape(label)}">'
