"""Arrays of a network selected by path, for marginals and for weights that are replaced."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.tree import Select, by_paths, matches, path_string
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal

Arrays = Mapping[str, Any]


def select_arrays(tree: PyTree, select: Select) -> dict[str, Any]:
    """The network's arrays that the globs match, as `{"network": {path: array}}`."""
    arrays = by_paths(tree["network"])
    selection = {path: x for path, x in arrays.items() if matches(path, select)}
    if not selection:
        raise InputError(f"No weight's path matches {select!r}; for example '{next(iter(arrays))}' is one.")
    return {"network": selection}


def replace_arrays(tree: PyTree, values: Arrays) -> PyTree:
    """The tree (leading axis: member) with the network's arrays at these paths replaced, the same for every member."""

    def one(path: Any, x: Any) -> Any:
        value = values.get(path_string(path))
        if value is None:
            return x
        return np.broadcast_to(np.asarray(value, x.dtype), x.shape)  # on the host: nothing to compile

    return dict(tree) | {"network": jax.tree_util.tree_map_with_path(one, tree["network"])}


def lower_factor(rows: jax.Array) -> jax.Array:
    """L with LL' = AA' for rows A [k, P], lower triangular with a positive diagonal; nothing is squared."""
    lower = jnp.swapaxes(jnp.linalg.qr(jnp.swapaxes(rows, -1, -2), mode="r"), -1, -2)
    signs = jnp.sign(jnp.diagonal(lower, axis1=-2, axis2=-1))
    return lower * jnp.where(signs == 0, 1, signs)[..., None, :]


def one_scale(std: Any, path: str) -> Any:
    """The one standard deviation of an array, which Kronecker factors need."""
    array = np.asarray(std)
    if np.ptp(array) > 1e-6 * abs(array.ravel()[0]):
        raise Refusal(
            f"Kronecker factors can only take up independent weights of one scale, and those of '{path}' have several: "
            "take a prior with one scale for each array."
        )
    return array.ravel()[0]
