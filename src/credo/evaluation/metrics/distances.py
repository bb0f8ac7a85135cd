"""CRPS and energy score of every row of a predictive, chunk by chunk."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import NormalLikelihood, ask
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat, means_of, variances_of
from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.evaluation.metrics import arrays

PAIRS = 256  # components up to which all pairs cost no more than the integral
NUMBERS = 2**22  # drawn at once


def crps(predictive: Predictive, targets: Any, draws: int, seed: int) -> np.ndarray:
    """CRPS of every row and output [n, k], on the scale of the targets."""
    if ask(predictive.likelihood, NormalLikelihood).normal:
        return predictive.by_chunk(_normal, targets)
    return predictive.by_chunk(_sampled(_crps_draws, draws, seed), targets)


def energy(predictive: Predictive, targets: Any, draws: int, seed: int) -> np.ndarray:
    """The energy score of every row [n], on the scale of the targets."""
    return predictive.by_chunk(_sampled(_energy_draws, draws, seed), targets)


@jax.jit
def _normal(likelihood: Likelihood, draws: Flat, y: jax.Array, scale: jax.Array) -> jax.Array:
    means, stds = means_of(likelihood, draws), jnp.sqrt(variances_of(likelihood, draws))
    exact = len(means) <= PAIRS
    form = arrays.crps_normal_mixture if exact else arrays.crps_normal_mixture_integral
    return scale * form(means, stds, jax.nn.softmax(draws.log_weights), y)


def _two_samples(likelihood: Likelihood, draws: Flat, key: jax.Array, num: int) -> tuple[jax.Array, jax.Array]:
    """`num` draws of y [num, n, k] in two independent halves."""
    first, second = jax.random.split(key)
    return _draws(likelihood, draws, first, num - num // 2), _draws(likelihood, draws, second, num // 2)


def _draws(likelihood: Likelihood, draws: Flat, key: jax.Array, num: int) -> jax.Array:
    """`num` draws of y [num, n, k], spread over the components as evenly as their weights allow.

    Each has the law of the mixture, over the random start; two of them do not have two components by chance.
    """
    key_start, key_noise = jax.random.split(key)
    levels = (jnp.arange(num) + jax.random.uniform(key_start)) / num
    weights = jax.nn.softmax(draws.log_weights)
    picks = jnp.clip(jnp.searchsorted(jnp.cumsum(weights), levels), 0, len(weights) - 1)
    params, outputs = jax.tree.map(lambda x: x[picks], (draws.params, draws.outputs))
    return jax.vmap(likelihood.sample)(jax.random.split(key_noise, num), params, outputs)


@partial(jax.jit, static_argnames="num")
def _crps_draws(likelihood: Likelihood, draws: Flat, y: jax.Array, scale: jax.Array, key: jax.Array, num: int) -> Any:
    return scale * arrays.crps_two_samples(*_two_samples(likelihood, draws, key, num), y)


@partial(jax.jit, static_argnames="num")
def _energy_draws(likelihood: Likelihood, draws: Flat, y: jax.Array, scale: jax.Array, key: jax.Array, num: int) -> Any:
    first, second = _two_samples(likelihood, draws, key, num)
    return arrays.energy_two_samples(scale * first, scale * second, scale * y)


def _sampled(function: Callable[..., jax.Array], num: int, seed: int) -> Callable[..., jax.Array]:
    """The function applied to blocks of rows so small that their draws of y fit into memory."""
    if num < 2:
        raise InputError(f"A score from draws needs at least 2 of them, got {num}.")

    number = itertools.count()  # of the block, over all chunks: their errors are independent, so that a mean has less

    def chunk(likelihood: Likelihood, draws: Flat, y: jax.Array, scale: jax.Array) -> jax.Array:
        rows, outputs = y.shape
        block = max(1, min(rows, NUMBERS // (num * outputs)))
        parts = []
        for start in range(0, rows, block):
            where = jnp.minimum(jnp.arange(start, start + block), rows - 1)
            part = draws._replace(outputs=draws.outputs[:, where])
            key = jax.random.fold_in(jax.random.key(seed), next(number))
            parts.append(function(likelihood, part, y[where], scale[where], key, num))
        return jnp.concatenate(parts)[:rows]

    return chunk
