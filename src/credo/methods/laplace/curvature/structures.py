"""Which structure the curvature has: the choice, its first sums, and which weights share a scale."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Select, by_paths
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.methods.laplace.curvature.dense_block import DenseBlockSums
from credo.methods.laplace.curvature.diagonal import DiagonalSums
from credo.methods.laplace.curvature.evidence import Groups
from credo.methods.laplace.curvature.full import FullSums
from credo.methods.laplace.curvature.kronecker import KroneckerSums
from credo.methods.laplace.curvature.low_rank import LowRankSums
from credo.methods.laplace.curvature.paths import Arrays
from credo.methods.laplace.curvature.prior import one_scale
from credo.methods.laplace.curvature.taps import Taps, find_taps, output_layer, require_all

STRUCTURES = ("auto", "full", "kfac", "diagonal", "last_layer", "low_rank")
FULL_SIZE = 2000  # parameters up to which "auto" takes the whole matrix
FULL_LIMIT = 20_000  # beyond this the whole matrix takes gigabytes


def choose(structure: str, model: Model, variables: Variables, taps: Taps) -> str:
    """The structure that "auto" stands for: the whole matrix up to 2,000 weights; beyond that Kronecker factors where
    all weights are in dense layers with one prior scale each, else the diagonal."""
    size = sum(x.size for x in by_paths(variables.params["network"]).values())
    if structure == "full":
        _check_size(size, "all")
    if structure != "auto":
        return structure
    if size <= FULL_SIZE:
        return "full"
    return "kfac" if not taps.problems and one_scale(model, variables) else "diagonal"


def _check_size(size: int, whose: str) -> None:
    if size > FULL_LIMIT:
        raise Refusal(
            f'The whole matrix of {whose} {size:,} weights has {size**2:.1e} numbers: take structure="kfac", '
            '"low_rank" or "diagonal".'
        )


def first_sums(
    key: jax.Array, structure: str, model: Model, variables: Variables, inputs: PyTree, *,
    exact: bool = False, rank: int = 20, select: Select | None = None,
) -> tuple[str, Any, Taps]:  # fmt: skip
    """The chosen structure, its sums before any data, and the network's taps.

    Args:
        key: for the first directions of "low_rank".
        structure: one of `STRUCTURES`.
        model, variables, inputs: where the curvature is computed.
        exact: the Hessian in place of the GGN ("full" and "low_rank").
        rank: of "low_rank".
        select: globs that the last layer's kernel must match ("last_layer").
    """
    taps = find_taps(model, variables, inputs)
    chosen = choose(structure, model, variables, taps)
    values = by_paths(variables.params["network"])
    dtype = jnp.result_type(float)
    sums: Any
    if chosen == "full":
        sums = FullSums.zeros(values, dtype, exact)
    elif chosen == "kfac":
        sums = KroneckerSums.zeros(values, dtype, require_all(taps, 'structure="kfac"'))
    elif chosen == "diagonal":
        sums = DiagonalSums.zeros(values, dtype, None if taps.problems else taps.layers)
    elif chosen == "last_layer":
        layer = output_layer(taps, select)
        _check_size(layer.join(values).size, "the last layer's")
        sums = DenseBlockSums.zeros(values, dtype, layer)
    else:
        sums = LowRankSums.start(key, values, dtype, rank, exact)
    return chosen, sums, taps


def spread_paths(structure: str, values: Arrays, taps: Taps) -> tuple[str, ...]:
    """The weights that get a spread."""
    if structure == "last_layer" and taps.last is not None:
        return taps.last.paths
    return tuple(values)


def layer_groups(paths: tuple[str, ...], taps: Taps) -> Groups:
    """Paths by layer: those of a dense layer together, others by the folder that they lie in."""
    groups = [tuple(p for p in layer.paths if p in paths) for layer in taps.layers]
    rest: dict[str, tuple[str, ...]] = {}
    for path in paths:
        if not any(path in group for group in groups):
            folder = path.rpartition("/")[0] or path
            rest[folder] = (*rest.get(folder, ()), path)
    return tuple(group for group in [*groups, *rest.values()] if group)
