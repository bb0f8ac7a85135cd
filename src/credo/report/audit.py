"""Pictures of the truth audit and of simulation-based calibration."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credo.evaluation.audit import words
from credo.evaluation.audit.run import Audit
from credo.evaluation.audit.sbc import Calibration
from credo.evaluation.audit.truth import LEVELS
from credo.report.markdown import table
from credo.report.style import CYCLE, INK, MODEL, MUTED, NOISE, WRONG, legend

WIDEST = 2.0  # std ratios beyond are drawn at the edge
MANY = 12  # methods from which on all problems stand in one row, so that names stand there once


def write_audit(audit: Audit, document: dict[str, Any], folder: Path) -> list[Path]:
    """Numbers, pictures and a page of an audit into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"audit": overview(audit)}
    if "gap" in audit.problems and any((m, "gap") in audit.bands for m in audit.methods):
        figures["audit_gap"] = in_between(audit)
    paths = _write(folder, "audit", document, figures)
    page = folder / "audit.md"
    page.write_text(audit_page(audit, "audit_gap" in figures), encoding="utf-8")
    return [*paths, page]


def audit_page(audit: Audit, gap: bool) -> str:
    """The audit as Markdown: its pictures, its table, and what it found about each method."""
    count, broken = len(audit.methods), len(audit.broken)
    verdict = "none misses its own claim" if not broken else f"{broken} cells miss a claim"
    head = (
        f"{count} method{'s' * (count != 1)} on {len(audit.problems)} problems whose posterior is known; {verdict}. "
        f"JAX {jax.__version__}. `credo audit --methods all --out docs/measured` makes this page. Seconds are "
        "those of one run, compilation aside; programs that run beside it make them longer."
    )
    pictures = [
        "![Every method on every problem: spread against the true spread, and the error of the mean.](audit.png)"
    ]
    if gap:
        pictures.append("![Between two clusters of data: what each method says, over what is true.](audit_gap.png)")
    names, lines = words.table(audit)
    cells = [[f"`{line[0]}`", *line[1:]] for line in lines]
    sentences = [f"- `{method}`: {text}" for method, text in words.sentences(audit).items()]
    title = "# How far is each method from the truth?"
    return "\n\n".join([title, head, *pictures, words.LEGEND, table(names, cells), "\n".join(sentences)]) + "\n"


