"""Covariance functions of perceptrons whose hidden layers are infinitely wide."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.tree import leaf, struct
from credo.errors import InputError

Array = Any
ACTIVATIONS = ("erf", "relu")


@struct
class Kernel:
    """k(x, x') = Cov[f(x), f(x')] of a perceptron with W ~ N(0, σ_w²/fan_in) and b ~ N(0, σ_b²), as its width grows.

    K⁰ = σ_b² + σ_w² x·R x'/d with R = diag(r_j) the relevance of each input, and for every further layer
    K = σ_b² + σ_w² E[ψ(u) ψ(v)] with (u, v) normal under the covariance of the layer before. Outputs of one network are
    independent, each with this covariance. See `kernel`.
    """

    weight: Array = leaf()  # σ_w² of every layer, from the inputs to the output [hidden + 1]
    bias: Array = leaf()  # σ_b², likewise
    activation: str = "relu"
    relevance: Array | None = leaf(default=None)  # r_j, a factor of the variance of each input's weights [d]

    @property
    def hidden(self) -> int:
        """Hidden layers."""
        return self.weight.shape[-1] - 1

    def __call__(self, first: Array, second: Array | None = None) -> Array:
        """The matrix k(x_i, x'_j) [n, m]; with one argument k(x_i, x_j). NumPy stays NumPy, JAX stays JAX."""
        first = self._weighted(first)
        second = first if second is None else self._weighted(second)
        mixed = self.bias[0] + self.weight[0] / first.shape[-1] * (first @ second.T)
        left, right = self._input_variance(first)[:, None], self._input_variance(second)[None, :]
        for layer in range(1, self.hidden + 1):
            mixed = self._next(layer, mixed, left, right)
            left, right = (self._next(layer, k, k, k) for k in (left, right))
        return mixed

    def diagonal(self, inputs: Array) -> Array:
        """k(x_i, x_i) [n], without the matrix."""
        variance = self._input_variance(self._weighted(inputs))
        for layer in range(1, self.hidden + 1):
            variance = self._next(layer, variance, variance, variance)
        return variance

    def scaled(self, weight: Array, bias: Array, relevance: Array | None = None) -> "Kernel":
        """The kernel with all weight variances multiplied by `weight`, all bias variances by `bias` and those of the
        weights of each input by its `relevance`."""
        return Kernel(weight * self.weight, bias * self.bias, self.activation, relevance)

    def _weighted(self, inputs: Array) -> Array:
        return inputs if self.relevance is None else inputs * self.relevance**0.5

    def _input_variance(self, inputs: Array) -> Array:
        return self.bias[0] + self.weight[0] / inputs.shape[-1] * (inputs * inputs).sum(-1)

    def _next(self, layer: int, mixed: Array, left: Array, right: Array) -> Array:
        second = _MOMENTS[self.activation](mixed, left, right)
        return self.bias[layer] + self.weight[layer] * second


def erf_moment(mixed: Array, left: Array, right: Array) -> Array:
    """E[erf(u) erf(v)] = 2/π arcsin(2 c / √((1 + 2a)(1 + 2b))) for variances a, b and covariance c. Williams (1997)."""
    np_ = _namespace(mixed)
    size = np_.sqrt((1 + 2 * left) * (1 + 2 * right))
    # Below 1 in exact arithmetic; variances of 1e16 round to 1, where the derivative of arcsin is infinite.
    edge = 1 - 4 * np.finfo(mixed.dtype).eps
    return 2 / math.pi * np_.arcsin(np_.clip(2 * mixed / size, -edge, edge))


def relu_moment(mixed: Array, left: Array, right: Array) -> Array:
    """E[max(u, 0) max(v, 0)] = √(ab)/2π (sin t + (π − t) cos t) with cos t = c/√(ab). Cho and Saul (2009)."""
    np_ = _namespace(mixed)
    size = np_.sqrt(np_.maximum(left * right, np.finfo(mixed.dtype).tiny))
    cosine = np_.clip(mixed / size, -1.0, 1.0)
    return size / (2 * math.pi) * (arc(cosine) if np_ is jnp else _arc(np, cosine))


def _arc(np_: Any, cosine: Array) -> Array:
    angle = np_.arccos(cosine)
    return np_.sqrt((1 - cosine) * (1 + cosine)) + (math.pi - angle) * cosine


@jax.custom_jvp
def arc(cosine: jax.Array) -> jax.Array:
    """sin t + (π − t) cos t of cos t. Its derivative π − t is finite where that of arccos is not: at x = x'."""
    return _arc(jnp, cosine)


@arc.defjvp
def _arc_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (cosine,), (tangent,) = primals, tangents
    return arc(cosine), (math.pi - jnp.arccos(cosine)) * tangent


_MOMENTS = {"erf": erf_moment, "relu": relu_moment}


def _namespace(array: Array) -> Any:
    return np if isinstance(array, np.ndarray) else jnp


def kernel(hidden: int = 1, activation: str = "relu", *, weight: Any = 1.0, bias: Any = 1.0) -> Kernel:
    """The covariance function of an infinitely wide perceptron (F3).

    Neal (1996); Williams (1997), Computing with infinite networks; Cho and Saul (2009), Kernel methods for deep
    learning; Lee et al. (2018), Deep neural networks as Gaussian processes.

    Args:
        hidden: hidden layers; 0 is a linear model.
        activation: "erf" or "relu", whose expectations have a closed form.
        weight: σ_w² where weights are N(0, σ_w²/fan_in): one number, or one for each layer from input to output.
        bias: σ_b², likewise; 0 where there are none.

    Example:
        >>> import credo, numpy as np
        >>> x = np.array([[0.0], [1.0]])
        >>> credo.infinite.kernel(1, "erf", weight=2.0, bias=1.0)(x).round(4)
        array([[1.9291, 1.575 ],
               [1.575 , 2.3111]])
    """
    if activation not in ACTIVATIONS:
        raise InputError(f"The kernel has a closed form for {' and '.join(ACTIVATIONS)}, got {activation!r}.")
    if int(hidden) != hidden or hidden < 0:
        raise InputError(f"The number of hidden layers is a whole number of at least 0, got {hidden}.")
    return Kernel(_per_layer(weight, int(hidden) + 1, "weight"), _per_layer(bias, int(hidden) + 1, "bias"), activation)


def _per_layer(value: Any, layers: int, name: str) -> Array:
    """One variance for each layer."""
    if isinstance(value, jax.Array):
        return jnp.broadcast_to(value, (layers,))
    array = np.asarray(value, np.float64)
    if array.shape not in ((), (layers,)) or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(f"{name} is one variance of at least 0, or one for each of {layers} layers, got {value}.")
    return np.broadcast_to(array, (layers,)).copy()
