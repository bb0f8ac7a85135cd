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


def factor(gram: jax.Array, roots: jax.Array) -> jax.Array:
    """The Cholesky factor of B = I + R'(K ⊗ I)R [n·c, n·c] for square roots R [n, out, c] of the rows' precisions."""
    rows, _, columns = roots.shape
    size = rows * columns
    if columns == 1 and roots.shape[1] == 1:
        inner = gram * (roots[:, 0] * roots[:, 0].T)
    else:
        inner = (jnp.einsum("noc,mod->ncmd", roots, roots) * gram[:, None, :, None]).reshape(size, size)
    return jnp.linalg.cholesky(inner + jnp.eye(size, dtype=gram.dtype))
