"""Quadrature nodes for sums over counts, however wide their range: they resolve every component of a mixture."""

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


def components(likelihood: Likelihood, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Mean and width of every component [K, n]: its standard deviation, or 1/(√2π p(mean)) where that is less."""
    means, variances = jnp.clip(means_of(likelihood, draws), 0, MOST), variances_of(likelihood, draws)
    peaks = peaks_of(likelihood, draws, jnp.round(means))
    widths = jnp.fmin(jnp.sqrt(variances[..., 0]), jnp.exp(-peaks) / math.sqrt(2 * math.pi))
    return means[..., 0], jnp.clip(jnp.nan_to_num(widths, posinf=MOST), 0.25, MOST)


def geometric(low: jax.Array, high: jax.Array, num: int) -> jax.Array:
    """`num` numbers from low to high along a last axis, ever further apart: no scale above 1 is left out."""
    fractions = jnp.linspace(0.0, 1.0, num)
    return low[..., None] + jnp.expm1(fractions * jnp.log1p(high - low)[..., None])


@partial(jax.jit, static_argnames="num")
def count_nodes(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array, num: int) -> jax.Array:
    """`num` whole numbers [n, num] in order, from low to high [n, 1]; some repeat.

    All of them where they are no more than `num`. Else a quarter lie ever further apart, and the others m_k + s_k t
    around the components of the mixture, in order of their means m_k, with t the quantiles of a Cauchy distribution at
    even steps that begin at the numbers of a golden-ratio sequence.
    """
    low, high = low[:, 0], high[:, 0]
    coarse = num // 4
    nearby = _around(*components(likelihood, draws), num - coarse)
    sparse = jnp.concatenate([geometric(low, high, coarse), nearby.T], 1)
    sparse = jnp.sort(jnp.clip(jnp.round(sparse), low[:, None], high[:, None]), 1)
    dense = low[:, None] + jnp.arange(num)
    return jnp.where((high - low < num)[:, None], dense, sparse)


def _around(centres: jax.Array, widths: jax.Array, num: int) -> jax.Array:
    """Numbers around the components [num, n]."""
    count = len(centres)
    order = jnp.argsort(centres, axis=0)
    per_component = -(-num // count)
    component = np.arange(num) // per_component if count <= num else np.linspace(0, count - 1, num).astype(int)
    begin = (0.5 + component * GOLDEN) % 1
    t = cauchy((np.arange(num) % per_component + begin) / per_component)
    index = order[component]
    return jnp.take_along_axis(centres, index, 0) + t[:, None] * jnp.take_along_axis(widths, index, 0)


def spacing(nodes: jax.Array) -> jax.Array:
    """Weights of sorted nodes y_j [..., J]: Σ_y g(y) ≈ Σ_j spacing_j g(y_j).

    The trapezoidal rule between nodes, and one count at each end: exact where the nodes are all whole numbers.
    """
    gaps = jnp.diff(nodes, axis=-1)
    ends = jnp.ones_like(gaps[..., :1])
    return 0.5 * (jnp.concatenate([ends, gaps], -1) + jnp.concatenate([gaps, ends], -1))
