"""Entropies of the predictive mixture of real targets and counts, taken apart into noise and what is not known."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.count_entropies import count_entropies, mixture_and_gain
from credo.core.count_places import GOLDEN, cauchy
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, average, log_probs_of, means_of, peaks_of, quantile, variances_of

TAIL = 1e-6  # probability beyond either end of a grid, and weight of a part that may go unseen
POINTS = 1001  # of a grid for real targets
STEP = 0.5  # of a grid, in widths of the narrowest part: sums are then good to 10⁻⁴
NODES = 1000  # for the mutual information where no grid serves
OWN_NODES = 128  # for the entropy of one part


def entropies(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """H[p], E_k H[p_k] and the mutual information H[p] − E_k H[p_k] of one real or count target, each [n].

    Sums over an even grid converge fast where its step resolves every part of the mixture, and mean nothing where it
    does not: such rows are integrated at nodes that belong to the parts. Counts have sums of their own
    (`count_entropies`).
    """
    if likelihood.kind == "counts":
        return count_entropies(likelihood, draws)
    low, high = (quantile(likelihood, draws, jnp.float32(q)) for q in (TAIL, 1 - TAIL))
    margin = 0.1 * (high - low)
    low, high = low - margin, high + margin
    resolved = (high - low)[:, 0] / (POINTS - 1) <= STEP * _narrowest(likelihood, draws)
    if not resolved.any():
        return _at_nodes(likelihood, draws)
    grid = _on_grid(likelihood, draws, low, high)
    if resolved.all():
        return grid
    nodes = _at_nodes(likelihood, draws)
    return {name: jnp.where(resolved, grid[name], nodes[name]) for name in grid}


def _with_gain(likelihood: Likelihood, draws: Flat, y: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """log p_k(y) [K, n], log p(y) [n] and what y tells about k [n]."""
    each = log_probs_of(likelihood, draws, y)
    return each, *mixture_and_gain(each, draws)


@jax.jit
def _on_grid(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array) -> dict[str, jax.Array]:
    """`entropies` by sums over a grid from low to high [n, 1]."""
    step = (high - low) / (POINTS - 1)

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        _, whole, gain = _with_gain(likelihood, draws, low + step * i)
        return sums + jnp.nan_to_num(jnp.exp(whole) * step[:, 0] * jnp.stack([-whole, gain]))

    total, known = jax.lax.fori_loop(0, POINTS, add, jnp.zeros((2, len(low))))
    known = jnp.maximum(known, 0.0)
    return {"entropy": total, "conditional_entropy": total - known, "mutual_information": known}


def _places(likelihood: Likelihood, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Centre and width of every part [K, n]: its mean, and its standard deviation or 1/(√2π p_k(mean)), which heavy
    tails do not stretch, where that is less."""
    means, variances = means_of(likelihood, draws), variances_of(likelihood, draws)
    peaks = peaks_of(likelihood, draws, means)
    return means[..., 0], jnp.fmin(jnp.sqrt(variances[..., 0]), jnp.exp(-peaks) / math.sqrt(2 * math.pi))


@jax.jit
def _narrowest(likelihood: Likelihood, draws: Flat) -> jax.Array:
    """The least width of a part that has weight [n]."""
    _, widths = _places(likelihood, draws)
    counts = draws.log_weights - draws.log_weights.max() > math.log(TAIL)
    return jnp.where(counts[:, None], widths, jnp.inf).min(0)


def _cauchy(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles t of a Cauchy distribution, with log dt/du: nodes for a density of any tails with a second moment."""
    t = cauchy(levels)
    return t, np.log(np.pi * (1 + t.astype(np.float64) ** 2)).astype(np.float32)


@jax.jit
def _at_nodes(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """`entropies` of real targets, whatever the distance between parts: ∫ p_k(y) g(y) dy = ∫ p_k(y) g(y) y'(u) du.

    y(u) = m_k + s_k t(u) with t the quantiles of a Cauchy distribution, and u are even steps for each part. Parts share
    the `NODES` that the mutual information has, by steps that begin at the places of a golden-ratio sequence, in order
    of m_k: with one node for each part, neighbours still cover (0, 1).
    """
    centres, widths = _places(likelihood, draws)
    noise = average(_own_entropies(likelihood, draws, centres, widths), draws)
    parts, shares = _spread_parts(centres, draws)
    each_part = -(-NODES // len(centres))
    begin = (0.5 + np.arange(len(parts)) * GOLDEN) % 1
    t, log_slope = (jnp.asarray(x) for x in _cauchy((np.arange(each_part) + begin[:, None]).ravel() / each_part))

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        part, share = parts[i // each_part], shares[i // each_part]
        centre, width = (_of(x, part) for x in (centres, widths))
        each, _, gain = _with_gain(likelihood, draws, (centre + width * t[i])[:, None])
        mass = jnp.exp(share + _of(each, part) + jnp.log(width) + log_slope[i])
        return sums + jnp.nan_to_num(mass * jnp.stack([jnp.ones_like(gain), gain]))

    mass, known = jax.lax.fori_loop(0, len(t), add, jnp.zeros((2, centres.shape[1])))
    known = jnp.maximum(known / mass, 0.0)
    return {"entropy": noise + known, "conditional_entropy": noise, "mutual_information": known}


def _spread_parts(centres: jax.Array, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Parts in order of their centres and their log weights [k, n]: all, or `NODES` in proportion to their weights."""
    order = jnp.argsort(centres, axis=0)
    if len(order) <= NODES:
        return order, draws.log_weights[order]
    levels = (jnp.arange(NODES) + 0.5) / NODES
    below = jnp.cumsum(jax.nn.softmax(draws.log_weights)[order], axis=0)
    chosen = jax.vmap(jnp.searchsorted, (1, None), 1)(below, levels)
    return jnp.take_along_axis(order, jnp.minimum(chosen, len(order) - 1), 0), jnp.zeros((NODES, order.shape[1]))


def _of(values: jax.Array, part: jax.Array) -> jax.Array:
    """The value of one part in every row [n], of values [K, n]."""
    return jnp.take_along_axis(values, part[None], axis=0)[0]


def _own_entropies(likelihood: Likelihood, draws: Flat, centres: jax.Array, widths: jax.Array) -> jax.Array:
    """H[p_k] of every part [K, n]."""
    t, log_slope = (jnp.asarray(x) for x in _cauchy((np.arange(OWN_NODES) + 0.5) / OWN_NODES))

    def add(i: jax.Array, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        y = centres + widths * t[i]
        each = peaks_of(likelihood, draws, y[..., None])
        mass = jnp.exp(each + jnp.log(widths) + log_slope[i])
        return sums[0] + mass, sums[1] - jnp.nan_to_num(mass * each)

    mass, total = jax.lax.fori_loop(0, OWN_NODES, add, (jnp.zeros_like(centres), jnp.zeros_like(centres)))
    return total / mass