def write_calibration(result: Calibration, folder: Path) -> list[Path]:
    """Ranks and their picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"sbc_{result.method}"
    return _write(folder, name, result.plain(), {name: ranks(result)})


def _write(folder: Path, name: str, document: dict[str, Any], figures: dict[str, Figure]) -> list[Path]:
    paths = [folder / f"{name}.json"]
    paths[0].write_text(json.dumps(document, indent=1, default=float), encoding="utf-8")
    for title, figure in figures.items():
        path = folder / f"{title}.png"
        figure.savefig(path, facecolor="white")
        paths.append(path)
    return paths


def overview(audit: Audit) -> Figure:
    """Every method on every problem: where its spread lies beside the true one, and how far its mean is off."""
    names, methods = list(audit.problems), audit.methods
    columns = len(names) if len(methods) > MANY else min(4, len(names))
    lines = -(-len(names) // columns)
    width = 1.5 if columns > 4 else 2.35
    size = (2.3 + width * columns, 1.3 + lines * (0.9 + 0.3 * len(methods)))
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    areas = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    marks = None
    for area, name in zip(areas.ravel(), names):
        marks = _panel(area, audit, name, methods) or marks
    for area in areas.ravel()[len(names) :]:
        area.set_axis_off()
    figure.suptitle("How far is each method from the exact posterior?", fontsize=13, fontweight="bold", color=INK)
    figure.supxlabel(
        "spread of the posterior of functions ÷ true spread   (0: a point, 1: exact, right of 1: too unsure"
        f"{'; ringed: misses its own claim' if audit.broken else ''})",
        fontsize=10, color=INK,
    )  # fmt: skip
    if marks is not None:
        bar = figure.colorbar(marks, ax=areas, shrink=0.8, aspect=30, extend="max")
        bar.set_label("error of the mean, in true posterior standard deviations", fontsize=9.5, color=INK)
    return figure


def _panel(area: Axes, audit: Audit, name: str, methods: list[str]) -> Any:
    area.axvline(1.0, color=INK, lw=1, ls="--", zorder=1)
    area.set_title(name.replace("_", " "), fontsize=10.5, color=INK, loc="left")
    rows = [audit.row(method, name) for method in methods]
    fitted = [(i, row) for i, row in enumerate(rows) if row["std_ratio"] is not None]
    area.set_yticks(range(len(methods)), methods)
    area.set_ylim(len(methods) - 0.5, -0.5)
    area.set_xlim(-0.12, WIDEST + 0.12)
    area.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "½", "1", "1½", "2+"])
    _dress_panel(area)
    area.spines[["left", "bottom"]].set_color(MUTED)
    area.grid(axis="y", color=MUTED, alpha=0.3, lw=0.6)
    for i, row in enumerate(rows):
        if row["std_ratio"] is None:
            area.text(0.05, i, "refused", fontsize=8, color=MUTED, va="center")
        elif row["met"] is False:
            area.scatter(
                [min(row["std_ratio"], WIDEST)], [i], s=170, facecolors="none", edgecolors=WRONG, linewidths=1.8
            )
    if not fitted:
        return None
    x = [min(row["std_ratio"], WIDEST) for _, row in fitted]
    return area.scatter(
        x, [i for i, _ in fitted], c=[row["mean_error"] for _, row in fitted], cmap="viridis_r", vmin=0, vmax=1, s=62,
        edgecolors=INK, linewidths=0.6, zorder=3,
    )  # fmt: skip


def in_between(audit: Audit) -> Figure:
    """The problem with a gap: what each method says in between, over what is true there."""
    problem = audit.problems["gap"]
    methods = [m for m in audit.methods if (m, "gap") in audit.bands]
    columns = min(3 if len(methods) <= MANY else 5, len(methods))
    lines = -(-len(methods) // columns)
    figure = Figure(figsize=(1.2 + 2.9 * columns, 1.3 + 2.15 * lines), dpi=110, layout="constrained")
    areas = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    x = problem.places[:, 0]
    low, high = (problem.truth.quantiles[np.abs(LEVELS - q).argmin(), :, 0] for q in (0.05, 0.95))
    for k, (area, method) in enumerate(zip(areas.ravel(), methods)):
        band, first = audit.bands[method, "gap"], k == 0
        area.fill_between(x, low, high, color=MUTED, alpha=0.35, lw=0, label="true 90 %" if first else None)
        area.fill_between(
            x, band.low[:, 0], band.high[:, 0], color=MODEL, alpha=0.35, lw=0,
            label="the method's 90 %" if first else None,
        )  # fmt: skip
        area.plot(x, band.mean[:, 0], color=MODEL, lw=1.6, label="the method's mean" if first else None)
        area.plot(
            problem.inputs[:, 0], problem.targets, "o", ms=3, color=NOISE, label="data" if first else None
        )  # fmt: skip
        ratio = audit.row(method, "gap")["std_ratio_gap"]
        area.set_title(f"{method}: {ratio:.2f}", fontsize=9.5, color=INK, loc="left")
        _dress_panel(area)
        area.set_ylim(-2.6, 2.6)
    for area in areas.ravel()[len(methods) :]:
        area.set_axis_off()
    figure.suptitle(
        "Between two clusters of data: spread inside the gap ÷ true spread", fontsize=12.5, fontweight="bold", color=INK
    )  # fmt: skip
    _label_below(areas, len(methods), "x")
    figure.supylabel("f(x)", fontsize=10, color=INK)
    legend(figure, 4)
    return figure


def _dress_panel(area: Axes) -> None:
    area.tick_params(colors=INK, labelsize=9, length=2)
    area.spines[["top", "right"]].set_visible(False)


def _label_below(areas: np.ndarray, count: int, text: str) -> None:
    """Name the x axis of the lowest panel of every column; a shared label would lie under the legend."""
    columns = areas.shape[1]
    for index in range(max(0, count - columns), count):
        area = areas.ravel()[index]
        area.set_xlabel(text, fontsize=9.5, color=INK)
        area.tick_params(labelbottom=True)


def ranks(result: Calibration) -> Figure:
    """ECDF of the ranks minus its expectation, with the envelope that a right method leaves seldom."""
    most = result.draws
    at = (np.arange(most + 1) + 1) / (most + 1)
    columns = 2 if len(result.names) == 4 else min(3, len(result.names))
    lines = -(-len(result.names) // columns)
    figure = Figure(figsize=(0.8 + 2.9 * columns, 1.3 + 2.1 * lines), dpi=110, layout="constrained")
    areas = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for k, (area, name, test) in enumerate(zip(areas.ravel(), result.names, result.tests)):
        bad = test.p_value <= result.false_alarms / len(result.tests)
        area.fill_between(
            at, test.lower - at, test.upper - at, color=MUTED, alpha=0.35, lw=0, step="post",
            label="where a right method stays" if k == 0 else None,
        )  # fmt: skip
        area.step(
            at, test.ecdf - at, where="post", color=WRONG if bad else CYCLE[0], lw=1.4,
            label="ranks" if k == 0 else None,
        )  # fmt: skip
        area.set_title(f"{name}: p = {test.p_value:.2g}", fontsize=9.5, color=INK, loc="left")
        _dress_panel(area)
    for area in areas.ravel()[len(result.names) :]:
        area.set_axis_off()
    verdict = "passes" if result.passed else "fails"
    figure.suptitle(
        f"{result.method} {verdict}: ranks of the truth in {len(result.ranks)} simulations",
        fontsize=12, fontweight="bold", color=INK,
    )  # fmt: skip
    _label_below(areas, len(result.names), "rank of the truth among the draws")
    figure.supylabel("ECDF − expected", fontsize=10, color=INK)
    legend(figure, 2)
    return figure
