"""The normal prior whose scale follows the width of the layer."""

from typing import Any

from credo.core.network import ParamInfo
from credo.core.tree import leaf, struct
from credo.errors import Refusal
from credo.priors.checks import positive
from credo.priors.elementwise import ElementwisePrior
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
            raise Refusal(
                f"fan_in_normal has no scale for '{info.path}' (kind \"{info.kind}\"), which has no fan-in; "
                f'give it a prior of its own: by_path({{"{info.path}": normal(1.0), "*": fan_in_normal()}}).'
            )
        return NormalDensity(0.0, self.scale / info.fan_in**0.5)


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
