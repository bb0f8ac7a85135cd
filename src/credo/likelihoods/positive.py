"""Numbers above 0: what their likelihoods share.

Targets are on their own scale, or standardised by a table's encoder, where 0 lies at `zero` = −mean/sd. So one encoding
serves every likelihood, their fits can be mixed, and density, moments, quantiles and distribution function are those of
y itself, Jacobian included: with logarithms in the encoder, each likelihood would have another target.
"""

import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import log_above, positive_location, positive_slope
from credo.likelihoods.base import real_targets


class PositiveOutput:
    """Numbers above `zero` whose logarithm is around f + offset.

    Attributes:
        zero: where 0 lies on the scale of the targets, one number or one for each entry of y.
        offset: added to f, such as the logarithm of the mean: the prior of f is centred there.
    """

    zero: Any
    offset: Any
    kind = "real"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Finite numbers [n, k]; those below zero have no density."""
        return real_targets(targets, type(self).__name__)

    def standardised(self, shift: Any, scale: Any) -> Self:
        """The same likelihood of (y − shift)/scale with the mean `shift`: 0 is known there, and f = 0 is the mean.

        Args:
            shift, scale: mean and standard deviation of y, one number or one for each of its entries.
        """
        zero = -np.asarray(shift, np.float64) / np.asarray(scale, np.float64)
        return dataclasses.replace(self, zero=_numbers(zero), offset=_numbers(np.log(-zero)))  # type: ignore[type-var]

    def location(self, f: jax.Array) -> jax.Array:
        """f + offset, bent beyond f = 10 to the logarithm of what grows linearly: no mean is infinite."""
        return positive_location(f, _like(self.offset, f))

    def slope(self, f: jax.Array) -> jax.Array:
        """d location/df."""
        return positive_slope(f)

    def log_above(self, targets: jax.Array) -> jax.Array:
        """log(y − zero); a y that rounds to zero counts as the smallest y that does not."""
        return log_above(targets, _like(self.zero, targets))

    def inside(self, targets: jax.Array, log_density: jax.Array) -> jax.Array:
        """The log density [n], −∞ where an entry of y is below zero."""
        return jnp.where((targets < _like(self.zero, targets)).any(-1), -jnp.inf, log_density)

    def settings(self) -> dict[str, Any]:
        """Zero and offset, for the NumPy predictor."""
        return {"zero": np.asarray(self.zero).tolist(), "offset": np.asarray(self.offset).tolist()}


def _numbers(values: np.ndarray) -> Any:
    return float(values) if np.ndim(values) == 0 else values.astype(np.float32)


def _like(value: Any, other: jax.Array) -> Any:
    """A number as it is, an array in the type of another."""
    return value if np.ndim(value) == 0 else jnp.asarray(value, other.dtype)
