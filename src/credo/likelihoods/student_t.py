"""Student-t noise: regression that outliers do not bend."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.densities import student_t_log_prob
from credo.core.special import student_t_cdf
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import ScaleNoise, diagonal, like_outputs, log_normal_parameters, mode_and_value
from credo.likelihoods.variates import student_t_sample


@struct
class StudentT(ScaleNoise):
    """y = f + σ t with t ~ Student-t(df), one σ for each entry of y; see `student_t`."""

    df: Any = leaf(default=4.0)

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """−½(ν+1) log(1 + z²/ν) − log(√ν B(½, ν/2)) − log σ with z = (y − f)/σ, summed over y's entries."""
        log_sigma = self.log_sigma(params)
        z = (targets - outputs) * jnp.exp(-log_sigma)
        return student_t_log_prob(z, log_sigma, jnp.asarray(self.df, outputs.dtype))

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """f."""
        return outputs

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ² ν/(ν − 2)."""
        return like_outputs(self.sigma(params) ** 2 * (self.df / (self.df - 2)), outputs)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """That of Student's t at (y − f)/σ."""
        return student_t_cdf(jnp.asarray(self.df, outputs.dtype), (targets - outputs) / self.sigma(params))

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """σ and ν, for the NumPy predictor."""
        return {}, {"scale": self.sigma(params), "df": self.df}

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """f + σ t."""
        df = jnp.asarray(self.df, outputs.dtype)
        return outputs + self.sigma(params) * student_t_sample(key, df, outputs.shape, outputs.dtype)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(ν + 1)/((ν + 3) σ²) on the diagonal."""
        precision = (self.df + 1) / (self.df + 3) * self.sigma(params) ** -2.0
        return diagonal(like_outputs(precision, outputs))


def student_t(
    df: float = 4.0, noise: float | str = "learned", *, prior_loc: float = -1.0, prior_scale: float = 2.0
) -> StudentT:
    """Regression with heavy-tailed noise: p(y) ∝ (1 + (y − f)²/(ν σ²))^(−(ν+1)/2).

    Lange, Little and Taylor (1989), Robust statistical modeling using the t distribution.

    Args:
        df: degrees of freedom ν, above 2: below, the variance that every prediction reports is infinite.
        noise: σ, which is not the standard deviation σ √(ν/(ν−2)): a number (known), "learned" (a point for
            methods that optimise; samplers put it under its prior) or "inferred" (its own posterior).
        prior_loc: mean of log σ under its prior.
        prior_scale: standard deviation of log σ under its prior.

    Example:
        >>> from credo.likelihoods import student_t
        >>> student_t(df=4, noise=0.1).df
        4.0
    """
    if not 2 < df < math.inf:
        raise InputError(
            f"df must be above 2, where the noise has a finite variance, got {df}; for df = ∞ use gaussian."
        )
    return StudentT(*mode_and_value(noise, "noise"), *log_normal_parameters(prior_loc, prior_scale), None, float(df))
