"""Positive numbers whose logarithm is normal, with a spread that depends on the input."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import positive
from credo.core.densities import LOG_SPREAD_MOST, log_normal_cdf, log_normal_log_prob, log_spread
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import NoParameters, diagonal, finite_number
from credo.likelihoods.heteroscedastic import ScaleOutput
from credo.likelihoods.positive import PositiveOutput


@struct
class LogNormalNoise(PositiveOutput, ScaleOutput, NoParameters):
    """log(y − zero) ~ N(m, σ²) with outputs (f, a) [n, 2k], m = f + offset and σ between `least` and 3; see
    `log_normal`."""

    least: Any = leaf(default=1e-2)
    zero: Any = leaf(default=0.0)
    offset: Any = leaf(default=0.0)
    factor: Any = leaf(default=1.0)  # of σ, by rows that training did not see

    def stretched(self, factor: Any) -> "LogNormalNoise":
        """The same with σ so many times as large: medians stay."""
        return dataclasses.replace(self, factor=self.factor * factor)

    def sigma(self, outputs: jax.Array) -> jax.Array:
        """σ of log y [n, k]."""
        return self.factor * log_spread(self.raw(outputs), self.least)

    def median(self, outputs: jax.Array) -> jax.Array:
        """m [n, k], the logarithm of the median above zero."""
        return self.location(outputs[..., : outputs.shape[-1] // 2])

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """−½ ((log y − m)/σ)² − log σ − log y − ½ log 2π, summed over the entries of y."""
        log_density = log_normal_log_prob(self.log_above(targets), self.median(outputs), self.sigma(outputs))
        return self.inside(targets, log_density)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """zero + exp(m + ½ σ²)."""
        return self.zero + jnp.exp(self.median(outputs) + 0.5 * self.sigma(outputs) ** 2)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """exp(2m + σ²) (exp(σ²) − 1)."""
        square = self.sigma(outputs) ** 2
        return jnp.exp(2 * self.median(outputs) + square) * jnp.expm1(square)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Φ((log y − m)/σ), and 0 up to zero."""
        inside = log_normal_cdf(self.log_above(targets), self.median(outputs), self.sigma(outputs))
        return jnp.where(targets > self.zero, inside, 0)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """zero + exp(m + σ ε)."""
        median = self.median(outputs)
        noise = self.sigma(outputs) * jax.random.normal(key, median.shape, median.dtype)
        return self.zero + jnp.exp(median + noise)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings for the NumPy predictor."""
        factor = np.asarray(self.factor, np.float64).tolist()
        return self.settings() | {"least": float(self.least), "factor": factor}, {}

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(dm/df)² σ⁻² for f and 2 (σ'(a)/σ)² for a, on the diagonal."""
        half = outputs.shape[-1] // 2
        location = (self.slope(outputs[..., :half]) / self.sigma(outputs)) ** 2
        spread_slope = jax.vmap(jax.vmap(jax.grad(lambda a: jnp.log(log_spread(a, self.least)))))(self.raw(outputs))
        return diagonal(jnp.concatenate([location, 2 * spread_slope**2], -1))


def log_normal(least: float = 1e-2, *, zero: float = 0.0, offset: float = 0.0) -> LogNormalNoise:
    """Positive numbers with errors in per cent: log y ~ N(f + offset, σ(a)²), with f and a from the network.

    σ = least + (3 − least) s(a − 1.6) with s the logistic function: about ½ at a = 0 and never above 3. A log-normal
    with σ = 3 has its mean at its 93rd percentile; with more, no data show the mean of y (e^(m + σ²/2)).
    Limpert, Stahel and Abbt (2001), Log-normal distributions across the sciences.

    Args:
        least: smallest σ, below 3: a share of y; it bounds the density.
        zero: where 0 lies on the scale of the targets; tables with standardised targets set it themselves.
        offset: added to f, such as the mean of log y: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import log_normal
        >>> likelihood = log_normal(offset=2.0)
        >>> round(float(likelihood.cdf({}, jnp.zeros((1, 2)), jnp.exp(jnp.array([[2.0]])))[0, 0]), 3)
        0.5
    """
    least = positive(least, "The least spread")
    if not least < LOG_SPREAD_MOST:
        raise InputError(f"The least spread of log y lies below {LOG_SPREAD_MOST:g}, got {least:g}.")
    return LogNormalNoise(least, finite_number(zero, "zero"), finite_number(offset, "offset"))
