"""Kernels of Gaussian processes over inputs [n, …]; entries of an input are laid out as one row of numbers."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct
from credo.priors.checks import positive


def square_distances(first: jax.Array, second: jax.Array, length: Any = 1.0) -> jax.Array:
    """Squared distances [n, m] in units of the length scale, never negative."""
    a, b = (x.reshape(x.shape[0], -1) / length for x in (first, second))
    square = (a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)
    return jnp.maximum(square, 0.0)


@struct
class SquaredExponential:
    """k(x, x') = s² exp(−|x − x'|² / (2 l²))."""

    scale: Any = leaf(default=1.0)
    length: Any = leaf(default=1.0)

    def __call__(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """The matrix of covariances [n, m]."""
        return self.scale**2 * jnp.exp(-0.5 * square_distances(first, second, self.length))


@struct
class Matern52:
    """k(x, x') = s² (1 + √5 r + 5r²/3) exp(−√5 r) with r = |x − x'| / l."""

    scale: Any = leaf(default=1.0)
    length: Any = leaf(default=1.0)

    def __call__(self, first: jax.Array, second: jax.Array) -> jax.Array:
        """The matrix of covariances [n, m]."""
        square = square_distances(first, second, self.length)
        r = jnp.sqrt(5 * jnp.maximum(square, 1e-20))
        return self.scale**2 * (1 + r + r**2 / 3) * jnp.exp(-r)


def squared_exponential(scale: float = 1.0, length: Any = 1.0) -> SquaredExponential:
    """The kernel of very smooth functions of standard deviation `scale`.

    Args:
        scale: standard deviation of the functions.
        length: distance over which they vary: a number, or one for each entry of an input.

    Example:
        >>> import jax.numpy as jnp, credo
        >>> float(credo.function_space.squared_exponential(2.0)(jnp.zeros((1, 1)), jnp.zeros((1, 1)))[0, 0])
        4.0
    """
    return SquaredExponential(positive(scale, "scale"), positive(length, "length"))


def matern52(scale: float = 1.0, length: Any = 1.0) -> Matern52:
    """The kernel of functions that are twice differentiable; Rasmussen and Williams (2006), section 4.2.

    Args:
        scale: standard deviation of the functions.
        length: distance over which they vary: a number, or one for each entry of an input.

    Example:
        >>> import jax.numpy as jnp, credo
        >>> credo.function_space.matern52()(jnp.zeros((2, 3)), jnp.zeros((4, 3))).shape
        (2, 4)
    """
    return Matern52(positive(scale, "scale"), positive(length, "length"))
