"""Noise whose size is a function of the input and whose tails are as heavy as the data say."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.densities import student_t_log_prob
from credo.core.special import student_t_cdf
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import OneParameter, diagonal, log_normal_parameters, mode_and_value
from credo.likelihoods.heteroscedastic import ScaleOutput, checked_floor
from credo.likelihoods.variates import student_t_sample

LEAST = 2.0  # degrees of freedom; at and below, the variance is infinite


@struct
class HeteroscedasticT(OneParameter, ScaleOutput):
    """y = m + σ t with outputs (m, a) [n, 2k], σ = floor + log(1 + eᵃ) and t ~ Student-t(ν); see `heteroscedastic_t`.

    tails: "known" (ν = df), "learned" (a point) or "inferred" (log(ν − 2) ~ N(prior_loc, prior_scale²)).
    """

    tails: str = "learned"
    df: Any = leaf(default=None)
    prior_loc: Any = leaf(default=2.5)
    prior_scale: Any = leaf(default=1.5)
    floor: Any = leaf(default=1e-3)

    learns = "weight of the tails"
    path = "log_excess"
    field = "tails"
    argument = "df"

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """log(ν − 2) at the centre of its prior."""
        return jnp.full(targets.shape[1:], self.prior_loc, targets.dtype)

    def freedom(self, params: PyTree, dtype: Any = jnp.float32) -> jax.Array:
        """ν [k] (or a scalar), at most 10⁶: beyond, a Student-t is a normal in float32."""
        if "log_excess" not in params:
            return jnp.asarray(self.df, dtype)
        return LEAST + jnp.exp(jnp.clip(params["log_excess"], -7.0, 13.8))

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """−½(ν+1) log(1 + z²/ν) − log(√ν B(½, ν/2)) − log σ with z = (y − m)/σ, summed over y's entries."""
        sigma = self.sigma(outputs)
        z = (targets - self.mean(params, outputs)) / sigma
        return student_t_log_prob(z, jnp.log(sigma), self.freedom(params, outputs.dtype))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ² ν/(ν − 2)."""
        df = self.freedom(params, outputs.dtype)
        return self.sigma(outputs) ** 2 * (df / (df - LEAST))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """That of Student's t at (y − m)/σ."""
        z = (targets - self.mean(params, outputs)) / self.sigma(outputs)
        return student_t_cdf(self.freedom(params, outputs.dtype), z)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """The floor and ν, for the NumPy predictor."""
        return {"floor": float(self.floor)}, {"df": self.freedom(params)}

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """m + σ t."""
        mean = self.mean(params, outputs)
        df = jnp.broadcast_to(self.freedom(params, outputs.dtype), mean.shape).astype(mean.dtype)
        return mean + self.sigma(outputs) * student_t_sample(key, df, mean.shape, mean.dtype)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(ν + 1)/((ν + 3) σ²) for the locations and 2ν/(ν + 3) (σ'(a)/σ)² for the raw scales, on the diagonal."""
        df, sigma = self.freedom(params, outputs.dtype), self.sigma(outputs)
        slope = jax.nn.sigmoid(self.raw(outputs))
        return diagonal(
            jnp.concatenate([(df + 1) / (df + 3) * sigma**-2.0, 2 * df / (df + 3) * (slope / sigma) ** 2], -1)
        )


def heteroscedastic_t(
    floor: float = 1e-3, df: float | str = "learned", *, prior_loc: float = 2.5, prior_scale: float = 1.5
) -> HeteroscedasticT:
    """Regression with noise whose size the network predicts and whose tails are learned: y = m(x) + σ(x) t_ν.

    For ν → ∞ it is `heteroscedastic`; small ν lets outliers be outliers. Nix and Weigend (1994) for the two outputs,
    Lange, Little and Taylor (1989) for the tails.

    Args:
        floor: smallest σ, in units of the targets.
        df: degrees of freedom ν above 2: a number (known), "learned" (a point for methods that optimise; samplers put
            it under its prior) or "inferred" (its own posterior).
        prior_loc: mean of log(ν − 2) under its prior.
        prior_scale: standard deviation of log(ν − 2) under its prior.

    Example:
        >>> from credo.likelihoods import heteroscedastic_t
        >>> heteroscedastic_t(df=5.0).df
        5.0
    """
    tails, value = mode_and_value(df, "df")
    if value is not None and value <= LEAST:
        raise InputError(f"df must be above 2, where the noise has a finite variance, got {df}.")
    return HeteroscedasticT(tails, value, *log_normal_parameters(prior_loc, prior_scale), checked_floor(floor))
