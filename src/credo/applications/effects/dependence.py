"""Partial dependence with its uncertainty: the mean prediction as a function of one input."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.effects.bands import mean_over, quantile_over
from credo.applications.effects.grid import Grid, as_grid, grid_of
from credo.core.batch import pad_rows
from credo.core.capabilities import StoredPosterior, ask
from credo.core.checks import share
from credo.core.model import Model
from credo.core.pieces import in_pieces
from credo.core.predict import CHUNK_BYTES, checked_inputs
from credo.core.short import fields_in_short
from credo.errors import InputError, Refusal

MOST_ROWS = 500


@dataclasses.dataclass(frozen=True)
class PartialDependence:
    """f̄_k(v) under draws of the posterior; see `partial_dependence`.

    Attributes:
        columns: the columns of the inputs that are set together.
        grid: their values v, and the share of rows that each stands for.
        draws: f̄_k(v) under each draw [draws, points], or [draws, points, outputs] for several outputs and for classes.
        log_weights: of the draws [draws]; None where all weigh the same.
        level: the probability between `lower` and `upper`.
    """

    columns: tuple[int, ...]
    grid: Grid
    draws: np.ndarray
    log_weights: np.ndarray | None = None
    level: float = 0.9

    __repr__ = fields_in_short

    @property
    def mean(self) -> np.ndarray:
        """E[f̄_k(v)] over draws [points, …]."""
        return mean_over(self.draws, self.log_weights)

    @property
    def lower(self) -> np.ndarray:
        """Lower end of the central interval of f̄_k(v) [points, …]."""
        return quantile_over(self.draws, self.log_weights, 0.5 - self.level / 2)

    @property
    def upper(self) -> np.ndarray:
        """Upper end of the central interval of f̄_k(v) [points, …]."""
        return quantile_over(self.draws, self.log_weights, 0.5 + self.level / 2)

    @property
    def strengths(self) -> np.ndarray:
        """Standard deviation of the curve over its grid, by the shares of the points, under each draw [draws, …]."""
        shares = self.grid.shares.reshape(-1, *[1] * (self.draws.ndim - 2))
        away = self.draws - self.draws[:, :1]  # exactly 0 where the curve is level
        centre = (shares * away).sum(1, keepdims=True)
        return np.sqrt((shares * (away - centre) ** 2).sum(1))

    def rescaled(self, shift: Any, scale: Any) -> "PartialDependence":
        """The curve of shift + scale · y: undoes a standardisation of the targets.

        Args:
            shift, scale: numbers, or one for each output.
        """
        return dataclasses.replace(self, draws=np.asarray(shift) + np.asarray(scale) * self.draws)


def partial_dependence(
    key: jax.Array,
    fit: Any,
    inputs: Any,
    feature: int | Sequence[int],
    grid: Any = None,
    num_samples: int = 200,
    level: float = 0.9,
    *,
    most_rows: int = MOST_ROWS,
) -> PartialDependence:
    """The mean prediction over the rows as one input moves and all others stay, with a band over posterior draws.

    f̄_k(v) = 1/n Σ_i E[y | x_i with x_ik = v, θ] for every draw θ; for classes, the probability of each. Friedman
    (2001), Greedy function approximation: a gradient boosting machine, section 8.2. Where inputs depend on each other
    some of these rows exist nowhere, and there the network extrapolates.

    Args:
        key: a JAX key for drawing from the posterior; stored draws need none.
        fit: the result of `credo.fit` or `credo.load`.
        inputs: rows like the training inputs [n, p].
        feature: a column, or the columns that stand for one input together (a category's).
        grid: values of that column [points] (or [points, columns]); None takes those of the rows: all if they are few,
            else evenly spaced quantiles.
        num_samples: draws of θ.
        level: probability of the band.
        most_rows: so many rows are used, from all over the table, where there are more.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, 2 * x[:, 0]), "map", steps=500)
        >>> line = credo.applications.partial_dependence(jax.random.key(1), fit, x, feature=0, grid=[0.0, 1.0])
        >>> bool(abs(line.mean[1] - line.mean[0] - 2) < 0.1)
        True
    """
    check_level(level)
    rows = thin_rows(table_inputs(fit, inputs), most_rows)
    columns = _columns(feature, rows.shape[1])
    grid = grid_of(np.asarray(inputs)[:, list(columns)]) if grid is None else as_grid(grid, len(columns))
    return curves(key, fit, rows, [(columns, grid)], num_samples, level)[0]


def curves(
    key: jax.Array, fit: Any, rows: np.ndarray, inputs: Sequence[tuple[tuple[int, ...], Grid]], num: int, level: float
) -> list[PartialDependence]:
    """The partial dependence on each of several inputs, by one program: all grids are padded to the longest.

    Args:
        key, fit, level: as in `partial_dependence`.
        rows: the rows that are averaged over.
        inputs: columns and grid of each input.
        num: draws of θ.
    """
    if num < 1:
        raise InputError(f"num_samples must be at least 1, got {num}.")
    posterior, model = fit.posterior, fit.model
    members, each = posterior.num_draws(num)
    per_point = 16 * members * each * len(rows)
    points = max(1, min(max(len(grid) for _, grid in inputs), CHUNK_BYTES // per_point))
    blocks = [_block(rows, columns, grid, at, points) for columns, grid in inputs for at in range(0, len(grid), points)]
    means, weights = _means(key, posterior, model, blocks, num, points)
    log_weights = None if weights is None else np.asarray(weights, np.float64).ravel()
    results = []
    for columns, grid in inputs:
        parts = [next(means) for _ in range(0, len(grid), points)]
        curve = np.concatenate(parts, 2)[:, :, : len(grid)].astype(np.float64)
        curve = curve.reshape(-1, *curve.shape[2:])
        if model.likelihood.kind == "classes":  # rounding of a mean leaves [0, 1]
            curve = np.clip(curve, 0.0, 1.0)
        flat = model.likelihood.kind != "classes" and fit.target_shape == ()
        results.append(PartialDependence(columns, grid, curve[..., 0] if flat else curve, log_weights, level))
    return results


def _means(
    key: jax.Array, posterior: Any, model: Model, blocks: list[Any], num: int, points: int
) -> tuple[Any, jax.Array | None]:
    """Arrays [member, draw, points, k] of every block, and the draws' log weights."""
    if ask(posterior, StoredPosterior).on_disk:

        def at(part: Any, block: Any) -> jax.Array:
            return _row_means(key, part, model, block(), None, points)[0]

        return iter(in_pieces(at, posterior, num, blocks)), posterior.chosen_weights(num)
    posterior = jax.device_put(posterior.joint_at(block() for block in blocks))
    results = [_row_means(key, posterior, model, block(), num, points) for block in blocks]
    return (np.asarray(means) for means, _ in results), results[0][1]


