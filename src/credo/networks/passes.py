"""Passes over a network: plain, with drawn pre-activations, with flipout's signs, or to record shapes.

A network is defined once, as calls on a pass; the pass defines what a layer with weights does.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.typing import PyTree

Arrays = dict[str, Any]
Product = Callable[[jax.Array, jax.Array | None, jax.Array], jax.Array]
Shape = tuple[int, ...]
OUTPUTS = 0  # in a kernel's shape: as many as the likelihood needs
TINY = 1e-20  # below this variance a pre-activation is its mean: the root has no derivative at 0


class Plain:
    """Weights as they are. With a key, `mask` puts units to zero at the dropout rate: row by row, or alike for all."""

    def __init__(self, params: PyTree, key: jax.Array | None = None, rate: float = 0.0, rows: bool = True):
        self.params, self.key, self.rate, self.rows = params, key, rate, rows
        self.count = 0

    def linear(self, name: str, hidden: jax.Array, shape: Shape, product: Product, bias: bool = True) -> jax.Array:
        """A layer that is linear in its kernel of this shape, and in its bias."""
        layer = self.params[name]
        return product(layer["kernel"], layer.get("bias"), hidden)

    def vectors(self, name: str, starts: dict[str, float], width: int) -> Arrays:
        """Gains, offsets and thresholds of a layer, a number for each channel, that begin at `starts`."""
        return self.params[name]

    def mask(self, hidden: jax.Array) -> jax.Array:
        """Whole channels [channels, 1, 1, data] or units [units, data] are kept and scaled, or zero."""
        if self.key is None or self.rate == 0:
            return hidden
        between = (1,) * (hidden.ndim - 2)
        shape = (hidden.shape[0], *between, hidden.shape[-1] if self.rows else 1)
        keep = jax.random.bernoulli(self.next_key(), 1 - self.rate, shape)
        return jnp.where(keep, hidden / (1 - self.rate), 0)

    def next_key(self) -> jax.Array:
        """Another key for every call."""
        self.count += 1
        return jax.random.fold_in(self.key, self.count)  # type: ignore[arg-type]


class Local(Plain):
    """Pre-activations drawn from their Gaussians: for W ~ N(M, S²), Wh + b is N(Mh + m_b, S²h² + s_b²).

    In a convolution one is drawn for every position of the map. Positions of one row share the weights, so a draw of
    weights correlates their pre-activations. Here they are independent: each has its exact distribution, jointly they
    are an approximation (Kingma et al., 2015; Molchanov et al., 2017).
    """

    def __init__(self, mean: PyTree, std: PyTree, key: jax.Array):
        super().__init__(mean, key)
        self.std = std

    def linear(self, name: str, hidden: jax.Array, shape: Shape, product: Product, bias: bool = True) -> jax.Array:
        """The mean's product plus noise with the variance that the product of squares has."""
        centre = super().linear(name, hidden, shape, product, bias)
        variances = jax.tree.map(jnp.square, self.std[name])
        variance = product(variances["kernel"], variances.get("bias"), hidden**2)
        noise = jax.random.normal(self.next_key(), centre.shape, centre.dtype)
        return centre + jnp.sqrt(jnp.maximum(variance, TINY)) * noise

    def vectors(self, name: str, starts: dict[str, float], width: int) -> Arrays:
        """Drawn as weights, which all rows share."""
        return {
            field: m + self.std[name][field] * jax.random.normal(self.next_key(), m.shape, m.dtype)
            for field, m in self.params[name].items()
        }


class Flipout(Plain):
    """The one perturbation Δ with other signs for every row: (M + Δ ∘ sr')h = Mh + s ∘ Δ(r ∘ h).

    In a convolution r has a sign for each input channel and s one for each output channel, the same at all positions of
    a row: every row then sees one kernel, with the distribution that a draw has where Δ is symmetric and independent.
    """

    def __init__(self, mean: PyTree, moved: PyTree, key: jax.Array):
        super().__init__(mean, key)
        self.moved = moved

    def linear(self, name: str, hidden: jax.Array, shape: Shape, product: Product, bias: bool = True) -> jax.Array:
        """The mean's product plus that of the perturbation, signs around it."""
        centre = super().linear(name, hidden, shape, product, bias)
        moved, between = self.moved[name], (1,) * (hidden.ndim - 2)
        sizes = (len(hidden), len(centre))
        signs = jax.random.rademacher(self.next_key(), (sum(sizes), *between, hidden.shape[-1]), hidden.dtype)
        into, out = signs[: sizes[0]], signs[sizes[0] :]
        return centre + out * product(moved["kernel"], moved.get("bias"), into * hidden)

    def vectors(self, name: str, starts: dict[str, float], width: int) -> Arrays:
        """Moved as one draw, which all rows share."""
        return jax.tree.map(jnp.add, self.params[name], self.moved[name])


class Recorder(Plain):
    """Records what every layer needs: kernel shapes by name, and vectors with their start values."""

    def __init__(self, num_outputs: int):
        super().__init__({})
        self.num_outputs = num_outputs
        self.kernels: dict[str, tuple[Shape, int | None]] = {}
        self.starts: dict[str, tuple[dict[str, float], int]] = {}

    def linear(self, name: str, hidden: jax.Array, shape: Shape, product: Product, bias: bool = True) -> jax.Array:
        """An output of the right shape."""
        shape = tuple(self.num_outputs if n == OUTPUTS else n for n in shape)
        width = shape[0] if len(shape) == 2 else shape[-1]
        self.kernels[name] = shape, width if bias else None
        return product(jnp.zeros(shape, hidden.dtype), jnp.zeros(width, hidden.dtype) if bias else None, hidden)

    def vectors(self, name: str, starts: dict[str, float], width: int) -> Arrays:
        """Where they start."""
        self.starts[name] = starts, width
        return {field: jnp.full(width, value) for field, value in starts.items()}
