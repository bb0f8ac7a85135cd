"""The continuous ranked probability score CRPS(F, y) = ∫ (F(z) − 1[y ≤ z])² dz = E|Y − y| − ½ E|Y − Y'|, row by row.

Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jax.scipy.stats import norm

from credo.errors import InputError
from credo.evaluation.metrics.arrays.border import of_arrays

OVERSAMPLING = 8  # points of a quasi-random sample for each cell of an integral
REACH = 8.0  # standard deviations beyond which a normal has no mass that counts


def mean_distance(shift: jax.Array, variance: jax.Array) -> jax.Array:
    """A(m, s²) = E|m + s ε| = 2 s φ(m/s) + m (2 Φ(m/s) − 1) for ε ~ N(0, 1); |m| where s = 0."""
    spread = jnp.sqrt(jnp.where(variance > 0, variance, 1))
    z = shift / spread
    # erf rather than 2 Φ − 1, which has no digits near 0
    value = 2 * spread * norm.pdf(z) + shift * jax.lax.erf(z * np.sqrt(0.5).astype(z.dtype))
    return jnp.where(variance > 0, value, jnp.abs(shift))


def _spread(stds: jax.Array, means: jax.Array) -> jax.Array:
    """The standard deviation of each component, where there may be fewer that go for several."""
    try:
        return jnp.broadcast_to(jnp.asarray(stds), means.shape)
    except ValueError as error:
        raise InputError(f"stds {list(jnp.shape(stds))} do not fit the means {list(means.shape)}.") from error


@of_arrays(means="m ...", stds="any", weights="m", targets="...")
def crps_normal_mixture(means: jax.Array, stds: jax.Array, weights: jax.Array, targets: jax.Array) -> jax.Array:
    """Σ_i w_i A(y − m_i, s_i²) − ½ Σ_ij w_i w_j A(m_i − m_j, s_i² + s_j²): exact, in time K² and memory K.

    Grimit, Gneiting, Berrocal and Johnson (2006), The continuous ranked probability score for circular variables and
    its application to mesoscale forecast ensemble verification.

    Args:
        means, stds: of the K components [K, …].
        weights: of the components, summing to 1 [K].
        targets: what came true […].

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import crps_normal_mixture
        >>> value = crps_normal_mixture(jnp.zeros((1, 1)), jnp.ones((1, 1)), jnp.ones(1), jnp.zeros(1))
        >>> round(float(value[0]), 4)  # (√2 − 1)/√π
        0.2337
    """
    means, weights = jnp.asarray(means), jnp.asarray(weights)
    variances = _spread(stds, means) ** 2
    column = weights.reshape(-1, *[1] * (means.ndim - 1))

    def pair(total: jax.Array, one: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        mean, variance, weight = one
        distances = mean_distance(mean - means, variance + variances)
        return total + weight * (column * distances).sum(0), None

    near = (column * mean_distance(targets - means, variances)).sum(0)
    apart, _ = jax.lax.scan(pair, jnp.zeros_like(near), (means, variances, weights))
    return near - 0.5 * apart


@of_arrays(means="m ...", stds="any", weights="m", targets="...")
def crps_normal_mixture_integral(
    means: jax.Array, stds: jax.Array, weights: jax.Array, targets: jax.Array, cells: int = 96
) -> jax.Array:
    """The same with ½ E|Y − Y'| = ∫ F (1 − F) dz by quadrature: time K · cells, for many components.

    ∫ F has a closed form, so each cell's mean F̄ is exact. Only ∫ F² is approximated, in a cell from a to b of width h
    by h (F̄² + (F̄ − F_a)(F_b − F̄)/3): exact where F is linear, harmless in long tails. Cells hold about equal
    probability: their edges are order statistics of a quasi-random sample of the mixture (components by systematic
    resampling, normals by a golden-ratio sequence).
    """
    means, weights = jnp.asarray(means), jnp.asarray(weights)
    stds = _spread(stds, means)
    column = weights.reshape(-1, *[1] * (means.ndim - 1))

    def average(values: jax.Array) -> jax.Array:
        return (column * values).sum(0)  # one pass; a matrix product would write all values first

    points = OVERSAMPLING * cells
    levels = (jnp.arange(points, dtype=means.dtype) + 0.5) / points
    picks = jnp.clip(jnp.searchsorted(jnp.cumsum(weights), levels), 0, len(means) - 1)
    normals = ndtri(jnp.asarray((0.5 + np.arange(points) * (np.sqrt(5) - 1) / 2) % 1, means.dtype))
    sample = jnp.sort(means[picks] + stds[picks] * normals.reshape(-1, *[1] * (means.ndim - 1)), axis=0)
    low, high = (means - REACH * stds).min(0), (means + REACH * stds).max(0)
    tail, inner = OVERSAMPLING, sample[OVERSAMPLING:-OVERSAMPLING:OVERSAMPLING]
    edges = jnp.concatenate([low[None], sample[:tail], inner, sample[-tail:], high[None]])

    def at(edge: jax.Array) -> tuple[jax.Array, jax.Array]:
        z = (edge - means) / stds
        below = 0.5 + 0.5 * jax.lax.erf(z * np.sqrt(0.5).astype(z.dtype))  # no digits in the tail are needed
        return average(below), average((edge - means) * below + stds * norm.pdf(z))

    probability, integral = jax.lax.map(at, edges)
    width, area = jnp.diff(edges, axis=0), jnp.diff(integral, axis=0)
    start, end = probability[:-1], probability[1:]
    inside = jnp.clip(area / jnp.where(width > 0, width, 1), start, end)
    square = width * (inside**2 + (inside - start) * (end - inside) / 3)
    return average(mean_distance(targets - means, stds**2)) - (width * inside - square).sum(0)


@of_arrays(draws="m ...", targets="...", weights="m")
def crps_draws(draws: jax.Array, targets: jax.Array, weights: jax.Array | None = None, fair: bool = False) -> jax.Array:
    """Σ_i w_i |x_i − y| − ½ Σ_ij w_i w_j |x_i − x_j| of draws [M, …], in time M log M after sorting.

    Args:
        draws: draws of y, or members of an ensemble.
        targets: what came true […].
        weights: of the draws, summing to 1 [M]; equal where None.
        fair: divide the second sum by 1 − Σ w², so that independent draws estimate the score of what they are
            drawn from without bias (Ferro 2014); else it is the score of the draws themselves.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import crps_draws
        >>> crps_draws(jnp.array([[0.0], [2.0]]), jnp.array([1.0])).tolist()
        [0.5]
    """
    gaps = jnp.asarray(draws) - targets
    mass = jnp.full(len(gaps), 1 / len(gaps), gaps.dtype) if weights is None else jnp.asarray(weights, gaps.dtype)
    order = jnp.argsort(gaps, axis=0)
    sorted_gaps, sorted_mass = jnp.take_along_axis(gaps, order, 0), mass[order]
    before = jnp.cumsum(sorted_mass, 0) - sorted_mass
    spread = (sorted_mass * sorted_gaps * (2 * before + sorted_mass - 1)).sum(0)
    if fair:
        spread = spread / (1 - (mass**2).sum())
    return jnp.tensordot(mass, jnp.abs(gaps), 1) - spread


@of_arrays(first="m ...", second="k ...", targets="...")
def crps_two_samples(first: jax.Array, second: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean |x − y| over both samples − ½ (1/MN) Σ_ij |x_i − x'_j| of two independent samples [M, …] and [N, …].

    It has no bias for the CRPS of the law behind them where every draw has that law on average, whatever ties the
    draws of one sample together: strata, for instance, whose draws no weights within one sample can make fair.

    Args:
        first, second: draws of y, made with different keys.
        targets: what came true […].

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import crps_two_samples
        >>> crps_two_samples(jnp.array([[0.0]]), jnp.array([[2.0]]), jnp.array([1.0])).tolist()
        [0.0]
    """
    draws = jnp.concatenate([first, second])
    order = jnp.argsort(draws, axis=0)
    below = jnp.cumsum(order < len(first), 0)[:-1] / len(first)
    other = jnp.cumsum(order >= len(first), 0)[:-1] / len(second)
    gaps = jnp.diff(jnp.take_along_axis(draws, order, 0), axis=0)
    # E|X − X'| = ∫ F (1 − G) + G (1 − F): no term is negative
    apart = (gaps * (below * (1 - other) + other * (1 - below))).sum(0)
    return jnp.abs(draws - targets).mean(0) - 0.5 * apart
