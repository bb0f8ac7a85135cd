"""Networks that are a sum of nodes: linear in everything but what the nodes look at."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.typing import PyTree


@dataclasses.dataclass(frozen=True)
class Nodes:
    """How a network's parameters make f(x) = c'u(x) + Σ_j β_j ψ(γ_j'(1, x)), with u(x) made of 1 and x, or of nothing.

    γ is [nodes, 1 + inputs], the constant first. Coefficients (c, β) are [outputs, columns], in the order of `design`:
    the constant, the inputs, the nodes.

    Attributes:
        num: nodes M.
        activation: ψ.
        hidden: layer with the kernel and the bias of the nodes; None where there is no node.
        output: layer with the kernel β.
        bias: layer with the bias of the outputs, or None.
        linear: layer whose kernel takes the inputs to the outputs, or None.
    """

    num: int
    activation: Callable[[jax.Array], jax.Array]
    hidden: str | None
    output: str | None
    bias: str | None
    linear: str | None

    def split(self, params: PyTree) -> tuple[jax.Array, jax.Array]:
        """(γ [nodes, 1 + inputs], coefficients [outputs, columns]) of the network's parameters."""
        parts = [] if self.bias is None else [params[self.bias]["bias"][:, None]]
        parts += [] if self.linear is None else [params[self.linear]["kernel"]]
        if self.output is None or self.hidden is None:
            inputs = parts[-1].shape[1]
            return jnp.zeros((0, 1 + inputs), parts[-1].dtype), jnp.concatenate(parts, axis=1)
        hidden = params[self.hidden]
        coefs = jnp.concatenate([*parts, params[self.output]["kernel"]], axis=1)
        return jnp.concatenate([hidden["bias"][:, None], hidden["kernel"]], axis=1), coefs

    def join(self, gamma: jax.Array, coefs: jax.Array) -> PyTree:
        """The network's parameters: the inverse of `split`."""
        params: dict[str, dict[str, jax.Array]] = {}
        at = 0
        if self.bias is not None:
            params.setdefault(self.bias, {})["bias"] = coefs[:, 0]
            at = 1
        if self.linear is not None:
            inputs = gamma.shape[1] - 1
            params.setdefault(self.linear, {})["kernel"] = coefs[:, at : at + inputs]
            at += inputs
        if self.hidden is not None and self.output is not None:
            params[self.hidden] = {"kernel": gamma[:, 1:], "bias": gamma[:, 0]}
            params.setdefault(self.output, {})["kernel"] = coefs[:, at:]
        return params

    def fixed(self, inputs: jax.Array) -> jax.Array:
        """u(x) [n, q] for inputs with a leading 1 [n, 1 + inputs]."""
        if self.bias is None:
            return inputs[:, 1:] if self.linear is not None else inputs[:, :0]
        return inputs if self.linear is not None else inputs[:, :1]

    def columns(self, inputs: jax.Array, gamma: jax.Array) -> jax.Array:
        """ψ(γ_j'(1, x)) [n, nodes] for inputs with a leading 1."""
        return self.activation(inputs @ gamma.T)

    def design(self, inputs: jax.Array, gamma: jax.Array) -> jax.Array:
        """Z [n, columns], so that f = Z coefs'."""
        return jnp.concatenate([self.fixed(inputs), self.columns(inputs, gamma)], axis=1)


def with_constant(inputs: jax.Array, dtype: Any) -> jax.Array:
    """(1, x) [n, 1 + inputs]."""
    inputs = inputs.reshape(inputs.shape[0], -1).astype(dtype)
    return jnp.concatenate([jnp.ones((inputs.shape[0], 1), dtype), inputs], axis=1)
