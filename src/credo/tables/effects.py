"""Effects of the columns of a table: a category is one input, a date its trend and its clocks, targets in own units."""

from typing import Any

import jax
import numpy as np

from credo.applications.effects.effects import Effects, effects
from credo.applications.effects.effort import effort_for
from credo.applications.effects.grid import Grid, grid_of
from credo.tables.columns.shown import Shown, shown_inputs
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.unseen import fill_gaps


def effect_key() -> jax.Array:
    """The key of effects: a report and `credo effects` show the same numbers."""
    return jax.random.key(0)


def table_effects(
    key: jax.Array,
    fit: Any,
    encoder: TableEncoder,
    inputs: Any,
    *,
    num_samples: int | None = None,
    level: float = 0.9,
    most_rows: int | None = None,
    most_points: int | None = None,
) -> Effects:
    """`effects` for a fit on a table: one input for each column, on the scale of the table's target.

    A date is its trend, with the weekdays, hours and seasons of the rows averaged out, and one input for each of these
    clocks of which the rows span two periods: `shown_inputs`, whose `cells` take a curve's grid back
    to the units of the column. Rows whose cell was missing do not make points of that column's grid.

    Args:
        key, fit, level: as in `effects`.
        num_samples, most_rows, most_points: likewise; None is 100 draws, 200 rows and 40 points, and fewer for networks
            that would take long.
        encoder: the table's encoder.
        inputs: encoded rows to average over, what `encoder.inputs` gave.

    Example:
        >>> import jax, credo, numpy as np, pandas as pd
        >>> from credo.tables.effects import table_effects
        >>> from credo.tables.encode.encoder import TableEncoder
        >>> frame = pd.DataFrame({"dose": np.arange(30.0), "town": ["Bath", "York"] * 15})
        >>> frame["y"] = 100 + 2 * frame["dose"]
        >>> encoder = TableEncoder.learn(frame, "y", "regression")
        >>> rows = encoder.arrays(frame)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (rows.inputs, rows.targets), "map", steps=500)
        >>> result = table_effects(jax.random.key(1), fit, encoder, rows.inputs)
        >>> result.names, round(float(result.strength[0]))
        (('dose', 'town'), 17)
    """
    array = fill_gaps(encoder, np.asarray(inputs))
    shown = shown_inputs(encoder, array)
    effort = effort_for(fit, len(shown))
    points = most_points or effort.points
    grids = {}
    for name, shown_input in shown.items():
        usable = array[shown_input.has_value(array)][:, list(shown_input.places)]
        if len(usable):
            grids[name] = _grid(shown_input, usable, points)
    groups = {name: shown_input.places for name, shown_input in shown.items()}
    outputs: Any = encoder.classes or (() if isinstance(encoder.target, str) else encoder.target)
    result = effects(
        key, fit, array, encoder.feature_names, groups=groups, grids=grids, outputs=outputs,
        num_samples=effort.draws if num_samples is None else num_samples, level=level,
        most_rows=effort.rows if most_rows is None else most_rows, most_points=points,
    )  # fmt: skip
    if encoder.task != "regression":
        return result
    return result.rescaled(encoder.target_shift, encoder.target_scale)


def _grid(shown_input: Shown, features: np.ndarray, points: int) -> Grid:
    """The grid of an input; that of a clock goes round it."""
    if shown_input.part is None:
        return grid_of(features, points)
    grid = grid_of(shown_input.cells(features), points)
    return Grid(shown_input.hands(grid.values[:, 0]), grid.shares)
