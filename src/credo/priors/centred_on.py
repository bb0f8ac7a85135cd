"""The informative prior: normal around weights of the user."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.network import ParamInfo
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.priors.by_path import first_match
from credo.priors.checks import check_weights, positive, weights_of
from credo.priors.elementwise import Elementwise, ElementwisePrior
from credo.priors.normal import NormalDensity

WEIGHTS = "The weights given to centred_on"


@struct
class CentredOn(ElementwisePrior):
    """θ ~ N(centre, scale²), the scale given by the first of `globs` that matches."""

    centre: PyTree = leaf()
    scales: tuple[Any, ...] = leaf()
    globs: tuple[str, ...] = ("*",)

    def density(self, info: ParamInfo) -> NormalDensity:
        """Normal around the given array."""
        arrays = by_paths(self.centre)
        check_weights(info, arrays, WEIGHTS, part=True)
        return NormalDensity(arrays[info.path], self.scales[first_match(info.path, self.globs, "centred_on")])

    def bind(self, info: PyTree, params: PyTree) -> Elementwise:
        """The normal around the given weights, once their paths and shapes agree with the network's."""
        check_weights(info, by_paths(self.centre), WEIGHTS)
        return self.bind_part(info, params)


def centred_on(params: PyTree, scale: float | Mapping[str, float] = 1.0) -> CentredOn:
    """Informative prior N(given weights, scale²), for example around pre-trained weights.

    Args:
        params: weights of the same network: a tree of arrays (a model's whole parameters are fine, too).
        scale: how far weights may move, a number or a number for each glob (the first match decides).

    Example:
        >>> import jax.numpy as jnp, credo
        >>> weights = {"output": {"kernel": jnp.ones((1, 3)), "bias": jnp.zeros(1)}}
        >>> credo.priors.centred_on(weights, {"*/bias": 1.0, "*": 0.1}).globs
        ('*/bias', '*')
    """
    centre = jax.tree.map(jnp.asarray, weights_of(params))
    if not jax.tree.leaves(centre):
        raise InputError("centred_on expects a tree of weight arrays, got none.")
    if not isinstance(scale, Mapping):
        return CentredOn(centre, (positive(scale, "scale"),))
    return CentredOn(centre, tuple(positive(s, f'scale of "{g}"') for g, s in scale.items()), tuple(scale))
