"""The normal prior whose scale follows the width of the layer."""

from collections.abc import Sequence
from typing import Any

import jax

from credo.core.network import ParamInfo, is_info
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.priors.checks import positive
from credo.priors.elementwise import Elementwise, ElementwisePrior
from credo.priors.normal import NormalDensity


@struct
class FanInNormal(ElementwisePrior):
    """W ~ N(0, scale²/fan_in), b ~ N(0, bias_scale²); bias_scale is scale where it is None."""

    scale: Any = leaf(default=1.0)
    bias_scale: Any = leaf(default=None)

    def density(self, info: ParamInfo) -> NormalDensity:
        """Normal, by the kind and fan-in of the array."""
        if info.kind == "bias":
            return NormalDensity(0.0, self.scale if self.bias_scale is None else self.bias_scale)
        if info.fan_in is None:
            raise _refusal([info])
        return NormalDensity(0.0, self.scale / info.fan_in**0.5)

    def bind_part(self, info: PyTree, params: PyTree) -> Elementwise:
        """The product over all arrays, or a refusal that names every array without a fan-in."""
        without_fan_in = [i for i in jax.tree.leaves(info, is_leaf=is_info) if i.kind != "bias" and i.fan_in is None]
        if without_fan_in:
            raise _refusal(without_fan_in)
        return super().bind_part(info, params)


def _refusal(without_fan_in: Sequence[ParamInfo]) -> Refusal:
    """What lacks a fan-in, with priors that fit: a scale multiplies what it sees, so it stays near its start, 1."""
    centred = "centred_on(start, 0.1)"
    entries = ", ".join(f'"{i.path}": {centred if i.kind == "scale" else "normal(1.0)"}' for i in without_fan_in)
    start = ", with start = network.init(key, inputs, outputs).params" if centred in entries else ""
    names = ", ".join(f"'{i.path}' (kind \"{i.kind}\")" for i in without_fan_in)
    return Refusal(
        f"fan_in_normal has no scale for {names}, which have no fan-in: give them priors of their own, "
        f'by_path({{{entries}, "*": fan_in_normal()}}){start}.'
    )


def fan_in_normal(scale: float = 1.0, *, bias_scale: float | None = None) -> FanInNormal:
    """Normal prior N(0, scale²/fan_in) on weights: outputs keep their size however wide the layers are.

    Reference: R. M. Neal, Bayesian Learning for Neural Networks, 1996.

    Args:
        scale: standard deviation of a layer's output for inputs of size 1.
        bias_scale: standard deviation of biases; None: the same as `scale`.

    Example:
        >>> import credo
        >>> credo.priors.fan_in_normal(2.0).scale
        2.0
    """
    bias = None if bias_scale is None else positive(bias_scale, "bias_scale")
    return FanInNormal(positive(scale, "scale"), bias)
