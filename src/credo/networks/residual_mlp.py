"""A perceptron with shortcuts: each block adds to its input."""

from typing import Any

import jax

from credo.core.checks import whole_number
from credo.core.tree import struct
from credo.networks.layered import Layered, check_options
from credo.networks.mlp import ACTIVATIONS, check_widths
from credo.networks.passes import Plain


@struct
class ResidualMLP(Layered):
    """h ← h + V_l ψ(U_l h + a_l) + b_l for l = 1 … depth on h = W x + b, and a dense layer on its end; see
    `residual_mlp`."""

    width: int = 50
    depth: int = 2
    activation: str = "relu"
    dropout: float = 0.0
    dtype: str = "float32"

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return (self.dropout,) * self.depth if self.dropout else ()

    def _hidden(self, inputs: Any) -> jax.Array:
        return inputs.reshape(-1, inputs.shape[-1]).T

    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array:
        hidden = self._dense(run, "stem", hidden, self.width)
        for i in range(self.depth):
            inner = self._dense(run, f"block_{i}_in", hidden, self.width)
            hidden = hidden + self._dense(
                run, f"block_{i}_out", run.mask(ACTIVATIONS[self.activation](inner)), self.width
            )
        return self._dense(run, "output", hidden)


def residual_mlp(width: int = 50, depth: int = 2, activation: str = "relu", dropout: float = 0.0) -> ResidualMLP:
    """A multilayer perceptron with residual blocks, which stays trainable however deep it is.

    He et al. (2016), Deep residual learning for image recognition, on rows of numbers (Gorishniy et al., 2021).

    Args:
        width: units of every layer.
        depth: how many blocks there are.
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        dropout: share of the units inside a block that are masked, row by row, in training.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.residual_mlp(16, depth=3)
        >>> rows = jnp.ones((5, 4))
        >>> network.apply(network.init(jax.random.key(0), rows, 1), rows)[0].shape
        (5, 1)
    """
    check_options(activation, dropout, {})
    width, depth = whole_number(width, "width"), whole_number(depth, "depth")
    check_widths([width, width])
    return ResidualMLP(width, depth, activation, float(dropout))
