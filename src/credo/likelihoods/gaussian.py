"""Normal noise: known, learned as a point, or inferred under a prior."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.densities import normal_log_prob
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.likelihoods.base import ScaleNoise, diagonal, like_outputs, log_normal_parameters, mode_and_value


@struct
class Gaussian(ScaleNoise):
    """y ~ N(f, σ²), one σ for each entry of y; see `gaussian`."""

    normal = True

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """−½ ((y − f)/σ)² − log σ − ½ log 2π, summed over the entries of y."""
        log_sigma = self.log_sigma(params)
        return normal_log_prob((targets - outputs) * jnp.exp(-log_sigma), log_sigma)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """f."""
        return outputs

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ²."""
        return like_outputs(self.sigma(params) ** 2, outputs)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Φ((y − f)/σ)."""
        return jax.scipy.stats.norm.cdf(targets, outputs, self.sigma(params))

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """f + σ ε."""
        return outputs + self.sigma(params) * jax.random.normal(key, outputs.shape, outputs.dtype)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ⁻² on the diagonal."""
        return diagonal(like_outputs(self.sigma(params) ** -2.0, outputs))


def gaussian(
    noise: float | str = "learned", *, prior_loc: float = -1.0, prior_scale: float = 2.0, scale_prior: Any = None
) -> Gaussian:
    """Regression with normal noise of one size: y ~ N(f, σ²).

    Args:
        noise: a number (known σ), "learned" (a point for methods that optimise; samplers put it under its
            prior) or "inferred" (its own posterior under log σ ~ N(prior_loc, prior_scale²)).
        prior_loc: mean of log σ under its prior.
        prior_scale: standard deviation of log σ under its prior.
        scale_prior: another prior of σ in place of these two, such as `credo.priors.inverse_gamma(2, 0.1)` (of σ²).

    Example:
        >>> from credo.likelihoods import gaussian
        >>> gaussian(noise=0.1).noise
        'known'
    """
    return Gaussian(*mode_and_value(noise, "noise"), *log_normal_parameters(prior_loc, prior_scale), scale_prior)
