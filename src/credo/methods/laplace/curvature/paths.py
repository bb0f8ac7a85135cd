"""Weights by their string paths, and the network as a function of some of them."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import with_paths
from credo.core.typing import PyTree

Arrays = dict[str, jax.Array]


def with_weights(variables: Variables, values: Mapping[str, Any]) -> Variables:
    """The variables with the network's weights at these paths replaced."""
    network = with_paths(variables.params["network"], values)
    return Variables(variables.params | {"network": network}, variables.state)


def function(model: Model, variables: Variables, inputs: PyTree) -> Callable[[Arrays], jax.Array]:
    """f_θ(x) [n, out] as a function of some weights, the others as they are in `variables`."""

    def outputs(values: Arrays) -> jax.Array:
        return model.outputs(with_weights(variables, values), inputs)[0]

    return outputs


def flat(values: Mapping[str, jax.Array], lead: int = 0) -> jax.Array:
    """Arrays side by side in one vector, the first `lead` axes kept."""
    return jnp.concatenate([x.reshape(*x.shape[:lead], -1) for x in values.values()], axis=-1)


def unflat(vector: jax.Array, like: Mapping[str, Any]) -> Arrays:
    """The inverse of `flat` for one vector; `like` has arrays, or their shapes."""
    arrays, start = {}, 0
    for path, x in like.items():
        shape = x if isinstance(x, tuple) else x.shape
        length = math.prod(shape)
        arrays[path] = vector[start : start + length].reshape(shape)
        start += length
    return arrays
