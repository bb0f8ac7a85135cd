"""Fan-in, fan-out and input axis of Flax layers: NNX and Linen lay their kernels out in the same way."""

import math
from typing import Any

from credo.adapters.plain import OTHER, Fact

Rule = tuple[Any, ...]
Shape = tuple[int, ...]
KINDS = {"kernel": "kernel", "bias": "bias", "scale": "scale", "embedding": "embedding"}
NORMS = ("BatchNorm", "LayerNorm", "RMSNorm", "GroupNorm", "InstanceNorm", "WeightNorm")


def rule_of(library: Any, layer: Any) -> Rule | None:
    """What is needed to read a layer's kernel shape; `library` is flax.nnx or flax.linen."""

    def is_a(*names: str) -> bool:
        return isinstance(layer, tuple(getattr(library, n) for n in names if hasattr(library, n)))

    if is_a("DenseGeneral", "LinearGeneral"):
        axes = getattr(layer, "in_features", None) or layer.axis
        outs = getattr(layer, "out_features", None) or layer.features
        return ("dense", _count(axes), _count(outs))
    if is_a("Conv", "ConvTranspose"):
        groups = getattr(layer, "feature_group_count", 1)
        return ("conv", _count(layer.kernel_size), groups, getattr(layer, "transpose_kernel", False))
    if is_a("Einsum"):
        return ("einsum", layer.einsum_str.replace(" ", "")) if layer.einsum_str else None
    if is_a("Dropout"):
        return ("dropout", layer.rate)
    # The parameters of an optimised LSTM live in a helper that Linen does not export.
    if is_a("Dense", "Linear", "ConvLocal") or type(layer).__name__ == "DenseParams":
        return ("dense", 1, 1)
    if is_a("Embed"):
        return ("embed",)
    return ("norm",) if is_a(*NORMS) else None


def fact(rule: Rule | None, name: str, kernel: Shape | None) -> Fact:
    """Kind, fans and input axis of a layer's parameter; `kernel` is the shape of the layer's main array."""
    kind = KINDS.get(name.rpartition("/")[2], "other")
    if rule is None or kind == "other":
        return OTHER
    if rule[0] == "norm" or kernel is None:
        return kind, None, None
    fan_in, fan_out = _fans(rule, kernel)
    return (kind, fan_in, fan_out, _input_axis(rule)) if kind == "kernel" else (kind, fan_in, fan_out)


def _input_axis(rule: Rule) -> int | None:
    """Where the inputs lie, counted from the end; None where they take several axes or groups see only their own."""
    match rule:
        case ("dense", 1, outs):
            return -1 - outs
        case ("conv", _, 1, flipped):
            return -1 if flipped else -2
        case ("einsum", equation):
            letters, outputs = equation.split(",")[1].replace("...", "").split("->")
            summed = [i - len(letters) for i, letter in enumerate(letters) if letter not in outputs]
            return summed[0] if len(summed) == 1 else None
    return None


def _fans(rule: Rule, kernel: Shape) -> tuple[int, int]:
    # Axes are counted from the end: stacked layers (scan, vmap) have more in front.
    match rule:
        case ("dense", ins, outs):
            return math.prod(kernel[-ins - outs : -outs]), math.prod(kernel[-outs:])
        case ("conv", dims, groups, flipped):
            window = math.prod(kernel[-2 - dims : -2])
            fan_in, fan_out = kernel[:-3:-1] if flipped else kernel[-2:]
            return window * fan_in, window * fan_out // groups
        case ("einsum", equation):
            inputs, rest = equation.split(",")
            letters, outputs = rest.replace("...", "").split("->")
            sizes = dict(zip(letters[::-1], kernel[::-1]))
            summed = [n for letter, n in sizes.items() if letter not in outputs]
            produced = [n for letter, n in sizes.items() if letter in outputs and letter not in inputs]
            return math.prod(summed), math.prod(produced)
    return 1, kernel[-1]  # an embedding looks one row up: no sum


def _count(sizes: Any) -> int:
    return 1 if isinstance(sizes, int) else len(tuple(sizes))
