"""Columns of categories inside a network: a learned vector for every level, beside the numbers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import (
    MaskedNetwork,
    NetworkWrapper,
    require,
)
from credo.core.checks import whole_number
from credo.core.network import ParamInfo, Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError

MOST_LEVELS = 2**24 - 1  # whole numbers that single precision holds exactly
MOST_INDICATORS = 2_000  # levels of a table that curvature sees as a dense layer of indicators
WIDTH = 3  # of vectors: an effect of the level, and how it changes those of two other features
SPREAD = 0.1  # standard deviation of the vectors at the start


@struct
class Embedded(NetworkWrapper):
    """f(x) = network(numbers of x, e_{c₁}, e_{c₂}, …) with the row e_c of a table for the code c: see `embedded`.

    Parameters are the network's own beside `embedding_i/table` [levels + 1, width].
    """

    network: Any = leaf()
    columns: tuple[tuple[int, int], ...] = ()
    widths: tuple[int, ...] = ()

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """The network's start, and vectors N(0, 0.1²): levels begin alike."""
        key, *keys = jax.random.split(key, 1 + len(self.columns))
        tables = {}
        for i, (k, (_, levels), width) in enumerate(zip(keys, self.columns, self.widths)):
            tables[name_of(i)] = {"table": SPREAD * jax.random.normal(k, (levels + 1, width), "float32")}
        inner = self.network.init(key, self.embed(tables, inputs), num_outputs)
        if not isinstance(inner.params, dict) or tables.keys() & inner.params.keys():
            raise InputError("embedded takes a network whose parameters are a dict without tables of its own.")
        return Variables({**inner.params, **tables}, inner.state)

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """The network's outputs for the numbers and the vectors of the levels."""
        tables, params = self._split(variables.params)
        return self.network.apply(Variables(params, variables.state), self.embed(tables, inputs), key=key, train=train)

    def apply_masked(self, variables: Variables, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the network's masks."""
        tables, params = self._split(variables.params)
        masked = require(self.network, MaskedNetwork)
        return masked.apply_masked(Variables(params, variables.state), self.embed(tables, inputs), key)

    def apply_local(self, mean: PyTree, std: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with a vector for every row from its level's own Gaussian, and the network's own draws on it."""
        (tables, m), (spread, s) = self._split(mean), self._split(std)
        key, *keys = jax.random.split(key, 1 + len(self.columns))
        vectors = {}
        for i, k in enumerate(keys):
            codes = self.codes(inputs, i)
            centre, width = tables[name_of(i)]["table"][codes], spread[name_of(i)]["table"][codes]
            vectors[i] = centre + width * jax.random.normal(k, centre.shape, centre.dtype)
        return self.network.apply_local(m, s, self._beside(inputs, vectors), key)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with other signs of the perturbation for every row: those of a vector's entries, then the
        network's."""
        (tables, m), (moved_tables, d) = self._split(mean), self._split(moved)
        key, *keys = jax.random.split(key, 1 + len(self.columns))
        vectors = {}
        for i, k in enumerate(keys):
            codes = self.codes(inputs, i)
            shift = moved_tables[name_of(i)]["table"][codes]
            vectors[i] = tables[name_of(i)]["table"][codes] + jax.random.rademacher(k, shift.shape, shift.dtype) * shift
        return self.network.apply_flipout(m, d, self._beside(inputs, vectors), key)

    def embed(self, tables: PyTree, inputs: jax.Array) -> jax.Array:
        """The inputs of the inner network [n, numbers + Σ widths]."""
        return self._beside(
            inputs, {i: tables[name_of(i)]["table"][self.codes(inputs, i)] for i in range(len(self.columns))}
        )

    def dense_layers(self) -> list[tuple[str, str | None, bool]]:
        """Those of the network after the tables: a look-up is W'a for the indicator a of the level.

        A table of very many levels is none of them: its indicators would not fit.
        """
        return [*((path, None, False) for path, _ in self._tapped()), *self.network.dense_layers()]

    def apply_tapped(self, params: PyTree, inputs: jax.Array, shifts: PyTree) -> tuple[jax.Array, PyTree]:
        """Outputs with `shifts` added to vectors and before each activation, and the inputs of every layer."""
        tables, network_params = self._split(params)
        tapped = {path: i for path, i in self._tapped() if path in shifts}
        vectors = {i: tables[name_of(i)]["table"][self.codes(inputs, i)] for i in range(len(self.columns))}
        vectors |= {i: vectors[i] + shifts[path] for path, i in tapped.items()}
        inner = {path: x for path, x in shifts.items() if path not in tapped}
        outputs, layer_inputs = self.network.apply_tapped(network_params, self._beside(inputs, vectors), inner)
        for path, i in tapped.items():
            layer_inputs[path] = jax.nn.one_hot(self.codes(inputs, i), self.columns[i][1] + 1, dtype=outputs.dtype)
        return outputs, {path: layer_inputs[path] for path in shifts}

    def info(self, params: PyTree) -> PyTree:
        """The network's facts, and tables of which one row is looked up: no sum, hence a fan-in of 1."""
        tables, network_params = self._split(params)
        table_infos = {
            name: {"table": ParamInfo(f"{name}/table", "embedding", 1, x["table"].shape[1], tuple(x["table"].shape))}
            for name, x in tables.items()
        }
        return {**self.network.info(network_params), **table_infos}

    def _tapped(self) -> list[tuple[str, int]]:
        """Path and index of the tables with few enough levels for indicators."""
        return [(f"{name_of(i)}/table", i) for i, (_, levels) in enumerate(self.columns) if levels < MOST_INDICATORS]

    def _beside(self, inputs: jax.Array, vectors: dict[int, jax.Array]) -> jax.Array:
        """The numbers and then the vectors of every column."""
        return jnp.concatenate([*self._numbers(inputs), *(vectors[i] for i in range(len(self.columns)))], axis=1)

    def codes(self, inputs: jax.Array, column: int) -> jax.Array:
        """The rows of a column's table [n]; codes that are no level get the last one."""
        index, levels = self.columns[column]
        codes = jnp.round(inputs[:, index]).astype(jnp.int32)
        return jnp.where((codes >= 0) & (codes < levels), codes, levels)

    def _numbers(self, inputs: jax.Array) -> list[jax.Array]:
        """The features that are no codes, in runs."""
        ends = [-1, *sorted(index for index, _ in self.columns), inputs.shape[1]]
        return [inputs[:, a + 1 : b] for a, b in pairwise(ends) if b > a + 1]

    def _split(self, params: PyTree) -> tuple[PyTree, PyTree]:
        """The tables, and the network's own parameters."""
        names = {name_of(i) for i in range(len(self.columns))}
        return {k: v for k, v in params.items() if k in names}, {k: v for k, v in params.items() if k not in names}


def name_of(column: int) -> str:
    """The first part of the path of a column's table."""
    return f"embedding_{column}"


def embedded(network: Any, columns: Sequence[tuple[int, int]], widths: Sequence[int] | int = WIDTH) -> Embedded:
    """A network for rows of numbers and codes of categories: every level has a vector, which is learned.

    A feature at a place in `columns` holds a whole number c from 0 to levels − 1. The inner network sees the row e_c of
    the column's table in its place, after all other features. Codes beyond have the table's last row. No row of the
    data has it, so its posterior is its prior: the answer for a level that was never seen. A prior N(0, τ²) on tables
    pools levels partially: the fewer rows a level has, the nearer it stays to the common mean.
    Guo and Berkhahn (2016), Entity embeddings of categorical variables.

    Args:
        network: any network of rows [n, features].
        columns: place and number of levels of each feature that is a code.
        widths: length of the vectors, for all columns or each.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.embedded(credo.networks.mlp([8]), [(1, 3)], 2)
        >>> rows = jnp.array([[0.5, 0.0], [0.5, 2.0], [0.5, 7.0]])
        >>> variables = network.init(jax.random.key(0), rows, 1)
        >>> variables.params["embedding_0"]["table"].shape, variables.params["hidden_0"]["kernel"].shape
        ((4, 2), (8, 3))
    """
    columns = tuple(
        (whole_number(index, "The place of a code", 0), whole_number(levels, "Levels")) for index, levels in columns
    )
    if not columns or len({index for index, _ in columns}) < len(columns):
        raise InputError("embedded needs columns at different places.")
    if any(levels > MOST_LEVELS for _, levels in columns):
        raise InputError(f"A column has at most {MOST_LEVELS:,} levels: codes beyond have no single precision.")
    width_of_column: list[int] = [widths] * len(columns) if isinstance(widths, int) else list(widths)
    if len(width_of_column) != len(columns):
        raise InputError(f"There are {len(columns)} columns and {len(width_of_column)} widths.")
    return Embedded(network, columns, tuple(whole_number(width, "The width of a vector") for width in width_of_column))
