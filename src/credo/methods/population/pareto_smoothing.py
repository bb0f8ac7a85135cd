"""Pareto-smoothed importance weights, as a pure function that compiled programs can call."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

EQUAL = 1e-2  # log weights that differ less are equal but for rounding
LEAST_TAIL = 5  # with fewer large weights no shape is fitted
PRIOR_SHAPE, PRIOR_DRAWS = 0.5, 10  # k̂ shrinks to this shape, which counts as so many draws


class Smoothed(NamedTuple):
    """k: the Pareto shape of the largest weights; effective: 1/Σw²; log_weights: smoothed and normalised [draw]."""

    k: jax.Array
    effective: jax.Array
    log_weights: jax.Array


def good_shape(count: int) -> float:
    """min(1 − 1/log₁₀ S, 0.7): below it S weights can be relied on (Vehtari et al., 2024)."""
    return min(1 - 1 / math.log10(count), 0.7) if count > 1 else 0.0


def tail_size(count: int, efficiency: float = 1.0) -> int:
    """How many of the largest weights are smoothed: ⌈min(S/5, 3√(S/r))⌉ where r S independent draws are worth S."""
    return math.ceil(min(count / 5, 3 * math.sqrt(count / efficiency)))


@partial(jax.jit, static_argnames="tail")
def pareto_smooth(log_weights: Any, tail: int | None = None) -> Smoothed:
    """Replace the largest weights by the quantiles of the generalised Pareto distribution that fits them best.

    Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling. The numbers are ArviZ's. With
    too few weights for a tail k is infinite; with equal ones it is 0.

    Args:
        log_weights: [draw], up to a constant.
        tail: how many weights are smoothed; None means `tail_size`.
    """
    raw = jnp.asarray(log_weights)
    raw = jnp.where(jnp.isnan(raw), -jnp.inf, raw)
    raw = raw - raw.max()
    count, tail = raw.size, tail_size(raw.size) if tail is None else tail
    if tail < LEAST_TAIL:
        return _normalised(raw, jnp.asarray(jnp.inf, raw.dtype))
    order = jnp.argsort(raw)
    cut = jnp.maximum(raw[order[count - tail - 1]], jnp.log(jnp.finfo(raw.dtype).tiny))
    largest = raw[order[count - tail :]]
    above = largest > cut  # a tie with the cut, or a weight too small for its type, is not in the tail
    # exp(lw) − exp(cut) without the digits that cancel.
    excess = jnp.where(above, jnp.exp(cut) * jnp.expm1(largest - cut), 0.0)
    k, scale = fit_pareto(excess, above)
    size = above.sum()
    probabilities = jnp.clip((jnp.arange(tail) - (tail - size) + 0.5) / jnp.maximum(size, 1), 0.0, 1 - 1e-7)
    quantiles = jnp.where(
        jnp.abs(k) < 1e-6, -scale * jnp.log1p(-probabilities), scale * jnp.expm1(-k * jnp.log1p(-probabilities)) / k
    )
    smooth = jnp.minimum(jnp.log(quantiles + jnp.exp(cut)), 0.0)
    equal = raw[order[-1]] - raw[order[0]] < EQUAL
    k = jnp.where(equal, 0.0, jnp.where((size < LEAST_TAIL) | ~jnp.isfinite(k), jnp.inf, k))
    usable = above & ~equal & jnp.isfinite(k)
    return _normalised(raw.at[order[count - tail :]].set(jnp.where(usable, smooth, largest)), k)


def _normalised(log_weights: jax.Array, k: jax.Array) -> Smoothed:
    log_weights = log_weights - logsumexp(log_weights)
    return Smoothed(k, jnp.exp(-logsumexp(2 * log_weights)), log_weights)


def fit_pareto(excess: Any, above: Any) -> tuple[jax.Array, jax.Array]:
    """Shape and scale of the generalised Pareto distribution of sorted excesses (Zhang and Stephens, 2009).

    The shape is pulled a little to 0.5, which steadies it where the tail is short.

    Args:
        excess: how far the largest weights are above the cut, in rising order.
        above: which of them count; those that do not come first.
    """
    excess = jnp.asarray(excess)
    tail = excess.size
    count = jnp.maximum(jnp.sum(above), 1)
    grid = 30 + int(math.sqrt(tail))
    quarter = excess[jnp.clip(tail - count + (count / 4 + 0.5).astype(int) - 1, 0, tail - 1)]
    b = (1 - jnp.sqrt(grid / (jnp.arange(1, grid + 1) - 0.5))) / (3 * quarter) + 1 / excess[-1]

    def shape(b: jax.Array) -> jax.Array:
        return jnp.where(above, jnp.log1p(-b * excess), 0.0).sum() / count

    shapes = jax.vmap(shape)(b)
    weight = jax.nn.softmax(count * (jnp.log(-b / shapes) - shapes - 1))
    best = (b * weight).sum()
    k = shape(best)
    return (count * k + PRIOR_DRAWS * PRIOR_SHAPE) / (count + PRIOR_DRAWS), -k / best


def shape_of_smoothed(log_weights: Any) -> float:
    """k̂ of weights that `pareto_smooth` gave, read off them: the tail has the quantiles of that distribution.

    x(p)/x(q) = ((1 − p)^−k − 1)/((1 − q)^−k − 1) rises with k, so that two quantiles determine it. 0 where the
    largest weights are equal, infinite where there are too few for a tail.
    """
    values = np.sort(np.asarray(log_weights, np.float64).ravel())
    values = values - values[-1]
    tail = tail_size(values.size)
    if values[-tail - 1] > -EQUAL:
        return 0.0
    cut = max(values[-tail - 1], math.log(np.finfo(np.float32).tiny))
    largest = values[-tail:][values[-tail:] > cut]
    if len(largest) < LEAST_TAIL:
        return math.inf
    low, high = len(largest) // 3, int(0.8 * len(largest))  # beyond, weights may have been cut at the largest raw one
    ratio = math.log(math.expm1(largest[high] - cut) / math.expm1(largest[low] - cut))
    steps = [-math.log1p(-(i + 0.5) / len(largest)) for i in (high, low)]

    def excess(k: float) -> float:
        if k == 0:
            return math.log(steps[0] / steps[1])
        return math.log(math.expm1(k * steps[0]) / math.expm1(k * steps[1]))

    ends = [-20.0, 100.0]
    for _ in range(60):
        middle = 0.5 * (ends[0] + ends[1])
        ends[excess(middle) > ratio] = middle
    return ends[0]
