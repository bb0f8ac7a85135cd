"""What all examples of the gallery share: sizes, one look for the pictures, and where they go."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from credo.report.style import CYCLE, INK, MODEL, MUTED, NOISE, WRONG, dress

__all__ = ["CYCLE", "INK", "MODEL", "MUTED", "NOISE", "WRONG", "band", "canvas", "keys", "save", "size"]

SMOKE = os.environ.get("CREDO_SMOKE") == "1"  # tests: tiny sizes, a few seconds, pictures that mean nothing
HERE = Path(__file__).resolve().parents[2] / "docs" / "images" / "gallery"
OUT = Path(os.environ.get("CREDO_GALLERY_OUT", str(HERE)))


def size(full: int, smoke: int) -> int:
    """A number of steps, rows or draws: `full` for the picture, `smoke` for the tests."""
    return smoke if SMOKE else full


def canvas(
    titles: list[str], x: str, y: str, *, rows: int = 1, high: float = 3.7, share: bool = True
) -> tuple[Figure, Any]:
    """A figure with one panel for each title, in the house style; axes are named at the edges."""
    columns = -(-len(titles) // rows)
    figure = Figure(figsize=(9.2, high * rows), dpi=110, layout="constrained", facecolor="white")
    areas = figure.subplots(rows, columns, sharex=share, sharey=share, squeeze=False)
    for i, (area, title) in enumerate(zip(areas.ravel(), titles)):
        edge = i // columns == rows - 1 or not share
        dress(
            area, title, x if edge else "", y if i % columns == 0 or not share else "", size=11 if columns < 5 else 9.5
        )
    return figure, areas.ravel()


def band(area: Axes, grid: np.ndarray, pred: Any, x: Any = None, y: Any = None, *, dots: float = 10) -> None:
    """Mean, what is not known about it, and the noise around that: 90 % of each."""
    grid, mean = np.ravel(grid), np.ravel(pred.mean)
    inner, outer = (1.645 * np.sqrt(np.ravel(v)) for v in (pred.epistemic, pred.variance))
    area.fill_between(grid, mean - outer, mean + outer, color="#f3d08a", lw=0, label="noise added: 90 % of new rows")
    area.fill_between(grid, mean - inner, mean + inner, color="#7fb2de", lw=0, label="not known: the mean, 90 %")
    area.plot(grid, mean, color=INK, lw=1.6, label="mean")
    if x is not None:
        area.scatter(np.ravel(x), np.ravel(y), s=dots, color=INK, lw=0, zorder=3, label="observed")


def keys(figure: Figure, area: Axes, columns: int = 4) -> None:
    """One legend below all panels, for what one of them shows."""
    handles, labels = area.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5, labelcolor=INK
    )


def save(figure: Figure, name: str) -> None:
    """Write the picture: docs/images/gallery, or the folder that CREDO_GALLERY_OUT names."""
    OUT.mkdir(parents=True, exist_ok=True)
    pixels = io.BytesIO()
    figure.savefig(pixels)
    Image.open(pixels).convert("RGB").quantize(192).save(OUT / f"{name}.png", optimize=True)  # half the bytes
