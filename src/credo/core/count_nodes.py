"""Whole numbers that stand for all counts, however many matter: sums over them resolve every part of a mixture."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.averages import MOST
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, means_of, peaks_of, quantile, variances_of

TAIL = 1e-6  # probability beyond either end
GOLDEN = (math.sqrt(5) - 1) / 2


def cauchy(levels: np.ndarray) -> np.ndarray:
    """Quantiles tan π(u − ½) of a Cauchy distribution: dense in the middle, and few far out."""
    return np.tan(np.pi * (levels - 0.5)).astype(np.float32)


def count_range(likelihood: Likelihood, draws: Flat) -> tuple[np.ndarray, np.ndarray]:
    """First and last count that matters [n, 1]."""
    low, high = (np.asarray(quantile(likelihood, draws, jnp.float32(q)), np.float64) for q in (TAIL, 1 - TAIL))
    margin = np.ceil(0.3 * (high - low)) + 3
    return np.maximum(low - margin, 0.0), high + margin


def parts(likelihood: Likelihood, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Mean and width of every part [K, n]: its standard deviation, or 1/(√2π p(mean)) where that is less."""
    means, variances = jnp.clip(means_of(likelihood, draws), 0, MOST), variances_of(likelihood, draws)
    peaks = peaks_of(likelihood, draws, jnp.round(means))
    widths = jnp.fmin(jnp.sqrt(variances[..., 0]), jnp.exp(-peaks) / math.sqrt(2 * math.pi))
    return means[..., 0], jnp.clip(jnp.nan_to_num(widths, posinf=MOST), 0.25, MOST)


def geometric(low: jax.Array, high: jax.Array, num: int) -> jax.Array:
    """`num` numbers from low to high along a last axis, ever further apart: no scale above 1 is left out."""
    share = jnp.linspace(0.0, 1.0, num)
    return low[..., None] + jnp.expm1(share * jnp.log1p(high - low)[..., None])


@partial(jax.jit, static_argnames="num")
def count_places(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array, num: int) -> jax.Array:
    """`num` whole numbers [n, num] in order, from low to high [n, 1]; some repeat.

    All of them where they are no more than `num`. Else a quarter lie ever further apart, and the others m_k + s_k t
    around the parts of the mixture, in order of their means m_k, with t the quantiles of a Cauchy distribution at even
    steps that begin at the places of a golden-ratio sequence.
    """
    low, high = low[:, 0], high[:, 0]
    coarse = num // 4
    around = _around(*parts(likelihood, draws), num - coarse)
    some = jnp.concatenate([geometric(low, high, coarse), around.T], 1)
    some = jnp.sort(jnp.clip(jnp.round(some), low[:, None], high[:, None]), 1)
    each = low[:, None] + jnp.arange(num)
    return jnp.where((high - low < num)[:, None], each, some)


def _around(centres: jax.Array, widths: jax.Array, num: int) -> jax.Array:
    """Numbers around the parts [num, n]."""
    number = len(centres)
    order = jnp.argsort(centres, axis=0)
    share = -(-num // number)
    taken = np.arange(num) // share if number <= num else np.linspace(0, number - 1, num).astype(int)
    begin = (0.5 + taken * GOLDEN) % 1
    t = cauchy((np.arange(num) % share + begin) / share)
    chosen = order[taken]
    return jnp.take_along_axis(centres, chosen, 0) + t[:, None] * jnp.take_along_axis(widths, chosen, 0)


def spacing(places: jax.Array) -> jax.Array:
    """How many counts each of some places in order stands for [..., J]: Σ g(y) ≈ Σ_j spacing_j g(y_j).

    The trapezoidal rule between places, and one count at each end: exact where places are all whole numbers.
    """
    gaps = jnp.diff(places, axis=-1)
    ends = jnp.ones_like(gaps[..., :1])
    return 0.5 * (jnp.concatenate([ends, gaps], -1) + jnp.concatenate([gaps, ends], -1))
