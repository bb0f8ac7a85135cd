"""One hidden layer of nodes, with or without a linear part beside it."""

import jax
import jax.numpy as jnp

from credo.core.checks import one_of, whole_number
from credo.core.network import ParamInfo, Variables
from credo.core.nodes import Nodes, with_constant
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.networks.mlp import ACTIVATIONS, MOST_WIDTH

PARTS = ("none", "intercept", "linear")


@struct
class Shallow:
    """f(x) = a_0 + a'x + Σ_j β_j ψ(γ_j0 + γ_j'x), of which a_0 and a may be left out; see `shallow`."""

    num_nodes: int
    beside: str = "linear"
    activation: str = "logistic"

    def nodes(self) -> Nodes:
        """How the parameters make a sum of nodes."""
        bias = None if self.beside == "none" else "linear"
        linear = "linear" if self.beside == "linear" else None
        return Nodes(self.num_nodes, ACTIVATIONS[self.activation], "hidden", "output", bias, linear)

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """Nodes N(0, 1), their coefficients N(0, 1/M), the linear part 0."""
        key_hidden, key_output = jax.random.split(key)
        width = inputs.shape[-1]
        gamma = jax.random.normal(key_hidden, (self.num_nodes, 1 + width))
        beta = jax.random.normal(key_output, (num_outputs, self.num_nodes)) / max(self.num_nodes, 1) ** 0.5
        fixed = {"none": 0, "intercept": 1, "linear": 1 + width}[self.beside]
        return Variables(self.nodes().join(gamma, jnp.concatenate([jnp.zeros((num_outputs, fixed)), beta], 1)), {})

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs]."""
        nodes = self.nodes()
        gamma, coefs = nodes.split(variables.params)
        return nodes.design(with_constant(inputs, gamma.dtype), gamma) @ coefs.T, variables.state

    def info(self, params: PyTree) -> PyTree:
        """Kernels are [out, in]; a bias has its layer's fan-in."""

        def one(layer: str, kind: str, array: jax.Array) -> ParamInfo:
            kernel = params[layer].get("kernel")
            outputs, inputs = (array.shape[0], None) if kernel is None else kernel.shape
            axis = 1 if kind == "kernel" else None
            return ParamInfo(f"{layer}/{kind}", kind, inputs, outputs, tuple(array.shape), axis)

        return {name: {kind: one(name, kind, x) for kind, x in layer.items()} for name, layer in params.items()}


def shallow(num_nodes: int, beside: str = "linear", activation: str = "logistic") -> Shallow:
    """One hidden layer, the network of `gibbs` and `reversible_jump`.

    Args:
        num_nodes: hidden nodes; for `reversible_jump`, the most there can be.
        beside: "linear" adds a_0 + a'x to the nodes, "intercept" adds a_0, "none" nothing.
        activation: ψ: "logistic", "tanh", "erf", "relu" or "silu".

    Example:
        >>> import credo
        >>> credo.networks.shallow(5).beside
        'linear'
    """
    num_nodes = whole_number(num_nodes, "The number of nodes", 0, MOST_WIDTH)
    if beside not in PARTS:
        raise InputError(f"beside must be one of {', '.join(PARTS)}, got {beside!r}.")
    if num_nodes == 0 and beside != "linear":
        raise InputError('Without nodes there is nothing that looks at the inputs: take beside="linear".')
    one_of(activation, ACTIVATIONS, "activation")
    return Shallow(int(num_nodes), beside, activation)
