"""Entropies of a mixture of counts, whatever their rates."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import bucket
from credo.core.count_nodes import cauchy, components, count_nodes, count_range, geometric, spacing
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, log_probs_of
from credo.core.typing import PyTree

NODES = 2048  # for each row; all counts where there are no more
COMPONENT_NODES = 1024  # for the entropy of one component
REACH = 80.0  # widths around the mean of one component
SHARP = 2e-4  # of its mean: a width that single precision does not resolve


def count_entropies(likelihood: Likelihood, draws: Flat) -> dict[str, Any]:
    """H[p], E_k H[p_k] and the mutual information H[p] − E_k H[p_k] of one count, each [n].

    Exact sums over up to 2,048 counts. Beyond, quadrature over nodes around the components of the mixture
    (`count_nodes`).
    """
    low, high = count_range(likelihood, draws)
    wide = (high - low)[:, 0] >= NODES
    ends = tuple(jnp.asarray(x, jnp.float32) for x in (low, high))
    most = np.ceil((high - low)[~wide].max(initial=0.0)) + 1
    result = {name: np.array(x) for name, x in _range_sum(likelihood, draws, *ends, jnp.int32(most)).items()}
    if not wide.any():
        return result
    rows = np.flatnonzero(wide)
    padded = np.pad(rows, (0, bucket(len(rows)) - len(rows)), mode="edge")  # few shapes, few programs
    wide_draws = draws._replace(outputs=draws.outputs[:, padded])
    nodes = count_nodes(likelihood, wide_draws, *(x[padded] for x in ends), NODES)
    for name, x in _node_sum(likelihood, wide_draws, nodes).items():
        result[name][rows] = np.asarray(x)[: len(rows)]
    return result


def mixture_and_gain(log_probs: jax.Array, draws: Flat) -> tuple[jax.Array, jax.Array]:
    """log p(y) [n] of log p_k(y) [K, n], and the information gain KL[p(k|y) ‖ w] [n] of y about k.

    The mean of the gain over y is the mutual information. The gain lies between 0 and −log min w, so that no quadrature
    of that mean goes far wrong.
    """
    joint = log_probs + draws.log_weights[:, None]
    top = joint.max(0)
    share = jnp.exp(joint - top)
    scale = share.sum(0)
    log_mixture = top + jnp.log(scale)
    return log_mixture, jnp.where(share > 0, share * (log_probs - log_mixture), 0.0).sum(0) / scale


@jax.jit
def _range_sum(likelihood: Likelihood, draws: Flat, low: jax.Array, high: jax.Array, most: jax.Array) -> dict[str, Any]:
    """Sums over `most` whole numbers from low on."""

    def add(i: jax.Array, sums: jax.Array) -> jax.Array:
        log_probs = log_probs_of(likelihood, draws, low + i)
        log_mixture, gain = mixture_and_gain(log_probs, draws)
        return sums + jnp.nan_to_num(jnp.exp(log_mixture) * jnp.stack([-log_mixture, gain]))

    entropy, information = jax.lax.fori_loop(0, most, add, jnp.zeros((2, len(low))))
    information = jnp.maximum(information, 0.0)
    return {"entropy": entropy, "conditional_entropy": entropy - information, "mutual_information": information}


@jax.jit
def _node_sum(likelihood: Likelihood, draws: Flat, nodes: jax.Array) -> dict[str, jax.Array]:
    """Σ_k w_k H[p_k] and Σ_k w_k E_k[KL[p(k|y) ‖ w]] for each row; each component's sums are divided by its mass."""
    centres, widths = components(likelihood, draws)
    weights = jax.nn.softmax(draws.log_weights)

    def one(row: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        outputs, y, centre, width = row
        log_p = jax.vmap(partial(_log_probs, likelihood), (0, 0, None))(draws.params, outputs, y)
        gain = mixture_and_gain(log_p, draws)[1]
        mass = jnp.exp(log_p) * spacing(y)
        information = jnp.where(mass.sum(1) > 0, (mass * gain).sum(1) / mass.sum(1), -draws.log_weights)
        noise = jax.vmap(partial(_component_entropy, likelihood))(draws.params, outputs, centre, width)
        return weights @ noise, jnp.maximum(weights @ information, 0.0)

    noise, information = jax.lax.map(one, (jnp.moveaxis(draws.outputs, 1, 0), nodes, centres.T, widths.T))
    return {"entropy": noise + information, "conditional_entropy": noise, "mutual_information": information}


def _log_probs(likelihood: Likelihood, params: PyTree, outputs: jax.Array, y: jax.Array) -> jax.Array:
    """log p(y) [J] of one component at one input, at nodes y [J]."""
    return likelihood.log_prob(params, jnp.broadcast_to(outputs, (len(y), *outputs.shape)), y[:, None])


def _component_entropy(
    likelihood: Likelihood, params: PyTree, outputs: jax.Array, centre: jax.Array, width: jax.Array
) -> jax.Array:
    """H[p_k] of one component at one input: a sum over nodes of its own.

    Half of the nodes lie around the mean, half ever further apart from the lowest on, for mass near 0 and long tails.
    Where single precision does not resolve the width, the component is a sum of very many events: ½ log 2πe s².
    """
    half = COMPONENT_NODES // 2
    low, high = jnp.maximum(jnp.floor(centre - REACH * width), 0.0), centre + REACH * width
    nearby = centre + width * cauchy((np.arange(half) + 0.5) / half)
    y = jnp.concatenate([nearby, geometric(low, high, half)])
    y = jnp.sort(jnp.clip(jnp.round(y), low, high))
    log_p = _log_probs(likelihood, params, outputs, y)
    mass = jnp.exp(log_p) * spacing(y)
    entropy = -jnp.where(mass > 0, mass * log_p, 0.0).sum() / mass.sum()
    return jnp.where(width < SHARP * centre, 0.5 + jnp.log(math.sqrt(2 * math.pi) * width), entropy)
