"""Entropies of the predictive mixture of real targets and counts: aleatoric, epistemic and total."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.count_entropies import count_entropies, mixture_and_gain
from credo.core.count_nodes import GOLDEN, cauchy
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, average, log_probs_of, means_of, peaks_of, quantile, variances_of

TAIL = 1e-6  # probability beyond either end of a grid, and weight of a component that may go unseen
POINTS = 1001  # of a grid for real targets
STEP = 0.5  # of a grid, in widths of the narrowest component: sums are then good to 10⁻⁴
NODES = 1000  # for the mutual information where no grid serves
COMPONENT_NODES = 128  # for the entropy of one component


def entropies(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """H[p], E_k H[p_k] and the mutual information H[p] − E_k H[p_k] of one real or count target, each [n].

    Sums over an even grid converge fast where its step resolves every component of the mixture. Other rows are
    integrated at nodes around the components. Counts have sums of their own (`count_entropies`).
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
    """log p_k(y) [K, n], log p(y) [n] and the information gain of y about k [n]."""
    log_probs = log_probs_of(likelihood, draws, y)
    return log_probs, *mixture_and_gain(log_probs, draws)


@jax.jit
def _on_grid(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array) -> dict[str, jax.Array]:
    """`entropies` by sums over a grid from low to high [n, 1]."""
    step = (high - low) / (POINTS - 1)

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        _, log_mixture, gain = _with_gain(likelihood, draws, low + step * i)
        return sums + jnp.nan_to_num(jnp.exp(log_mixture) * step[:, 0] * jnp.stack([-log_mixture, gain]))

    entropy, information = jax.lax.fori_loop(0, POINTS, add, jnp.zeros((2, len(low))))
    information = jnp.maximum(information, 0.0)
    return {"entropy": entropy, "conditional_entropy": entropy - information, "mutual_information": information}


def _centres_and_widths(likelihood: Likelihood, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Centre and width of every component [K, n]: its mean, and the lesser of its standard deviation and
    1/(√2π p_k(mean)), which heavy tails do not stretch."""
    means, variances = means_of(likelihood, draws), variances_of(likelihood, draws)
    peaks = peaks_of(likelihood, draws, means)
    return means[..., 0], jnp.fmin(jnp.sqrt(variances[..., 0]), jnp.exp(-peaks) / math.sqrt(2 * math.pi))


@jax.jit
def _narrowest(likelihood: Likelihood, draws: Flat) -> jax.Array:
    """The least width of a component that has weight [n]."""
    _, widths = _centres_and_widths(likelihood, draws)
    weighty = draws.log_weights - draws.log_weights.max() > math.log(TAIL)
    return jnp.where(weighty[:, None], widths, jnp.inf).min(0)


def _cauchy(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles t of a Cauchy distribution, with log dt/du: nodes for a density of any tails with a second moment."""
    t = cauchy(levels)
    return t, np.log(np.pi * (1 + t.astype(np.float64) ** 2)).astype(np.float32)


@jax.jit
def _at_nodes(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """`entropies` of real targets, whatever the distance between components: ∫ p_k(y) g(y) dy = ∫ p_k(y) g(y) y'(u) du.

    y(u) = m_k + s_k t(u) with t the quantiles of a Cauchy distribution, and u are even steps for each component.
    The components share the `NODES` of the mutual information: in order of m_k, their steps begin at the numbers of a
    golden-ratio sequence, so that with one node each, neighbours still cover (0, 1).
    """
    centres, widths = _centres_and_widths(likelihood, draws)
    noise = average(_component_entropies(likelihood, draws, centres, widths), draws)
    components, log_weights = _components_in_order(centres, draws)
    nodes_each = -(-NODES // len(centres))
    offsets = (0.5 + np.arange(len(components)) * GOLDEN) % 1
    t, log_slope = (jnp.asarray(x) for x in _cauchy((np.arange(nodes_each) + offsets[:, None]).ravel() / nodes_each))

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        component, log_weight = components[i // nodes_each], log_weights[i // nodes_each]
        centre, width = (_of(x, component) for x in (centres, widths))
        log_probs, _, gain = _with_gain(likelihood, draws, (centre + width * t[i])[:, None])
        mass = jnp.exp(log_weight + _of(log_probs, component) + jnp.log(width) + log_slope[i])
        return sums + jnp.nan_to_num(mass * jnp.stack([jnp.ones_like(gain), gain]))

    mass, information = jax.lax.fori_loop(0, len(t), add, jnp.zeros((2, centres.shape[1])))
    information = jnp.maximum(information / mass, 0.0)
    return {"entropy": noise + information, "conditional_entropy": noise, "mutual_information": information}


def _components_in_order(centres: jax.Array, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """Components in order of their centres, and their log weights [k, n]: all, or `NODES` in proportion to weight."""
    order = jnp.argsort(centres, axis=0)
    if len(order) <= NODES:
        return order, draws.log_weights[order]
    levels = (jnp.arange(NODES) + 0.5) / NODES
    below = jnp.cumsum(jax.nn.softmax(draws.log_weights)[order], axis=0)
    indices = jax.vmap(jnp.searchsorted, (1, None), 1)(below, levels)
    return jnp.take_along_axis(order, jnp.minimum(indices, len(order) - 1), 0), jnp.zeros((NODES, order.shape[1]))


def _of(values: jax.Array, component: jax.Array) -> jax.Array:
    """The value of one component in every row [n], of values [K, n]."""
    return jnp.take_along_axis(values, component[None], axis=0)[0]


def _component_entropies(likelihood: Likelihood, draws: Flat, centres: jax.Array, widths: jax.Array) -> jax.Array:
    """H[p_k] of every component [K, n]."""
    t, log_slope = (jnp.asarray(x) for x in _cauchy((np.arange(COMPONENT_NODES) + 0.5) / COMPONENT_NODES))

    def add(i: jax.Array, sums: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        y = centres + widths * t[i]
        log_probs = peaks_of(likelihood, draws, y[..., None])
        mass = jnp.exp(log_probs + jnp.log(widths) + log_slope[i])
        return sums[0] + mass, sums[1] - jnp.nan_to_num(mass * log_probs)

    mass, entropy = jax.lax.fori_loop(0, COMPONENT_NODES, add, (jnp.zeros_like(centres), jnp.zeros_like(centres)))
    return entropy / mass
