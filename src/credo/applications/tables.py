"""Effects of the columns of a table: categories and dates as one input each, targets in their own units."""

from typing import Any

import jax
import numpy as np

from credo.applications.dependence import MOST_ROWS
from credo.applications.effects import Effects, effects
from credo.applications.grid import MOST_POINTS, grid_of
from credo.data.decode import feature_groups, known
from credo.data.encoder import TableEncoder


def table_effects(
    key: jax.Array,
    fit: Any,
    encoder: TableEncoder,
    inputs: Any,
    *,
    num_samples: int = 200,
    level: float = 0.9,
    most_rows: int = MOST_ROWS,
    most_points: int = MOST_POINTS,
) -> Effects:
    """`effects` for a fit on a table: one input for each column, on the scale of the table's target.

    Rows whose cell was missing do not make points of that column's grid. `credo.data.decode.decode` takes a curve's
    grid back to the units of the column.

    Args:
        key, fit, num_samples, level, most_rows, most_points: as in `effects`.
        encoder: the table's encoder.
        inputs: encoded rows to average over, what `encoder.inputs` gave.

    Example:
        >>> import jax, credo, numpy as np, pandas as pd
        >>> from credo.data.encoder import TableEncoder
        >>> frame = pd.DataFrame({"dose": np.arange(30.0), "town": ["Bath", "York"] * 15})
        >>> frame["y"] = 100 + 2 * frame["dose"]
        >>> encoder = TableEncoder.learn(frame, "y", "regression")
        >>> rows = encoder.arrays(frame)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (rows.inputs, rows.targets), "map", steps=500)
        >>> found = credo.applications.table_effects(jax.random.key(1), fit, encoder, rows.inputs)
        >>> found.names, round(float(found.strength[0]))
        (('dose', 'town'), 17)
    """
    array = np.asarray(inputs)
    groups = feature_groups(encoder)
    grids = {}
    for column in encoder.columns:
        own = array[:, list(groups[column.name])]
        usable = own[known(column, own)]
        if len(usable):
            grids[column.name] = grid_of(usable, most_points)
    outputs: Any = encoder.classes or (() if isinstance(encoder.target, str) else encoder.target)
    found = effects(
        key, fit, array, encoder.feature_names, groups=groups, grids=grids, outputs=outputs, num_samples=num_samples,
        level=level, most_rows=most_rows, most_points=most_points,
    )  # fmt: skip
    if encoder.task != "regression":
        return found
    return found.rescaled(encoder.target_shift, encoder.target_scale)
