"""What the builders of priors check."""

from collections.abc import Mapping
from typing import Any

import jax

from credo.core.checks import check_shapes
from credo.core.checks import positive as positive
from credo.core.network import is_info
from credo.core.typing import PyTree


def weights_of(params: PyTree) -> PyTree:
    """The network's weights, from all parameters of a model or as they are."""
    has_network = isinstance(params, Mapping) and "network" in params
    return params["network"] if has_network and set(params) <= {"network", "likelihood", "prior"} else params


def check_weights(info: PyTree, arrays: Mapping[str, Any], whose: str, part: bool = False) -> None:
    """Raise where weights by path are not those of the network; `part` allows others beside them."""
    infos = {i.path: i.shape for i in jax.tree.leaves(info, is_leaf=is_info)}
    shapes = {path: tuple(x.shape) for path, x in arrays.items() if path in infos or not part}
    check_shapes(shapes, infos, whose)
