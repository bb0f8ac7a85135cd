"""What may come true, row by row: outcomes and their probabilities under every draw of θ, as finite sums."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.count_nodes import count_nodes, count_range
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, values_of
from credo.core.predictive import Predictive
from credo.errors import Refusal
from credo.training.progress import tracked

ATOMS = 2**21  # outcomes × draws × rows held at once
FEW = 6000  # outcomes × draws of a row, at least: quantiles of utility need many
PANELS = 4
MOST_COUNTS = 4096
STRETCH = 4.0  # y = m + STRETCH · s · t/(1 − t²): errors of four panels for a normal density are below 1e-8

# Nodes and weights of the 15-point Kronrod rule and of the 7-point Gauss rule inside it (QUADPACK, Piessens and others,
# 1983); the difference of the two is the estimate of error.
_X = (0.991455371120812639, 0.949107912342758525, 0.864864423359769073, 0.741531185599394440,
      0.586087235467691130, 0.405845151377397167, 0.207784955007898468)  # fmt: skip
_K = (0.022935322010529225, 0.063092092629978553, 0.104790010322250184, 0.140653259715525919,
      0.169004726639267903, 0.190350578064785410, 0.204432940075298892, 0.209482141084727828)  # fmt: skip
_G = (0.0, 0.129484966168869693, 0.0, 0.279705391489276668, 0.0, 0.381830050505118945, 0.0, 0.417959183673469388)
NODES = np.array([*(-x for x in _X), 0.0, *reversed(_X)])
KRONROD = np.array([*_K, *reversed(_K[:-1])])
GAUSS = np.array([*_G, *reversed(_G[:-1])])


class Outcomes(NamedTuple):
    """Outcomes y_j of some rows, with P(y_j | θ_k) for every draw: E[u|θ_k] = Σ_j mass_kj u(y_j)."""

    values: np.ndarray  # [K or 1, n or 1, J], on the scale of the targets
    mass: np.ndarray  # [K, n, J], sums to 1 over J
    coarse: np.ndarray  # [K, n, J], the same by a coarser rule; the same array where sums are exact
    weights: np.ndarray  # [K], of the draws

    def mean(self, utility: np.ndarray) -> np.ndarray:
        """E[u | θ_k] [K, n] of utilities at the outcomes."""
        return np.asarray(np.einsum("knj,knj->kn", self.mass, np.broadcast_to(utility, self.mass.shape)))

    def error(self, utility: np.ndarray) -> np.ndarray:
        """An estimate of the error of E[u] [n]: how far the coarser rule is from it."""
        if self.coarse is self.mass:
            return np.zeros(self.mass.shape[1])
        wide = np.broadcast_to(utility, self.mass.shape)
        return np.asarray(np.abs(np.einsum("k,knj,knj->n", self.weights, self.mass - self.coarse, wide)))

    def flat(self, utility: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Utilities and probabilities of all outcomes under the mixture, [n, K·J] each."""
        wide = np.broadcast_to(utility, self.mass.shape)
        if self.values.shape[0] == 1:  # the same outcomes under every draw: one sum over draws is enough
            return np.array(wide[0]), np.einsum("k,knj->nj", self.weights, self.mass)
        rows = self.mass.shape[1]
        mass = np.moveaxis(self.weights[:, None, None] * self.mass, 1, 0)
        return np.moveaxis(wide, 1, 0).reshape(rows, -1), mass.reshape(rows, -1)


def outcomes(
    predictive: Predictive, breaks: tuple[float, ...] = (), few: int = FEW, panels: int = PANELS
) -> Iterator[tuple[slice, Outcomes]]:
    """Blocks of rows with their outcomes.

    Classes: all of them, exactly. Counts: every number that has probability (beyond 4096, bins that
    resolve every draw: `credo.core.count_nodes`). Real numbers:
    Gauss-Kronrod quadrature of every draw's own density p(y | θ_k), in panels that end at `breaks`, so that jumps and
    kinks there cost no accuracy, however narrow one draw's density is beside the spread of the draws.

    Args:
        predictive: the predictions; one outcome for each row.
        breaks: where utilities jump or bend.
        few: at least so many outcomes × draws for each row.
        panels: at least so many for each draw, of 15 points each.
    """
    start = 0
    for rows, draws in tracked(predictive.chunks(), "rows", len(predictive), lambda part: part[0].stop - part[0].start):
        count = rows.stop - rows.start
        if predictive.kind != "classes" and jax.eval_shape(values_of, predictive.likelihood, draws).shape[-1] != 1:
            raise Refusal(
                "Decisions are about one outcome in each row; these predictions have several: fit one target, or "
                "make the utility's argument the target."
            )
        affine = tuple(x[rows, 0] for x in predictive.affine)
        for within, block in _blocks(predictive, draws, affine, breaks, few, panels):
            yield slice(start + within.start, start + within.stop), block
        start += count