@partial(jax.jit, static_argnames=("num", "points"))
def _row_means(
    key: jax.Array, posterior: Any, model: Model, inputs: jax.Array, num: int | None, points: int
) -> tuple[jax.Array, jax.Array | None]:
    """E[y | x, θ] of inputs [points × rows, p] averaged over the rows [member, draw, points, k]."""
    draws = posterior.outputs(key, model, inputs, num)
    each = jax.vmap(jax.vmap(model.likelihood.mean))(draws.likelihood, draws.values)
    each = each.reshape(*each.shape[:2], points, -1, each.shape[-1])
    first = each[..., :1, :]  # deviations from one row: many large numbers would lose what separates them
    return (first + jnp.mean(each - first, axis=-2, keepdims=True))[..., 0, :], draws.log_weights


def _block(rows: np.ndarray, columns: tuple[int, ...], grid: Grid, start: int, points: int) -> Any:
    """A function that makes the rows at some points of the grid, so that few such copies exist at a time."""

    def make() -> np.ndarray:
        values = pad_rows(grid.values[start : start + points], points)
        many = np.broadcast_to(rows, (points, *rows.shape)).copy()
        many[:, :, list(columns)] = values[:, None]
        return many.reshape(-1, rows.shape[1])

    return make


def table_inputs(fit: Any, inputs: Any) -> np.ndarray:
    """The inputs as an array [n, p], or a sentence."""
    shape = fit.input_shape
    if not isinstance(shape, tuple) or len(shape) != 1 or not all(isinstance(size, int) for size in shape):
        raise Refusal("The effect of an input is defined for inputs of shape [rows, features]; these are not.")
    return np.asarray(checked_inputs(fit, inputs))


def thin_rows(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` rows, one from each of as many equal stretches of the table.

    Which one is left to chance, by a fixed seed: every seventh row of a table of days would be one weekday.
    """
    if most < 1:
        raise InputError(f"most_rows must be at least 1, got {most}.")
    if len(rows) <= most:
        return rows
    positions = (np.arange(most) + np.random.default_rng(0).random(most)) * (len(rows) / most)
    return rows[positions.astype(int)]


def check_level(level: float) -> None:
    """Raise a sentence unless the level is a probability."""
    share(level, "The level of a band")


def _columns(feature: Any, width: int) -> tuple[int, ...]:
    columns = tuple(int(i) for i in np.atleast_1d(np.asarray(feature)))
    if not columns or len(set(columns)) < len(columns) or not all(0 <= i < width for i in columns):
        raise InputError(f"feature is a column between 0 and {width - 1}, or several of them, got {feature!r}.")
    return columns
