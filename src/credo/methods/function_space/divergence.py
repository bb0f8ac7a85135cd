"""Divergences between Gaussians over function values at points."""

import jax
import jax.numpy as jnp


def gaussian_kl(
    mean: jax.Array, covariance: jax.Array, prior_mean: jax.Array, prior_covariance: jax.Array, inflation: float = 1.0
) -> jax.Array:
    """KL[N(m, C) ‖ N(m₀, K)] = ½ (tr K⁻¹C + (m₀ − m)'K⁻¹(m₀ − m) − M + log det K − log det C).

    Args:
        mean, covariance: m [M] and C [M, M].
        prior_mean, prior_covariance: m₀ and K.
        inflation: K⁻¹ is multiplied by it (see `moments_of_draws`).
    """
    prior_root = jnp.linalg.cholesky(prior_covariance)
    root = jnp.linalg.cholesky(covariance)
    between = jax.scipy.linalg.solve_triangular(prior_root, root, lower=True)
    shift = jax.scipy.linalg.solve_triangular(prior_root, prior_mean - mean, lower=True)
    log_det = jnp.log(jnp.diag(prior_root)).sum() - jnp.log(jnp.diag(root)).sum()
    return 0.5 * (inflation * ((between**2).sum() + (shift**2).sum()) - mean.shape[0]) + log_det


def moments_of_draws(values: jax.Array) -> tuple[jax.Array, jax.Array, float]:
    """Mean [M] and covariance [M, M] of draws [S, M], and the factor that makes the inverse of the covariance unbiased.

    The inverse of a covariance estimated from S draws is too large by (S − 1)/(S − M − 2) on average; Hartlap, Simon
    and Schneider (2007).
    """
    count, points = values.shape
    mean = values.mean(0)
    centred = values - mean
    return mean, centred.T @ centred / (count - 1), (count - points - 2) / (count - 1)
