"""Counts whose variance exceeds their mean."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import negative_binomial_cdf, negative_binomial_log_prob, negative_binomial_variance
from credo.core.special import log_rate, log_rate_slope
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import (
    OneParameter,
    checked_offset,
    count_targets,
    diagonal,
    log_normal_parameters,
    mode_and_value,
    weighted_moments,
)
from credo.likelihoods.variates import poisson_sample


@struct
class NegativeBinomial(OneParameter):
    """y ~ NB(μ, r) with log μ = f + offset and variance μ + μ²/r, one r for each entry of y; see `negative_binomial`.

    dispersion: "known" (r = value), "learned" (a point) or "inferred" (log r ~ N(prior_loc, prior_scale²)).
    """

    dispersion: str = "learned"
    value: Any = leaf(default=None)
    prior_loc: Any = leaf(default=1.0)
    prior_scale: Any = leaf(default=2.0)
    offset: Any = leaf(default=0.0)

    kind = "counts"

    learns = "dispersion"
    path = "log_dispersion"
    field = "dispersion"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Whole numbers of at least 0 [n, k]."""
        return count_targets(targets, "NegativeBinomial")

    def num_outputs(self, targets: Any) -> int:
        """One log-mean for each entry of y."""
        return targets.shape[1]

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """log r at the moment estimate m²/(v − m) of the targets, kept between ½ and 50."""
        mean, variance = weighted_moments(targets, weight)
        return jnp.log(jnp.clip(mean**2 / jnp.maximum(variance - mean, 1e-6), 0.5, 50.0))

    def log_r(self, params: PyTree) -> jax.Array:
        """log r [k] (or a scalar)."""
        return params["log_dispersion"] if "log_dispersion" in params else jnp.log(self.value)

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log Γ(y+r)/(Γ(r) y!) + r log(r/(r+μ)) + y log(μ/(r+μ)), summed over the entries of y."""
        return negative_binomial_log_prob(log_rate(outputs + self.offset), self.log_r(params), targets)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """μ."""
        return jnp.exp(log_rate(outputs + self.offset))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """μ + μ²/r."""
        return negative_binomial_variance(log_rate(outputs + self.offset), self.log_r(params))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """I_{r/(r+μ)}(r, ⌊y⌋ + 1), and 0 for y < 0."""
        return negative_binomial_cdf(log_rate(outputs + self.offset), self.log_r(params), targets)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """The offset and log r, for the NumPy predictor."""
        return {"offset": float(self.offset)}, {"log_dispersion": self.log_r(params)}

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One count for every entry: a Poisson whose rate is gamma with shape r and mean μ."""
        rate_key, count_key = jax.random.split(key)
        log_r = jnp.broadcast_to(self.log_r(params), outputs.shape)
        rate = jnp.exp(log_rate(outputs + self.offset) - log_r) * jax.random.gamma(
            rate_key, jnp.exp(log_r), dtype=outputs.dtype
        )
        return poisson_sample(count_key, rate)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """μ r/(r + μ) (d log μ/df)² on the diagonal."""
        log_r = self.log_r(params)
        return diagonal(
            jnp.exp(log_r)
            * jax.nn.sigmoid(log_rate(outputs + self.offset) - log_r)
            * log_rate_slope(outputs + self.offset) ** 2
        )


def negative_binomial(
    dispersion: float | str = "learned", *, prior_loc: float = 1.0, prior_scale: float = 2.0, offset: float = 0.0
) -> NegativeBinomial:
    """Counts with variance μ + μ²/r for a mean μ = eᶠ; r → ∞ is Poisson, r = 1 geometric.

    Above f = 30 the mean grows linearly, e³⁰ (f − 29), so that no output makes it infinite in float32.
    Hilbe (2011), Negative Binomial Regression (NB2).

    Args:
        dispersion: r, a number (known), "learned" (a point for methods that optimise; samplers put it under
            its prior) or "inferred" (its own posterior under log r ~ N(prior_loc, prior_scale²)).
        prior_loc: mean of log r under its prior.
        prior_scale: standard deviation of log r under its prior.
        offset: added to f, such as the logarithm of the mean count: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import negative_binomial
        >>> negative_binomial(dispersion=2.0).variance({}, jnp.zeros((1, 1))).tolist()
        [[1.5]]
    """
    return NegativeBinomial(
        *mode_and_value(dispersion, "dispersion"),
        *log_normal_parameters(prior_loc, prior_scale),
        checked_offset(offset),
    )
