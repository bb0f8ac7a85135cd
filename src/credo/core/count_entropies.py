"""Entropies of a mixture of counts, whatever their rates."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import bucket
from credo.core.count_places import cauchy, count_places, count_range, geometric, parts, spacing
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, log_probs_of
from credo.core.typing import PyTree

PLACES = 2048  # counts that are looked at in a row; all of them where there are no more
OWN_PLACES = 1024  # for the entropy of one part
REACH = 80.0  # widths around the mean of one part
SHARP = 2e-4  # of its mean: a width that single precision does not resolve


def count_entropies(likelihood: Likelihood, draws: Flat) -> dict[str, Any]:
    """H[p], E_k H[p_k] and the mutual information H[p] − E_k H[p_k] of one count, each [n].

    Exact sums over all counts up to 2,048 of them. Beyond, the sum over places that belong to the parts of the mixture
    (`count_places`), each of which stands for the counts around it.
    """
    low, high = count_range(likelihood, draws)
    wide = (high - low)[:, 0] >= PLACES
    ends = tuple(jnp.asarray(x, jnp.float32) for x in (low, high))
    most = np.ceil((high - low)[~wide].max(initial=0.0)) + 1
    found = {name: np.array(x) for name, x in _summed(likelihood, draws, *ends, jnp.int32(most)).items()}
    if not wide.any():
        return found
    rows = np.flatnonzero(wide)
    padded = np.pad(rows, (0, bucket(len(rows)) - len(rows)), mode="edge")  # few shapes, few programs
    some = draws._replace(outputs=draws.outputs[:, padded])
    places = count_places(likelihood, some, *(x[padded] for x in ends), PLACES)
    for name, x in _placed(likelihood, some, places).items():
        found[name][rows] = np.asarray(x)[: len(rows)]
    return found


def mixture_and_gain(each: jax.Array, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """log p(y) [n] of log p_k(y) [K, n], and KL[p(k|y) ‖ w] [n], what y tells about k: its mean over y is the mutual
    information, and it lies between 0 and −log min w, so that no rule for that mean goes far wrong."""
    joint = each + draws.log_weights[:, None]
    top = joint.max(0)
    share = jnp.exp(joint - top)
    total = share.sum(0)
    whole = top + jnp.log(total)
    return whole, jnp.where(share > 0, share * (each - whole), 0.0).sum(0) / total


@jax.jit
def _summed(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array, most: jax.Array) -> dict[str, Any]:
    """Sums over `most` whole numbers from low on."""

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        each = log_probs_of(likelihood, draws, low + i)
        whole, gain = mixture_and_gain(each, draws)
        return sums + jnp.nan_to_num(jnp.exp(whole) * jnp.stack([-whole, gain]))

    total, known = jax.lax.fori_loop(0, most, add, jnp.zeros((2, len(low))))
    known = jnp.maximum(known, 0.0)
    return {"entropy": total, "conditional_entropy": total - known, "mutual_information": known}


@jax.jit
def _placed(likelihood: Likelihood, draws: Flat, places: jax.Array) -> dict[str, jax.Array]:
    """Σ_k w_k H[p_k] and Σ_k w_k E_k[KL[p(k|y) ‖ w]], row by row; each part's sums are divided by its own mass."""
    centres, widths = parts(likelihood, draws)
    weights = jax.nn.softmax(draws.log_weights)

    def one(row: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        outputs, y, centre, width = row
        at = jax.vmap(partial(_at, likelihood), (0, 0, None))(draws.params, outputs, y)
        gain = mixture_and_gain(at, draws)[1]
        mass = jnp.exp(at) * spacing(y)
        known = jnp.where(mass.sum(1) > 0, (mass * gain).sum(1) / mass.sum(1), -draws.log_weights)
        noise = jax.vmap(partial(_own_entropy, likelihood))(draws.params, outputs, centre, width)
        return weights @ noise, jnp.maximum(weights @ known, 0.0)

    noise, known = jax.lax.map(one, (jnp.moveaxis(draws.outputs, 1, 0), places, centres.T, widths.T))
    return {"entropy": noise + known, "conditional_entropy": noise, "mutual_information": known}


def _at(likelihood: Likelihood, params: PyTree, outputs: jax.Array, y: jax.Array) -> jax.Array:
    """log p(y) [J] of one part at one input, at places [J]."""
    return likelihood.log_prob(params, jnp.broadcast_to(outputs, (len(y), *outputs.shape)), y[:, None])


def _own_entropy(
    likelihood: Likelihood, params: PyTree, outputs: jax.Array, centre: jax.Array, width: jax.Array
) -> jax.Array:
    """H[p_k] of one part at one input: a sum over its own places.

    Half of them lie around the mean and half ever further apart from the lowest on, for mass near 0 and long tails.
    Where the width is so small beside the mean that single precision has no counts between, the part is a sum of very
    many events: ½ log 2πe s².
    """
    half = OWN_PLACES // 2
    low, high = jnp.maximum(jnp.floor(centre - REACH * width), 0.0), centre + REACH * width
    around = centre + width * cauchy((np.arange(half) + 0.5) / half)
    y = jnp.concatenate([around, geometric(low, high, half)])
    y = jnp.sort(jnp.clip(jnp.round(y), low, high))
    log_p = _at(likelihood, params, outputs, y)
    mass = jnp.exp(log_p) * spacing(y)
    placed = -jnp.where(mass > 0, mass * log_p, 0.0).sum() / mass.sum()
    return jnp.where(width < SHARP * centre, 0.5 + jnp.log(math.sqrt(2 * math.pi) * width), placed)
