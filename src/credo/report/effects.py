"""The section "What the inputs do": one panel for each input, with the band of its partial dependence."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.applications import Effects
from credo.applications.effects.effort import LEAST, effort_for
from credo.core.posterior import WeightPosterior
from credo.report.html import Section, gallery, page, paragraphs, table
from credo.report.panels import MOST_CLASSES, MOST_LABELS, MOST_PANELS, panels
from credo.report.run import RunData
from credo.report.words import number, percent
from credo.tables.columns.shown import shown_inputs
from credo.tables.effects import effect_key, table_effects
from credo.tables.encode.columns import CategoryColumn, CodeColumn, DateColumn, TextColumn
from credo.tables.encode.encoder import TableEncoder
from credo.tables.read.parse import listed

TITLE = "What the inputs do"
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
    effects = run_effects(run)
    if effects is None:
        return []
    assert run.encoder is not None
    assert run.inputs is not None
    figures = effect_figures(effects, run.encoder, run.inputs)
    body = (
        paragraphs([_words(effects), *_more(run, effects)]) + effect_table(effects) + gallery(figures, CAPTIONS, prefix)
    )
    return [Section(TITLE, body, level)]


def run_effects(run: RunData) -> Effects | None:
    """The effects of the columns of a run's table, from few draws and rows; None where that cannot be had quickly."""
    if run.fit is None or run.encoder is None or run.inputs is None or np.ndim(run.inputs) != 2 or len(run.inputs) < 2:
        return None
    if not isinstance(run.fit.posterior, WeightPosterior) or len(run.encoder.columns) == 0:
        return None
    if effort_for(run.fit, len(shown_inputs(run.encoder, run.inputs))).share < LEAST:
        return None  # too much for a page; `credo effects` computes it
    return table_effects(effect_key(), run.fit, run.encoder, run.inputs)


def effect_figures(effects: Effects, encoder: Any, inputs: np.ndarray) -> dict[str, Figure]:
    """The panels: one figure, or one for each of several numbers.

    Args:
        effects: what `credo.tables.effects.table_effects` gave.
        encoder: the table's encoder.
        inputs: encoded rows, for the ticks.
    """
    if encoder.classes is not None or isinstance(encoder.target, str):
        return {"panels": panels(effects, encoder, inputs)}
    return {f"panels_{i + 1}": panels(effects, encoder, inputs, i) for i in range(len(encoder.target))}


def effect_page(
    title: str, effects: Effects, encoder: TableEncoder, figures: dict[str, Figure], more: list[Section]
) -> str:
    """A page of effects alone.

    Args:
        title: its heading.
        effects: what `credo.tables.effects.table_effects` gave.
        encoder: the table's encoder.
        figures: what `effect_figures` gave.
        more: further sections.
    """
    notes = [*of_dates(effects, encoder), *left_out(effects, encoder), *effects.sentences()]
    body = paragraphs([_words(effects), *notes]) + effect_table(effects) + gallery(figures, CAPTIONS, "effects")
    return page(title, [Section("Effects", body), *more])


def effect_table(effects: Effects) -> str:
    """The table of effects, the strongest input first."""
    frame = effects.table().loc[effects.order]
    rows = [(str(name), *(_cell(c, v) for c, v in row.items())) for name, row in frame.iterrows()]
    return table(("Input", *map(_head, frame.columns)), rows, numbers=True)


def _words(effects: Effects) -> str:
    level = next(iter(effects.curves.values())).level
    return WORDS.format(level=percent(level))


def of_dates(effects: Effects, encoder: TableEncoder) -> list[str]:
    """How dates are shown: which of their clocks have curves of their own, and which the rows are too short to tell.

    Args:
        effects: what `credo.tables.effects.table_effects` gave.
        encoder: the table's encoder.
    """
    sentences = []
    for column in encoder.columns:
        if not isinstance(column, DateColumn):
            continue
        words = {part: part.replace("_", " ") for part in column.parts}
        apart = [word for word in words.values() if f"{column.name}: {word}" in effects.names]
        rest = [word for word in words.values() if word not in apart]
        if apart:
            one = len(apart) == 1
            sentences.append(
                f"'{column.name}' is shown with the {' and the '.join(apart)} averaged over the rows; "
                f"{'it has a curve' if one else 'these have curves'} of {'its' if one else 'their'} own."
            )
        if rest:
            sentences.append(
                f"The rows span less than two turns of the {' and the '.join(rest)} of '{column.name}', so that what "
                "comes of it and a trend are one curve."
            )
    return sentences


def left_out(effects: Effects, encoder: TableEncoder) -> list[str]:
    """What the panels do not show: weak inputs, rare categories, classes beyond the first ones.

    Args:
        effects: what `credo.tables.effects.table_effects` gave.
        encoder: the table's encoder.
    """
    sentences = []
    if len(effects.names) > MOST_PANELS:
        rest = effects.order[MOST_PANELS:]
        strongest = float(effects.strength[effects.names.index(rest[0])].max())
        sentences.append(
            f"Of {len(effects.names)} inputs the {MOST_PANELS} strongest are drawn; left out are {listed(rest)}, of "
            f"strength {number(strongest)} at most, which the table has too."
        )
    many = [
        c.name
        for c in encoder.columns
        if isinstance(c, CategoryColumn | CodeColumn) and len(c.categories) > MOST_LABELS
    ]
    drawn = [name for name in many if name in effects.order[:MOST_PANELS]]
    if drawn:
        sentences.append(f"Of {listed(drawn)} the {MOST_LABELS} commonest categories are drawn.")
    texts = [c.name for c in encoder.columns if isinstance(c, TextColumn) and c.name in effects.order[:MOST_PANELS]]
    if texts:
        sentences.append(f"The dots of {listed(texts)} are texts of some of the rows, in no order.")
    if encoder.classes is not None and len(encoder.classes) > MOST_CLASSES:
        sentences.append(f"Of {len(encoder.classes)} classes the first {MOST_CLASSES} are drawn.")
    return sentences


def _more(run: RunData, effects: Effects) -> list[str]:
    notes = [] if run.encoder is None else [*of_dates(effects, run.encoder), *left_out(effects, run.encoder)]
    # Only these methods can tell whether an input matters; elsewhere the sentence would be of no use.
    if effects.note and run.fit is not None and run.fit.config.get("method") in ("gibbs", "reversible_jump"):
        notes.append(effects.note)
    return notes


def _cell(column: Any, value: float) -> str:
    return percent(float(value)) if column == "matters" else number(float(value))


def _head(column: Any) -> str:
    return "Probability that it matters" if column == "matters" else str(column)[:1].upper() + str(column)[1:]
