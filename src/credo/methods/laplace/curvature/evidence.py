"""The Laplace approximation of log p(D), and the scale of the prior that maximises it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.methods.laplace.curvature.paths import Arrays
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import LOG_2PI, Spectrum

Groups = tuple[tuple[str, ...], ...]  # paths that share one scale
ROUNDS = 100
BOUND = 18.4  # of |log scale|: factors from 1e-8 to 1e8


def scales_of(scale: jax.Array, groups: Groups) -> Arrays:
    """One number for each group as one for each path."""
    return {path: scale[i] for i, paths in enumerate(groups) for path in paths}


def log_evidence(
    spectrum: Spectrum, prior: LocalPrior, values: Arrays, log_likelihood: jax.Array, scale: jax.Array, groups: Groups
) -> jax.Array:
    """log p(D|θ*) + log p(θ*) + P/2 log 2π − ½ log |H + P|, the prior's precision times `scale` (one for each group).

    MacKay (1992), A practical Bayesian framework for backpropagation networks.
    """
    sizes, squares = _sizes(values, groups), _squares(prior, values, groups)
    log_prior = prior.log_prob + 0.5 * (sizes * jnp.log(scale) - (scale - 1) * squares).sum()
    log_det = spectrum.log_det(scales_of(scale, groups))
    return log_likelihood + log_prior + 0.5 * sizes.sum() * LOG_2PI - 0.5 * log_det


def best_scale(spectrum: Spectrum, prior: LocalPrior, values: Arrays, groups: Groups) -> jax.Array:
    """The scales that maximise the evidence, by MacKay's fixed point: scale = γ / (θ − μ)'P(θ − μ).

    γ = P − ∂ log |H + scale · P| / ∂ log scale counts the parameters that the data determine.
    """
    sizes, squares = _sizes(values, groups), _squares(prior, values, groups)

    def log_det(log_scale: jax.Array) -> jax.Array:
        return spectrum.log_det(scales_of(jnp.exp(log_scale), groups))

    def improve(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        count, current, _ = state
        determined = jnp.maximum(sizes - jax.grad(log_det)(current), 1e-12)
        new = jnp.clip(jnp.log(determined) - jnp.log(jnp.maximum(squares, 1e-30)), -BOUND, BOUND)
        return count + 1, new, jnp.abs(new - current).max()

    def going(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (state[0] < ROUNDS) & (state[2] > 1e-6)

    start = (jnp.zeros((), jnp.int32), jnp.zeros_like(squares), jnp.full((), jnp.inf, squares.dtype))
    return jnp.exp(jax.lax.while_loop(going, improve, start)[1])


def best_on_grid(score: Callable[[jax.Array], jax.Array], grid: Sequence[float], dtype: Any) -> jax.Array:
    """The number of the grid with the largest score."""
    points = jnp.asarray(grid, dtype)
    return points[jnp.argmax(jnp.nan_to_num(jax.lax.map(score, points), nan=-jnp.inf))]


def _sizes(values: Arrays, groups: Groups) -> jax.Array:
    return jnp.array([float(sum(values[path].size for path in paths)) for paths in groups])


def _squares(prior: LocalPrior, values: Arrays, groups: Groups) -> jax.Array:
    """(θ − μ)'P(θ − μ) of each group."""

    def square(path: str) -> jax.Array:
        return (prior.precision[path] * (values[path] - prior.centre[path]) ** 2).sum()

    dtype = jnp.result_type(float)
    return jnp.stack([sum((square(path) for path in paths), jnp.zeros((), dtype)) for paths in groups]).astype(dtype)
