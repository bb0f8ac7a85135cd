"""Leave-one-out densities of rows from the draws of one fit, by Pareto-smoothed importance sampling."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from credo.methods.population.pareto_smoothing import pareto_smooth, tail_size

ROWS = 64  # that are smoothed side by side


def left_out(log_density: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """log p(y_n | y_−n) = log Σ_k w_k p(y_n | θ_k) with smoothed w_k ∝ 1/p(y_n | θ_k), and k̂, in double precision.

    Vehtari, Gelman and Gabry (2017), Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC.

    Args:
        log_density: log p(y_n | θ_k) [..., draw, n].
        efficiency: how many independent draws one draw is worth; with fewer, more of the largest weights are smoothed.
    """
    *lead, draws, rows = log_density.shape
    with jax.enable_x64(True):
        each = jnp.asarray(np.moveaxis(log_density, -2, -1).reshape(-1, draws), jnp.float64)
        densities, shapes = _left_out(each, tail_size(draws, efficiency))
        return np.asarray(densities).reshape(*lead, rows), np.asarray(shapes).reshape(*lead, rows)


@partial(jax.jit, static_argnames="tail")
def _left_out(log_density: jax.Array, tail: int) -> tuple[jax.Array, jax.Array]:
    def one(row: jax.Array) -> tuple[jax.Array, jax.Array]:
        smoothed = pareto_smooth(-row, tail)
        return logsumexp(smoothed.log_weights + row), smoothed.k

    return jax.lax.map(one, log_density, batch_size=ROWS)