def _blocks(
    predictive: Predictive, draws: Flat, affine: tuple[np.ndarray, ...], breaks: tuple[float, ...], few: int, least: int
) -> Iterator[tuple[slice, Outcomes]]:
    """Blocks of the rows of one chunk; `affine` is the shift and the scale of each of them [n]."""
    kind, likelihood, count = predictive.kind, predictive.likelihood, len(affine[0])
    weights = np.asarray(jax.nn.softmax(draws.log_weights), np.float64)
    weights /= weights.sum()
    number = len(weights)
    panels = max(least, 2 * -(-few // (30 * number)))
    low = high = np.zeros((draws.outputs.shape[1], 1))
    if kind == "classes":
        wide = int(draws.outputs.shape[-1]) + 1
    elif kind == "counts":
        low, high = count_range(likelihood, draws)
        wide = min(int((high - low)[:count].max()) + 1, MOST_COUNTS)
        wide = -(-wide // 64) * 64  # few shapes, few programs
    else:
        wide = 15 * (panels + len(breaks))
    step = 2 ** int(np.log2(max(1, min(draws.outputs.shape[1], ATOMS // (number * wide)))))
    for first in range(0, count, step):
        rows = np.minimum(np.arange(first, first + step), count - 1)
        part = slice(first, min(first + step, count))
        cut = part.stop - part.start
        if kind == "classes":
            mass = _clean(values_of(likelihood, draws._replace(outputs=draws.outputs[:, rows])), cut)
            yield part, Outcomes(np.arange(mass.shape[-1])[None, None], mass, mass, weights)
        elif kind == "counts":
            values, raw = _counts(
                likelihood, draws._replace(outputs=draws.outputs[:, rows]), low[rows], high[rows], wide
            )
            mass = _clean(raw, cut)
            exact = (high - low)[rows].max() < wide
            yield part, Outcomes(values[None, :cut], mass, mass if exact else _merge_bins(mass), weights)
        else:
            shift, scale = (x[rows, None] for x in affine)
            at = jnp.asarray((np.asarray(breaks, np.float64) - shift) / scale, jnp.float32)
            y, fine, coarse = _quadrature(likelihood, draws, rows, at, panels)
            values = (shift + scale * np.asarray(y, np.float64))[:, :cut]
            yield part, Outcomes(values, _clean(fine, cut), _clean(coarse, cut), weights)


def _clean(mass: Any, cut: int) -> np.ndarray:
    """Probabilities in double precision that sum to 1: a sure utility stays what it is."""
    array = np.asarray(mass, np.float64)[:, :cut]
    return np.asarray(array / array.sum(-1, keepdims=True))


def _counts(
    likelihood: Likelihood, draws: Flat, low: np.ndarray, high: np.ndarray, wide: int
) -> tuple[np.ndarray, jax.Array]:
    """Counts [n, J] and their probabilities [K, n, J]; the middles of bins of several where there are more than J."""
    ends = (jnp.asarray(x, jnp.float32) for x in (low, high))
    first = count_nodes(likelihood, draws, *ends, wide)
    if (high - low).max() < wide:
        return np.asarray(first, np.float64), _count_mass(likelihood, draws, first)
    last = jnp.concatenate([first[:, 1:] - 1, first[:, -1:]], 1)
    middle = 0.5 * (
        np.asarray(first, np.float64) + np.maximum(first, last)
    )  # bins that are empty end before they begin
    return middle, _bin_mass(likelihood, draws, last)


@jax.jit
def _count_mass(likelihood: Likelihood, draws: Flat, at: jax.Array) -> jax.Array:
    def one(y: jax.Array) -> jax.Array:
        return jax.vmap(likelihood.log_prob, (0, 0, None))(draws.params, draws.outputs, y[:, None])

    return jnp.exp(jax.lax.map(one, at.T).transpose(1, 2, 0))


@jax.jit
def _bin_mass(likelihood: Likelihood, draws: Flat, ends: jax.Array) -> jax.Array:
    def one(y: jax.Array) -> jax.Array:
        return jax.vmap(likelihood.cdf, (0, 0, None))(draws.params, draws.outputs, y[:, None])[..., 0]

    below = jax.lax.map(one, ends.T).transpose(1, 2, 0).at[..., -1].set(1.0)  # the last bin has all that is beyond
    return jnp.maximum(jnp.diff(below, prepend=0.0), 0.0)


def _merge_bins(mass: np.ndarray) -> np.ndarray:
    """Two bins at a time, at the first of the two."""
    merged = np.zeros_like(mass)
    merged[..., ::2] = mass[..., ::2] + mass[..., 1::2]
    return merged


@partial(jax.jit, static_argnames="panels")
def _quadrature(
    likelihood: Likelihood, draws: Flat, rows: jax.Array, breaks: jax.Array, panels: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """y [K, n, J] and weights of both rules × density, in panels of t with y = m_k + 4 s_k t/(1 − t²), cut at the
    breaks [n, B]."""
    outputs = draws.outputs[:, rows]
    centre = jax.vmap(likelihood.mean)(draws.params, outputs)
    spread = STRETCH * jnp.sqrt(jax.vmap(likelihood.variance)(draws.params, outputs))
    z = (breaks - centre) / spread  # [K, n, B]
    inner = 2 * z / (1 + jnp.sqrt(1 + 4 * z * z))
    regular = jnp.broadcast_to(jnp.linspace(-1.0, 1.0, panels + 1), (*centre.shape[:2], panels + 1))
    edges = jnp.sort(jnp.concatenate([regular, inner], -1), -1)
    half = 0.5 * (edges[..., 1:] - edges[..., :-1])[..., None]
    middle = 0.5 * (edges[..., 1:] + edges[..., :-1])[..., None]
    limit = 1 - 1e-6  # in single precision 1 − t² must not be 0
    t = jnp.clip(middle + half * NODES, -limit, limit)
    below = 1 - t * t
    shape = (*centre.shape[:2], -1)
    y = centre + spread * (t / below).reshape(shape)
    slope = spread * ((1 + t * t) / (below * below)).reshape(shape)

    def density(ys: jax.Array) -> jax.Array:
        return jnp.exp(jax.vmap(likelihood.log_prob)(draws.params, outputs, ys[..., None]))

    p = jnp.nan_to_num(slope * jax.lax.map(density, jnp.moveaxis(y, -1, 0)).transpose(1, 2, 0), posinf=0.0)
    return y, (half * KRONROD).reshape(shape) * p, (half * GAUSS).reshape(shape) * p
