"""Numbers cut into pieces before a network: each moves in straight lines between quantiles of its column."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import MaskedNetwork, NetworkWrapper, require
from credo.core.checks import whole_number
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.networks.mlp import mlp

BINS = 8
MOST_BINS = 256


@struct
class Piecewise(NetworkWrapper):
    """f(x) = network(x, z) with z_jt(x) = 2 clip((x_j − k_jt)/(k_j,t+1 − k_jt), 0, 1) − 1: see `piecewise`.

    Parameters are the network's own.
    """

    network: Any = leaf()
    knots: Any = leaf(default=None)
    columns: tuple[int, ...] | None = None
    bins: int = BINS

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """The network's start."""
        return self.network.init(key, self.pieces(inputs), num_outputs)

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """The network's outputs for numbers and pieces."""
        return self.network.apply(variables, self.pieces(inputs), key=key, train=train)

    def apply_masked(self, variables: Variables, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the network's masks."""
        return require(self.network, MaskedNetwork).apply_masked(variables, self.pieces(inputs), key)

    def apply_local(self, mean: PyTree, std: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with the network's own draws of pre-activations."""
        return self.network.apply_local(mean, std, self.pieces(inputs), key)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with the network's own signs for every row."""
        return self.network.apply_flipout(mean, moved, self.pieces(inputs), key)

    def dense_layers(self) -> list[tuple[str, str | None, bool]]:
        """Those of the network."""
        return self.network.dense_layers()

    def apply_tapped(self, params: PyTree, inputs: jax.Array, shifts: PyTree) -> tuple[jax.Array, PyTree]:
        """Outputs and inputs of layers of the network."""
        return self.network.apply_tapped(params, self.pieces(inputs), shifts)

    def info(self, params: PyTree) -> PyTree:
        """The network's facts."""
        return self.network.info(params)

    def cut_columns(self) -> tuple[list[int] | None, list[list[float]]]:
        """Places of the columns that are cut, None for all, and the knots of each, or one row for all of them."""
        knots = [normal_knots(self.bins)] if self.knots is None else np.asarray(self.knots).tolist()
        return None if self.columns is None else list(self.columns), knots if self.columns != () else []

    def pieces(self, inputs: jax.Array) -> jax.Array:
        """The inputs of the inner network [n, features + columns · bins]: the features, and z of each column."""
        columns = range(inputs.shape[1]) if self.columns is None else self.columns
        if not len(columns):
            return inputs
        numbers = inputs if self.columns is None else inputs[:, np.asarray(self.columns)]
        if self.knots is None:
            knots = jnp.broadcast_to(jnp.asarray(normal_knots(self.bins), inputs.dtype), (len(columns), self.bins + 1))
        else:
            knots = jnp.asarray(self.knots, inputs.dtype)
        low, width = knots[:, :-1], jnp.diff(knots)
        share = (numbers[:, :, None] - low) / jnp.where(width > 0, width, 1.0)
        pieces = jnp.where(width > 0, 2.0 * jnp.clip(share, 0.0, 1.0) - 1.0, 0.0)
        return jnp.concatenate([inputs, pieces.reshape(len(inputs), -1)], axis=1)


def normal_knots(bins: int) -> list[float]:
    """Quantiles of N(0, 1) that cut it into so many parts of equal probability, the outermost at half a part.

    Example:
        >>> [round(knot, 2) for knot in normal_knots(2)]
        [-1.15, 0.0, 1.15]
    """
    inner = [NormalDist().inv_cdf(t / bins) for t in range(1, bins)]
    end = NormalDist().inv_cdf(1 - 0.25 / bins)
    return [-end, *inner, end]


def quantile_knots(values: Any, bins: int = BINS) -> np.ndarray:
    """Knots [columns, bins + 1] at the quantiles of values [n, columns]; equal ones make a part that is left out.

    Example:
        >>> import numpy as np
        >>> quantile_knots(np.arange(5.0)[:, None], 2).tolist()
        [[0.0, 2.0, 4.0]]
    """
    values = np.asarray(values, np.float64)
    if values.ndim != 2 or not len(values) or not np.isfinite(values).all():
        raise InputError("quantile_knots needs finite rows [n, columns].")
    return np.quantile(values, np.linspace(0.0, 1.0, _bins(bins) + 1), axis=0).T


def _bins(bins: Any) -> int:
    number = whole_number(bins, "The number of parts")
    if number > MOST_BINS:
        raise InputError(f"A column is cut into {MOST_BINS} parts at most, got {number}.")
    return number


def piecewise(network: Any, knots: Any = None, columns: Sequence[int] | None = None, bins: int = BINS) -> Piecewise:
    """A network that sees each number and its place between quantiles of its column.

    Column j is cut at knots k_j0 ≤ k_j1 ≤ …; beside x_j the inner network gets z_jt, which rises from −1 to 1 between
    two knots and is constant elsewhere. A linear layer on z is a piecewise linear function of x_j: steps and kinks that
    trees find at once are one layer away, where a smooth network would need large weights. Gorishniy, Rubachev and
    Babenko (2022), On embeddings for numerical features in tabular deep learning.

    Args:
        network: any network of rows [n, features].
        knots: [columns, bins + 1], such as `quantile_knots(x)`; None: quantiles of N(0, 1), for standardised rows.
        columns: places of the features that are cut; None: all.
        bins: parts of each column, where there are no knots.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.piecewise(credo.networks.mlp([8]), [[0.0, 1.0, 3.0]], [0])
        >>> network.pieces(jnp.array([[0.5, 9.0], [2.0, 9.0]])).tolist()
        [[0.5, 9.0, 0.0, -1.0], [2.0, 9.0, 1.0, 0.0]]
    """
    places = None if columns is None else tuple(whole_number(column, "The place of a column", 0) for column in columns)
    if places is not None and len(set(places)) < len(places):
        raise InputError("piecewise needs columns at different places.")
    if knots is None:
        return Piecewise(network, None, places, _bins(bins))
    cuts = np.asarray(knots, np.float32)
    if cuts.ndim != 2 or cuts.shape[1] < 2 or not np.isfinite(cuts).all() or (np.diff(cuts) < 0).any():
        raise InputError("piecewise needs finite knots [columns, parts + 1], each row of which does not fall.")
    if places is not None and len(places) != len(cuts):
        raise InputError(f"There are {len(places)} columns and knots of {len(cuts)}.")
    return Piecewise(network, cuts, places, _bins(cuts.shape[1] - 1))


def piecewise_mlp(widths: Sequence[int] = (50,), activation: str = "relu", bins: int = BINS) -> Piecewise:
    """A perceptron on numbers and their places between quantiles; a table gives it the quantiles of its columns.

    Args:
        widths: units of the hidden layers; none is an additive model of piecewise linear functions.
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        bins: parts of each column.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network, rows = credo.networks.piecewise_mlp([8]), jnp.ones((5, 2))
        >>> network.init(jax.random.key(0), rows, 1).params["hidden_0"]["kernel"].shape
        (8, 18)
    """
    return piecewise(mlp(widths, activation), bins=bins)
