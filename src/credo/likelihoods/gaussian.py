"""Normal noise: known, learned as a point, or inferred under a prior."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.tree import leaf, struct
from credo.errors import InputError
from credo.likelihoods.base import log_normal_prior, real_targets, weighted_std

PyTree = Any


@struct
class Gaussian:
    """y ~ N(f, σ²), one σ for each entry of y.

    noise: "known" (σ = scale), "learned" (a point) or "inferred" (log σ ~ N(prior_loc, prior_scale²)).
    """

    noise: str = "learned"
    scale: Any = leaf(None)
    prior_loc: Any = leaf(-1.0)
    prior_scale: Any = leaf(2.0)

    kind = "real"

    @property
    def point(self) -> bool:
        return self.noise == "learned"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        return real_targets(targets, "gaussian")

    def num_outputs(self, targets: Any) -> int:
        return targets.shape[1]

    def init(self, targets: jax.Array, weight: jax.Array) -> PyTree:
        if self.noise == "known":
            return {}
        return {"log_scale": jnp.log(0.5 * weighted_std(targets, weight) + 1e-3)}

    def log_prior(self, params: PyTree) -> jax.Array:
        if self.noise != "inferred":
            return jnp.zeros(())
        return log_normal_prior(params["log_scale"], self.prior_loc, self.prior_scale)

    def inferring(self) -> "Gaussian":
        return dataclasses.replace(self, noise="inferred") if self.point else self

    def sigma(self, params: PyTree) -> jax.Array:
        """The noise scale [k] (or a scalar)."""
        return jnp.exp(params["log_scale"]) if "log_scale" in params else jnp.asarray(self.scale, jnp.float32)

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        sigma = self.sigma(params)
        z = (targets - outputs) / sigma
        log_norm = jnp.log(sigma) + 0.5 * jnp.log(2 * jnp.pi)
        return (-0.5 * z * z - log_norm).sum(-1)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        return outputs

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.sigma(params) ** 2, outputs.shape)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        return jax.scipy.stats.norm.cdf(targets, outputs, self.sigma(params))

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        return outputs + self.sigma(params) * jax.random.normal(key, outputs.shape)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        precision = jnp.broadcast_to(self.sigma(params) ** -2.0, outputs.shape)
        return precision[..., None] * jnp.eye(outputs.shape[-1])


def gaussian(noise: float | str = "learned", *, prior_loc: float = -1.0, prior_scale: float = 2.0) -> Gaussian:
    """Regression with normal noise of one size.

    Args:
        noise: a number (known σ), "learned" (a point for methods that optimise; samplers put it under its prior)
            or "inferred" (its own posterior under log σ ~ N(prior_loc, prior_scale²)).
        prior_loc: mean of log σ under its prior.
        prior_scale: standard deviation of log σ under its prior.

    Example:
        >>> import credo
        >>> credo.likelihoods.gaussian(noise=0.1).noise
        'known'
    """
    if isinstance(noise, str):
        if noise not in ("learned", "inferred"):
            raise InputError(f'noise must be a positive number, "learned" or "inferred", got {noise!r}.')
        return Gaussian(noise, None, prior_loc, prior_scale)
    if not noise > 0:
        raise InputError(f"A known noise scale must be positive, got {noise}.")
    return Gaussian("known", float(noise), prior_loc, prior_scale)
