"""A figure as SVG inside a page: small, without outside references, in the page's own text colour and font."""

import re
import threading
from html import escape
from io import StringIO

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from credo.report.style import INK, title_of

# matplotlib reads the kind of SVG text and ids from global settings only.
_SETTINGS = threading.Lock()


def inline_svg(figure: Figure, name: str) -> str:
    """The `<svg>` element of a figure.

    Args:
        figure: the figure.
        name: unique within the page, so that no two figures share ids.
    """
    buffer = StringIO()
    with _SETTINGS, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_figure(buffer, format="svg", facecolor="none", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for useless in (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<style.*?</style>"):
        text = re.sub(useless, "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r' d="([^"]*)"', lambda path: f' d="{_rounded(path[1])}"', text)
    text = text.replace(f": {INK}", ": currentColor")
    title = title_of(figure.axes[0]) if figure.axes else name
    return re.sub(r"<svg[^>]*>", _opening(text, title), text, count=1)


def _rounded(path: str) -> str:
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", " ".join(path.split()))


def _opening(text: str, title: str) -> str:
    found = re.search(r'viewBox="([^"]*)"', text)
    box = found[1] if found else "0 0 360 266"
    label = escape(title.replace(r"\$", "$")).replace("\\", "\\\\")
    return f'<svg viewBox="{box}" role="img" aria-label="{label}">'
