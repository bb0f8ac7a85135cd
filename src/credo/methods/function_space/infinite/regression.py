"""Exact regression with a Gaussian process: Gaussian noise, by Cholesky factors.

Everything is written with B = I + √W K √W, W the precisions of the rows: its eigenvalues are at least 1, so that its
factor exists however alike two rows are, and a row of weight 0 adds nothing. Rasmussen and Williams (2006), section
3.4.3.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

LOG_2PI = 1.8378770664093453


class TrainingPosterior(NamedTuple):
    """The posterior at the training rows, and the log evidence."""

    mode: jax.Array  # posterior mean (the mode where there is no closed form) of f [n, out]
    coefficients: jax.Array  # α = K⁻¹ f [n, out]: the mean at x is k(x)'α
    log_evidence: jax.Array
    decrement: jax.Array  # by how many nats one Newton step more would raise the objective


def regression(gram: jax.Array, targets: jax.Array, weight: jax.Array, log_sigma: Any) -> TrainingPosterior:
    """f ~ N(0, K) for each output, y = f + σ ε: α = (K + σ²/w)⁻¹ y and log p(y).

    Args:
        gram: K [n, n].
        targets: y [n, out].
        weight: w of the rows [n]: a row of weight w counts w times; 0 is no row.
        log_sigma: log σ, one number or one for each output.
    """
    sigmas = jnp.broadcast_to(jnp.asarray(log_sigma, gram.dtype), targets.shape[1:])

    def solve(y: jax.Array, log_s: jax.Array) -> tuple[jax.Array, jax.Array]:
        root = jnp.sqrt(weight) * jnp.exp(-log_s)
        lower = factor(gram, root[:, None, None])
        alpha = root * jax.scipy.linalg.cho_solve((lower, True), root * y)
        size = jnp.log(jnp.diagonal(lower)).sum() + (weight * (log_s + 0.5 * LOG_2PI)).sum()
        return alpha, -0.5 * jnp.where(weight > 0, y * alpha, 0.0).sum() - size

    alpha, evidence = jax.vmap(solve, (1, 0), (1, 0))(targets.astype(gram.dtype), sigmas)
    return TrainingPosterior(gram @ alpha, alpha, evidence.sum(), jnp.zeros((), gram.dtype))


def smooth_regression(gram: jax.Array, targets: jax.Array, weight: jax.Array, log_sigma: Any) -> TrainingPosterior:
    """`regression` whose log evidence is quick to differentiate in K and log σ, and nothing else of it is.

    With C = K + σ²/w, a = B⁻¹√W y and α = √W a the derivatives are ½ (αα' − C⁻¹) in K, from one inverse instead of the
    derivative of a factor, and Σ_n a_n² + 1 − (B⁻¹)_nn − w_n in log σ. Rasmussen and Williams (2006), equation 5.9.
    """
    sigmas = jnp.broadcast_to(jnp.asarray(log_sigma, gram.dtype), targets.shape[1:])
    fixed, fixed_sigmas = jax.lax.stop_gradient((gram, sigmas))

    def solve(y: jax.Array, log_s: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        root = jnp.sqrt(weight) * jnp.exp(-log_s)
        lower = factor(fixed, root[:, None, None])
        half = jax.scipy.linalg.solve_triangular(lower, jnp.eye(len(lower), dtype=gram.dtype), lower=True)
        inverse = half.T @ half
        small = inverse @ (root * y)
        alpha = root * small
        size = jnp.log(jnp.diagonal(lower)).sum() + (weight * (log_s + 0.5 * LOG_2PI)).sum()
        value = -0.5 * jnp.where(weight > 0, y * alpha, 0.0).sum() - size
        slope = 0.5 * (jnp.outer(alpha, alpha) - root[:, None] * inverse * root)
        return alpha, value, slope, (small**2 + 1 - jnp.diagonal(inverse) - weight).sum()

    alpha, values, slopes, in_sigma = jax.vmap(solve, (1, 0), (1, 0, 0, 0))(targets.astype(gram.dtype), fixed_sigmas)
    moved = (slopes.sum(0) * (gram - fixed)).sum() + in_sigma @ (sigmas - fixed_sigmas)
    return TrainingPosterior(fixed @ alpha, alpha, values.sum() + moved, jnp.zeros((), gram.dtype))


def factor(gram: jax.Array, roots: jax.Array) -> jax.Array:
    """The Cholesky factor of B = I + R'(K ⊗ I)R [n·c, n·c] for square roots R [n, out, c] of the rows' precisions."""
    rows, _, columns = roots.shape
    size = rows * columns
    if columns == 1 and roots.shape[1] == 1:
        inner = gram * (roots[:, 0] * roots[:, 0].T)
    else:
        inner = (jnp.einsum("noc,mod->ncmd", roots, roots) * gram[:, None, :, None]).reshape(size, size)
    return jnp.linalg.cholesky(inner + jnp.eye(size, dtype=gram.dtype))
