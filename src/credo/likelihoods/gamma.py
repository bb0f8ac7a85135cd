"""Positive numbers whose standard deviation is a share of their mean."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.densities import gamma_cdf, gamma_log_prob
from credo.core.gamma import log_gamma
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import (
    OneParameter,
    diagonal,
    finite_number,
    like_outputs,
    log_normal_parameters,
    mode_and_value,
    weighted_moments,
)
from credo.likelihoods.positive import PositiveOutput


@struct
class Gamma(PositiveOutput, OneParameter):
    """y − zero ~ Gamma with mean μ, log μ = f + offset, and variance μ²/α, one α for each entry of y; see `gamma`.

    shape: "known" (α = value), "learned" (a point) or "inferred" (log α ~ N(prior_loc, prior_scale²)).
    """

    shape: str = "learned"
    value: Any = leaf(default=None)
    prior_loc: Any = leaf(default=1.0)
    prior_scale: Any = leaf(default=2.0)
    zero: Any = leaf(default=0.0)
    offset: Any = leaf(default=0.0)
    factor: Any = leaf(default=1.0)  # of the standard deviation, by rows that training did not see

    learns = "shape"
    path = "log_shape"
    field = "shape"

    def num_outputs(self, targets: Any) -> int:
        """One log-mean for each entry of y."""
        return targets.shape[1]

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """log α at the moment estimate m²/v of the targets, kept between ½ and 50."""
        mean, variance = weighted_moments(targets, weight)
        return jnp.log(jnp.clip((mean - self.zero) ** 2 / jnp.maximum(variance, 1e-12), 0.5, 50.0))

    def stretched(self, factor: Any) -> "Gamma":
        """The same with standard deviations so many times as large: means stay."""
        return dataclasses.replace(self, factor=self.factor * factor)

    def log_shape(self, params: PyTree) -> jax.Array:
        """log α [k] (or a scalar)."""
        log_shape = params["log_shape"] if "log_shape" in params else jnp.log(self.value)
        return log_shape - 2 * jnp.log(self.factor)

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """α log(α y/μ) − α y/μ − log y − log Γ(α), summed over the entries of y."""
        log_density = gamma_log_prob(self.log_above(targets), self.location(outputs), self.log_shape(params))
        return self.inside(targets, log_density)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """zero + μ."""
        return self.zero + jnp.exp(self.location(outputs))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """μ²/α."""
        return jnp.exp(2 * self.location(outputs) - self.log_shape(params))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """P(α, α y/μ), the regularised lower incomplete gamma function, and 0 up to zero."""
        inside = gamma_cdf(self.log_above(targets), self.location(outputs), self.log_shape(params))
        return jnp.where(targets > self.zero, inside, 0)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """zero + μ G/α with G ~ Gamma(α, 1)."""
        log_shape = like_outputs(self.log_shape(params), outputs)
        log_g = log_gamma(key, jnp.exp(log_shape)).astype(outputs.dtype)
        return self.zero + jnp.exp(self.location(outputs) + log_g - log_shape)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings and log α, for the NumPy predictor."""
        return self.settings(), {"log_shape": self.log_shape(params)}

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """α (d log μ/df)² on the diagonal."""
        return diagonal(like_outputs(jnp.exp(self.log_shape(params)), outputs) * self.slope(outputs) ** 2)


def gamma(
    shape: float | str = "learned",
    *,
    prior_loc: float = 1.0,
    prior_scale: float = 2.0,
    zero: float = 0.0,
    offset: float = 0.0,
) -> Gamma:
    """Positive numbers with mean μ = e^(f + offset) and variance μ²/α: errors in per cent, with lighter tails than the
    log-normal's and a mean that no spread moves.

    Above f = 10 the mean grows linearly, so that no output makes it infinite. McCullagh and Nelder (1989), Generalized
    linear models, chapter 8.

    Args:
        shape: α, a number (known), "learned" (a point for methods that optimise; samplers put it under its prior) or
            "inferred" (its own posterior under log α ~ N(prior_loc, prior_scale²)). 1 is the exponential distribution.
        prior_loc: mean of log α under its prior.
        prior_scale: standard deviation of log α under its prior.
        zero: where 0 lies on the scale of the targets; tables with standardised targets set it themselves.
        offset: added to f, such as the logarithm of the mean: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import gamma
        >>> gamma(4.0).variance({}, jnp.zeros((1, 1))).tolist()
        [[0.25]]
    """
    prior = log_normal_parameters(prior_loc, prior_scale)
    return Gamma(*mode_and_value(shape, "shape"), *prior, finite_number(zero, "zero"), finite_number(offset, "offset"))
