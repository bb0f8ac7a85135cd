"""Functionals of the predictive mixture p(y|x) = Σ_k w_k p(y | f_k(x), ν_k), for a chunk of inputs with all its draws.

Every function takes the likelihood and a `Flat` of draws and returns one value per input (and output). They are jitted
once for each likelihood's structure and shape.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.core import averages
from credo.core.capabilities import PartedLikelihood, capability
from credo.core.likelihood import Likelihood
from credo.core.posterior import Draws
from credo.core.typing import PyTree

Below = Callable[[jax.Array], jax.Array]  # is P(Y ≤ y) below the level?


class Flat(NamedTuple):
    """Draws with one leading axis over all members and draws."""

    outputs: jax.Array  # [K, n, out]
    params: PyTree  # the likelihood's parameters, leaves [K, ...]
    log_weights: jax.Array  # [K], normalised


def flatten(draws: Draws) -> Flat:
    """Members and draws as one axis, with equal weights where none are given."""
    members, each = draws.values.shape[:2]
    count = members * each
    merge = partial(jax.tree.map, lambda x: x.reshape(count, *x.shape[2:]))
    weights = draws.log_weights
    flat = jnp.full(count, -jnp.log(count)) if weights is None else weights.reshape(count)
    return Flat(merge(draws.values), merge(draws.likelihood), flat)


@jax.jit
def draw_moments(likelihood: Any, draws: Draws) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of y under every draw [member, draw, n, k]; of classes those of their indicators."""

    def of_one(params: PyTree, outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        if likelihood.kind == "classes":
            probs = jnp.exp(likelihood.log_probs(params, outputs))
            return probs, probs * (1 - probs)
        return likelihood.mean(params, outputs), likelihood.variance(params, outputs)

    return jax.vmap(jax.vmap(of_one))(draws.likelihood, draws.values)


def average(values: jax.Array, draws: Flat) -> jax.Array:
    """Σ_k w_k v_k."""
    return averages.average(values, draws.log_weights)


def each_draw(likelihood: Any, function: Callable[..., jax.Array], draws: Flat, *mapped: jax.Array) -> jax.Array:
    """`function(likelihood, ν_k, f_k, …)` of every draw [K, …]; `mapped` has the axis over draws, too.

    Example:
        >>> from credo.likelihoods import gaussian
        >>> draws = Flat(jnp.zeros((3, 2, 1)), {}, jnp.zeros(3))
        >>> each_draw(gaussian(0.1), lambda one, params, f: one.mean(params, f), draws).shape
        (3, 2, 1)
    """
    parted = capability(likelihood, PartedLikelihood)
    if parted is not None:
        return parted.over_draws(function, draws.params, draws.outputs, *mapped)
    return jax.vmap(partial(function, likelihood))(draws.params, draws.outputs, *mapped)


def means_of(likelihood: Any, draws: Flat) -> jax.Array:
    """E[y | f_k, ν_k] [K, n, k]."""
    return each_draw(likelihood, lambda one, params, f: one.mean(params, f), draws)


def variances_of(likelihood: Any, draws: Flat) -> jax.Array:
    """Var[y | f_k, ν_k] [K, n, k]."""
    return each_draw(likelihood, lambda one, params, f: one.variance(params, f), draws)


@jax.jit
def values_of(likelihood: Any, draws: Flat) -> jax.Array:
    """Means of every draw: E[y | f_k, ν_k] [K, n, k], or the probabilities of the classes."""
    if likelihood.kind != "classes":
        return means_of(likelihood, draws)
    return jnp.exp(each_draw(likelihood, lambda one, params, f: one.log_probs(params, f), draws))


def log_probs_of(likelihood: Any, draws: Flat, targets: jax.Array) -> jax.Array:
    """log p(y | f_k, ν_k) [K, n] at the same y for all draws."""
    return each_draw(likelihood, lambda one, params, f: one.log_prob(params, f, targets), draws)


def peaks_of(likelihood: Any, draws: Flat, targets: jax.Array) -> jax.Array:
    """log p(y_k | f_k, ν_k) [K, n] at another y for each draw [K, n, k]."""
    return each_draw(likelihood, lambda one, params, f, y: one.log_prob(params, f, y), draws, targets)


@jax.jit
def moments(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """Mean, aleatoric and epistemic variance (see `averages.moments_of`)."""
    means, variances = means_of(likelihood, draws), variances_of(likelihood, draws)
    return averages.moments_of(means, variances, draws.log_weights)


@jax.jit
def class_summary(likelihood: Any, draws: Flat) -> dict[str, jax.Array]:
    """Probabilities and entropies (see `averages.class_summary_of`)."""
    log_probs = each_draw(likelihood, lambda one, params, f: one.log_probs(params, f), draws)
    entropies = each_draw(likelihood, lambda one, params, f: one.entropy(params, f), draws)
    return averages.class_summary_of(log_probs, entropies, draws.log_weights)


@jax.jit
def log_prob(likelihood: Likelihood, draws: Flat, targets: jax.Array) -> jax.Array:
    """log Σ_k w_k p(y | f_k) [n]."""
    return averages.log_average(log_probs_of(likelihood, draws, targets), draws.log_weights)


@jax.jit
def cdf(likelihood: Likelihood, draws: Flat, targets: jax.Array) -> jax.Array:
    """Σ_k w_k P(Y ≤ y | f_k) [n, k], entry by entry."""
    probabilities = each_draw(likelihood, lambda one, params, f: one.cdf(params, f, targets), draws)
    return jnp.clip(average(probabilities, draws), 0.0, 1.0)


@jax.jit
def quantile(likelihood: Likelihood, draws: Flat, level: jax.Array) -> jax.Array:
    """The smallest y with P(Y ≤ y) ≥ level [n, k], by bisection of the mixture's CDF."""

    def below(y: jax.Array, _: Any = None) -> jax.Array:
        return cdf(likelihood, draws, y) < level

    summary = moments(likelihood, draws)
    if likelihood.kind != "counts":
        return _quantile_of_reals(below, jnp.zeros_like(summary["mean"]))
    spread = jnp.sqrt(summary["aleatoric"] + summary["epistemic"])
    return averages.count_quantile(below, summary["mean"], spread, level)


def _quantile_of_reals(below: Below, like: jax.Array) -> jax.Array:
    """Bisection over all floating-point numbers up to 10³⁰ in their order, as whole numbers: right to the last digit.

    A bracket from mean and spread would be too wide where one draw extrapolates. The CDF (slow to compile for some
    likelihoods) occurs once in the program.
    """
    integers: Any = jnp.int32 if like.dtype.itemsize == 4 else jnp.int64
    lowest = jnp.iinfo(integers).min

    def at(order: jax.Array) -> jax.Array:
        # The bits of a negative number are those of its size and the sign.
        return jax.lax.bitcast_convert_type(jnp.where(order >= 0, order, lowest - order), like.dtype)

    def halve(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum may overflow
        lower = below(at(middle))
        return jnp.where(lower, middle, low), jnp.where(lower, high, middle)

    top = jax.lax.bitcast_convert_type(jnp.full_like(like, 1e30), integers)
    return at(jax.lax.fori_loop(0, 8 * like.dtype.itemsize, halve, (-top, top))[1])


@partial(jax.jit, static_argnames="num")
def sample(likelihood: Likelihood, draws: Flat, key: jax.Array, num: int, chunk: jax.Array) -> jax.Array:
    """`num` draws of y for every input [num, n, k] ([num, n] for classes): one θ for all chunks, noise of their own."""
    key_pick, key_noise = jax.random.split(key)
    key_noise = jax.random.fold_in(key_noise, chunk)
    indices = jax.random.categorical(key_pick, draws.log_weights, shape=(num,))

    def one(k: jax.Array, index: jax.Array) -> jax.Array:
        return likelihood.sample(k, jax.tree.map(lambda x: x[index], draws.params), draws.outputs[index])

    return jax.lax.map(lambda pair: one(*pair), (jax.random.split(key_noise, num), indices))
