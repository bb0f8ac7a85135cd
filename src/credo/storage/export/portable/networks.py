"""Networks at all draws of their weights at once: perceptrons and shallow networks, as functions of NumPy arrays.

A number comes with its tangent: the direction of each draw where draws are linear around a centre, else None.
"""

from typing import Any

import numpy as np

from credo.core.numpy_special import NUMPY

Pair = tuple[np.ndarray, Any]  # a value, and its tangent or None


def activate(name: str, hidden: Pair) -> Pair:
    """ψ of a value, and ψ' times its tangent."""
    z, tangent = hidden
    if name == "relu":
        value, slope = np.maximum(z, 0.0), np.heaviside(z, 0.5)
    elif name == "tanh":
        value = np.tanh(z)
        slope = 1.0 - value**2
    elif name == "erf":
        value, slope = NUMPY.erf(z), 2.0 / np.sqrt(np.pi) * np.exp(-(z**2))
    elif name == "silu":
        s = NUMPY.expit(z)
        value, slope = z * s, s * (1.0 + z * (1.0 - s))
    elif name == "logistic":
        value = NUMPY.expit(z)
        slope = value * (1.0 - value)
    else:
        raise ValueError(f"The activation {name!r} is not known here; export again with this version.")
    return value, None if tangent is None else slope * tangent


def product(kernel: Pair, hidden: Pair) -> Pair:
    """W h, and dW h + W dh."""
    value = kernel[0] @ hidden[0]
    parts = [] if kernel[1] is None else [kernel[1] @ hidden[0]]
    parts += [] if hidden[1] is None else [kernel[0] @ hidden[1]]
    return value, sum(parts) if parts else None


def add(one: Pair, other: Pair) -> Pair:
    """The sum of two numbers with tangents."""
    tangents = [x for x in (one[1], other[1]) if x is not None]
    return one[0] + other[0], sum(tangents) if tangents else None


class Weights:
    """Draws of a network's arrays by path, and their deviations from the centre where they are linear."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays
        self.values = {k.removeprefix("network/"): v for k, v in arrays.items() if k.startswith("network/")}
        self.moves = {k.removeprefix("deviation/"): v for k, v in arrays.items() if k.startswith("deviation/")}

    def get(self, path: str) -> Pair:
        """The array at a path: [draw, …], or [member, 1, …] with a tangent [member, draw, …]."""
        value = self.values[path].astype(float)
        if not self.moves:
            return value, None
        return value[:, None], self.moves[path].astype(float) if path in self.moves else None

    def dense(self, layer: str, hidden: Pair) -> Pair:
        """W h + b, without b where the layer has none."""
        outputs = product(self.get(f"{layer}/kernel"), hidden)
        if f"{layer}/bias" not in self.values:
            return outputs
        value, tangent = self.get(f"{layer}/bias")
        return add(outputs, (value[..., None], None if tangent is None else tangent[..., None]))

    @property
    def widest(self) -> int:
        """The longest row of an array."""
        return max(x.shape[-1] for name, x in self.arrays.items() if "network/" in name)

    def part(self, index: int) -> "Weights":
        """Those of one part of a stack."""
        return Weights(of_part(self.arrays, index))


def of_part(arrays: dict[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    """The arrays of one part of a stack, by their names in that part."""
    prefix = f"{index}/"
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def network_outputs(network: dict[str, Any], weights: Weights, inputs: np.ndarray) -> np.ndarray:
    """Outputs [draw, n, out] at inputs [n, features]; those of a stack's parts one after another, padded with zeros."""
    if network["name"] == "stack":
        parts = [network_outputs(part, weights.part(c), inputs) for c, part in enumerate(network["parts"])]
        width = max(x.shape[-1] for x in parts)
        return np.concatenate([np.pad(x, ((0, 0), (0, 0), (0, width - x.shape[-1]))) for x in parts])
    if "pieces" in network:
        inputs = pieces(network["pieces"], np.asarray(inputs, float))
    hidden: Pair = (np.asarray(inputs, float).T, None)
    if "codes" in network:
        hidden = embedded(network["codes"], weights, np.asarray(inputs))
    if network["name"] == "shallow":
        outputs = _shallow(network, weights, hidden)
    elif network["name"] == "residual_mlp":
        outputs = _residual(network, weights, hidden)
    else:
        for layer in network["layers"][:-1]:
            hidden = activate(network["activation"], weights.dense(layer, hidden))
        outputs = weights.dense(network["layers"][-1], hidden)
    value, tangent = outputs
    outputs_by_draw = value if tangent is None else value + tangent
    return np.swapaxes(outputs_by_draw.reshape(-1, *outputs_by_draw.shape[-2:]), -1, -2)


def embedded(codes: list[list[int]], weights: Weights, inputs: np.ndarray) -> Pair:
    """Numbers and the vectors of categories, [draw, features, n]: a row of each column's table for each code."""
    places = [place for place, _ in codes]
    values = [np.delete(inputs, places, 1).T.astype(float)]
    tangents: list[Any] = [None]
    for i, (place, levels) in enumerate(codes):
        rows = np.round(inputs[:, place]).astype(int)
        rows = np.where((rows >= 0) & (rows < levels), rows, levels)
        value, tangent = weights.get(f"embedding_{i}/table")
        values.append(np.swapaxes(value[..., rows, :], -1, -2))
        tangents.append(None if tangent is None else np.swapaxes(tangent[..., rows, :], -1, -2))
    return stacked(values), None if all(t is None for t in tangents) else stacked(
        [np.zeros(v.shape) if t is None else t for v, t in zip(values, tangents)]
    )


def pieces(cuts: dict[str, Any], inputs: np.ndarray) -> np.ndarray:
    """The features, and 2 clip((x − k_t)/(k_t+1 − k_t), 0, 1) − 1 of each cut column; 0 where knots are equal."""
    if not cuts["knots"]:
        return inputs
    numbers = inputs if cuts["columns"] is None else inputs[:, cuts["columns"]]
    knots = np.asarray(cuts["knots"], np.float32).astype(float)
    width = np.diff(knots)
    share = (numbers[:, :, None] - knots[:, :-1]) / np.where(width > 0, width, 1.0)
    z = np.where(width > 0, 2.0 * np.clip(share, 0.0, 1.0) - 1.0, 0.0)
    return np.concatenate([inputs, z.reshape(len(inputs), -1)], 1)


def stacked(parts: list[np.ndarray]) -> np.ndarray:
    """Features one after another along the last axis but one, the axes before it broadcast."""
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in parts], -2)


def _residual(network: dict[str, Any], weights: Weights, inputs: Pair) -> Pair:
    """h + V ψ(U h + a) + b in blocks, between two dense layers."""
    hidden = weights.dense("stem", inputs)
    for i in range(network["depth"]):
        inner = activate(network["activation"], weights.dense(f"block_{i}_in", hidden))
        hidden = add(hidden, weights.dense(f"block_{i}_out", inner))
    return weights.dense("output", hidden)


def _shallow(network: dict[str, Any], weights: Weights, inputs: Pair) -> Pair:
    """Nodes, and beside them nothing, an intercept or a linear part."""
    outputs: Pair | None = None
    if network["nodes"]:
        outputs = weights.dense("output", activate(network["activation"], weights.dense("hidden", inputs)))
    if network["beside"] == "linear":
        linear = weights.dense("linear", inputs)
        outputs = linear if outputs is None else add(outputs, linear)
    elif network["beside"] == "intercept" and outputs is not None:
        value, tangent = weights.get("linear/bias")
        outputs = add(outputs, (value[..., None], None if tangent is None else tangent[..., None]))
    assert outputs is not None
    return outputs
