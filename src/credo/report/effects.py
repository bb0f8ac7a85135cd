"""The section "What the inputs do": one panel for each input, with the band of its partial dependence."""

from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from credo.applications import Effects, table_effects
from credo.report.html import Section, gallery, page, paragraphs, table
from credo.report.panels import MOST_PANELS, panels
from credo.report.run import RunData
from credo.report.words import number, percent

TITLE = "What the inputs do"
DRAWS, ROWS, POINTS = 50, 100, 20
WORK = 1e10  # parameters × network evaluations that a page may spend here: about a second
WORDS = (
    "Each panel moves one input and leaves all others as they are; the line is the mean prediction over the rows "
    "(partial dependence), the band holds {level} of the posterior. Strength is how far that line moves over the rows: "
    "its standard deviation, in units of the target; for classes, of their probabilities. All panels have one scale, "
    "and the strongest input comes first. Where inputs depend on each other, some of these rows exist nowhere."
)
CAPTIONS = {
    "panels": "Ticks at the bottom are the rows; a wide band where there are few of them is lack of knowledge. An "
    "input whose band holds a level line may do nothing."
}


def input_section(run: RunData, level: int, prefix: str) -> list[Section]:
    """The section of a run on a table; empty where its rows are unknown or the work would be too much for a page."""
    found = run_effects(run)
    if found is None:
        return []
    assert run.encoder is not None
    assert run.inputs is not None
    figures = effect_figures(found, run.encoder, run.inputs)
    body = paragraphs([_words(found), *_said(run, found)]) + effect_table(found) + gallery(figures, CAPTIONS, prefix)
    return [Section(TITLE, body, level)]


def run_effects(run: RunData) -> Effects | None:
    """The effects of the columns of a run's table, from few draws and rows; None where that cannot be had quickly."""
    if run.fit is None or run.encoder is None or run.inputs is None or np.ndim(run.inputs) != 2 or len(run.inputs) < 2:
        return None
    if not hasattr(run.fit.posterior, "sample") or len(run.encoder.columns) == 0:
        return None
    work = DRAWS * ROWS * POINTS * len(run.encoder.columns) * max(1, _parameters(run.fit))
    # Fewer draws and rows while they still make a curve; beyond that `credo effects` is the place.
    less = min(1.0, (WORK / work) ** 0.5)
    if less < 0.3:
        return None
    return table_effects(
        jax.random.key(0), run.fit, run.encoder, run.inputs, num_samples=round(DRAWS * less),
        most_rows=round(ROWS * less), most_points=POINTS,
    )  # fmt: skip


def effect_figures(found: Effects, encoder: Any, inputs: np.ndarray) -> dict[str, Figure]:
    """The panels: one figure, or one for each of several numbers.

    Args:
        found: what `credo.applications.table_effects` gave.
        encoder: the table's encoder.
        inputs: encoded rows, for the ticks.
    """
    if encoder.classes is not None or isinstance(encoder.target, str):
        return {"panels": panels(found, encoder, inputs)}
    return {f"panels_{i + 1}": panels(found, encoder, inputs, i) for i in range(len(encoder.target))}


def effect_page(title: str, found: Effects, figures: dict[str, Figure], more: list[Section]) -> str:
    """A page of effects alone.

    Args:
        title: its heading.
        found: what `credo.applications.table_effects` gave.
        figures: what `effect_figures` gave.
        more: further sections.
    """
    said = [*_drawn(found), *found.sentences()]
    body = paragraphs([_words(found), *said]) + effect_table(found) + gallery(figures, CAPTIONS, "effects")
    return page(title, [Section("Effects", body), *more])


def effect_table(found: Effects) -> str:
    """The table of effects, the strongest input first."""
    frame = found.table().loc[found.order]
    rows = [(str(name), *(_cell(c, v) for c, v in row.items())) for name, row in frame.iterrows()]
    return table(("Input", *map(_head, frame.columns)), rows, numbers=True)


def _words(found: Effects) -> str:
    level = next(iter(found.curves.values())).level
    return WORDS.format(level=percent(level))


def _drawn(found: Effects) -> list[str]:
    over = len(found.names) > MOST_PANELS
    return [f"Of {len(found.names)} inputs the {MOST_PANELS} strongest are drawn."] if over else []


def _said(run: RunData, found: Effects) -> list[str]:
    said = _drawn(found)
    # Only these methods can tell whether an input matters; elsewhere the sentence would be of no use.
    if found.note and run.fit is not None and run.fit.config.get("method") in ("gibbs", "reversible_jump"):
        said.append(found.note)
    return said


def _parameters(fit: Any) -> int:
    made = jax.eval_shape(lambda posterior: posterior.sample(jax.random.key(0), 1), fit.posterior)
    return sum(int(np.prod(x.shape[1:])) for x in jax.tree.leaves(made))


def _cell(column: Any, value: float) -> str:
    return percent(float(value)) if column == "matters" else number(float(value))


def _head(column: Any) -> str:
    return "Probability that it matters" if column == "matters" else str(column)[:1].upper() + str(column)[1:]
