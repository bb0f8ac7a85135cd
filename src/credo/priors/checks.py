"""What the builders of priors check."""

from collections.abc import Mapping
from typing import Any

import jax

from credo.core.checks import positive as positive
from credo.core.network import ParamInfo, is_info
from credo.core.typing import PyTree
from credo.errors import InputError


def weights_of(params: PyTree) -> PyTree:
    """The network's weights, out of a model's whole parameters or as they are."""
    whole = isinstance(params, Mapping) and "network" in params
    return params["network"] if whole and set(params) <= {"network", "likelihood", "prior"} else params


def same_shape(info: ParamInfo, array: Any, name: str) -> None:
    """Raise a sentence where an array cannot stand for the parameter that `info` describes."""
    if tuple(array.shape) != info.shape:
        raise InputError(
            f"{name} has shape {tuple(array.shape)} at '{info.path}', the network has {info.shape} there; "
            "give weights of the same network."
        )


def same_paths(info: PyTree, arrays: Mapping[str, Any], name: str) -> None:
    """Raise a sentence where the paths or shapes of `arrays` and of the network differ."""
    infos = {i.path: i for i in jax.tree.leaves(info, is_leaf=is_info)}
    missing, extra = sorted(set(infos) - set(arrays)), sorted(set(arrays) - set(infos))
    if missing or extra:
        lacks = f" lacks '{missing[0]}'" if missing else ""
        has = f" has '{extra[0]}', which the network lacks" if extra else ""
        raise InputError(f"{name}{lacks}{' and' if lacks and has else ''}{has}; give weights of the same network.")
    for path, i in infos.items():
        same_shape(i, arrays[path], name)
