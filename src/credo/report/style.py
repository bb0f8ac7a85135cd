"""One look for every figure: sizes, colours that colour-blind readers can tell apart, and legends below the data."""

from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

INK = "#1b1f27"  # the page puts its own text colour in place of this one
MUTED = "#868e9c"
MODEL = "#2f7fc4"  # what is not known: epistemic
NOISE = "#e69f00"  # what is random: aleatoric
WRONG = "#d55e00"
RIGHT = MODEL
CYCLE = ("#2f7fc4", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a45d6", "#9c3a2e")
SIZE = (5.0, 3.7)  # two beside each other on a desk, one below the other on a phone
WIDE = (8.8, 3.6)
MOST_POINTS = 600
NORMAL_90 = 1.645  # standard deviations on each side of the mean that hold 90 % of a normal distribution
LETTERS = 9  # of a title for each inch of a figure


def plain(text: Any, most: int = 40) -> str:
    """A user's name as one short line that is never read as mathematics."""
    line = " ".join(str(text).split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return line.replace("$", r"\$")


def axes(title: str, x: str, y: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure with one set of axes in the house style."""
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    area = figure.add_subplot()
    dress(area, title, x, y)
    return figure, area


def dress(area: Axes, title: str, x: str, y: str, size: float = 11.5) -> None:
    """The house style for one set of axes; `size` is that of the title."""
    area.set_facecolor("none")
    retitle(area, title, size=size)
    area.set_xlabel(x, fontsize=10, color=INK)
    area.set_ylabel(y, fontsize=10, color=INK)
    area.tick_params(colors=INK, labelsize=9.5, length=3)
    area.spines[["top", "right"]].set_visible(False)
    area.spines[["left", "bottom"]].set_color(MUTED)
    area.grid(color=MUTED, alpha=0.22, linewidth=0.7)
    area.set_axisbelow(True)


def retitle(area: Axes, title: str, pad: float = 8, size: float = 11.5) -> None:
    """Set the title, `pad` points above the axes, on as many lines as it needs to stay within a figure of its own."""
    figure = area.get_figure()
    most = LETTERS * figure.get_figwidth() if isinstance(figure, Figure) and len(figure.axes) == 1 else np.inf
    if max(map(len, title.split("\n"))) > most:
        title = "\n".join(part for line in title.split("\n") for part in wrap(line, int(most)))
    area.set_title(title, fontsize=size, fontweight="bold", color=INK, loc="left", pad=pad)


def title_of(area: Axes) -> str:
    """The title as it was set."""
    return area.get_title(loc="left")


def legend(figure: Figure, columns: int = 2) -> None:
    """A legend under the axes, where it covers no data."""
    box = figure.legend(
        loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5, labelcolor=INK, handlelength=1.6,
        columnspacing=1.4, handletextpad=0.6,
    )  # fmt: skip
    for handle in box.legend_handles:
        if handle is not None and (handle.get_alpha() or 1) < 0.5 and not isinstance(handle, Rectangle | Polygon):
            handle.set_alpha(0.9)


def shading(opacity: np.ndarray) -> np.ndarray:
    """Colours [..., 4] of one hue by opacity: they work on light and dark pages, and numbers on them stay readable."""
    colour = np.empty((*opacity.shape, 4))
    colour[..., :3] = [int(MODEL[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    colour[..., 3] = opacity
    return colour


def thin_indices(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """At most `most` indices out of `count`, spread evenly."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).round().astype(int)


def shown_note(count: int, most: int = MOST_POINTS) -> str:
    """Say that a figure does not show every row, where it does not."""
    return "" if count <= most else f"\n({most:,} of {count:,} rows shown, evenly spaced)"
