"""Functionals of the predictive mixture p(y|x) = Σ_k w_k p(y | f_k(x), ν_k), for a chunk of inputs with all its draws.

Every function takes the likelihood and a `Flat` of draws and returns one value per input (and output). They are jitted
once for each likelihood's structure and shape.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from credo.core.likelihood import Likelihood
from credo.core.posterior import Draws
from credo.core.typing import PyTree

Below = Callable[[jax.Array], jax.Array]  # is P(Y ≤ y) below the level?
MOST = 1e18  # of a count: distribution functions go no further


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


def average(values: jax.Array, draws: Flat) -> jax.Array:
    """Σ_k w_k v_k, summed as deviations from one draw: many large numbers would lose what separates them."""
    weights = jax.nn.softmax(draws.log_weights)
    return values[0] + jnp.tensordot(weights, values - values[0], 1)


@jax.jit
def moments(likelihood: Likelihood, draws: Flat) -> dict[str, jax.Array]:
    """Mean, E[Var[y|f]] (aleatoric) and Var[E[y|f]] (epistemic), each centred before it is squared (G2)."""
    means = jax.vmap(likelihood.mean)(draws.params, draws.outputs)
    mean = average(means, draws)
    spread = average((means - mean) ** 2, draws)
    noise = average(jax.vmap(likelihood.variance)(draws.params, draws.outputs), draws)
    return {"mean": mean, "aleatoric": noise, "epistemic": spread}


@jax.jit
def class_summary(likelihood: Any, draws: Flat) -> dict[str, jax.Array]:
    """p, Std_k[p_k], total entropy H[p], aleatoric E[H[p_k]] and epistemic H[p] − E[H[p_k]] ≥ 0 (G2)."""
    log_probs = jax.vmap(likelihood.log_probs)(draws.params, draws.outputs)
    each = jnp.exp(log_probs)
    mean = jnp.clip(average(each, draws), 0.0, 1.0)  # weights that were rounded sum to a little more than 1
    std = jnp.sqrt(average((each - mean) ** 2, draws))
    total = -jax.scipy.special.xlogy(mean, mean).sum(-1)
    noise = average(jax.vmap(likelihood.entropy)(draws.params, draws.outputs), draws)
    # Mutual information as the mean KL[p_k‖p], which cannot come out negative by cancellation.
    log_mean = logsumexp(log_probs + draws.log_weights[:, None, None], axis=0)
    divergence = jnp.where(each > 0, each * (log_probs - log_mean), 0.0).sum(-1)
    known = jnp.maximum(average(divergence, draws), 0.0)
    parts = {"mean": mean, "log_mean": log_mean, "probs_std": std}
    return parts | {"entropy": total, "aleatoric": noise, "epistemic": known}


@jax.jit
def log_prob(likelihood: Likelihood, draws: Flat, targets: jax.Array) -> jax.Array:
    """log Σ_k w_k p(y | f_k) [n]."""
    each = jax.vmap(likelihood.log_prob, (0, 0, None))(draws.params, draws.outputs, targets)
    return logsumexp(each + draws.log_weights[:, None], axis=0)


@jax.jit
def cdf(likelihood: Likelihood, draws: Flat, targets: jax.Array) -> jax.Array:
    """Σ_k w_k P(Y ≤ y | f_k) [n, k], entry by entry."""
    found = average(jax.vmap(likelihood.cdf, (0, 0, None))(draws.params, draws.outputs, targets), draws)
    return jnp.clip(found, 0.0, 1.0)


@jax.jit
def quantile(likelihood: Likelihood, draws: Flat, level: jax.Array) -> jax.Array:
    """The smallest y with P(Y ≤ y) ≥ level [n, k], by bisection of the mixture's CDF."""

    def below(y: jax.Array) -> jax.Array:
        return cdf(likelihood, draws, y) < level

    found = moments(likelihood, draws)
    if likelihood.kind != "counts":
        return _quantile_of_reals(below, jnp.zeros_like(found["mean"]))
    return _quantile_of_counts(below, found["mean"], jnp.sqrt(found["aleatoric"] + found["epistemic"]), level)


def _quantile_of_reals(below: Below, like: jax.Array) -> jax.Array:
    """Bisection over all floating-point numbers up to 10³⁰ in their order, as whole numbers: right to the last digit.

    A bracket from mean and spread would be too wide where one draw extrapolates: then the steps are too long for the
    others. The CDF (slow to compile for some likelihoods) stands in the program once.
    """
    whole: Any = jnp.int32 if like.dtype.itemsize == 4 else jnp.int64
    lowest = jnp.iinfo(whole).min

    def at(order: jax.Array) -> jax.Array:
        # The bits of a negative number are those of its size and the sign.
        return jax.lax.bitcast_convert_type(jnp.where(order >= 0, order, lowest - order), like.dtype)

    def halve(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their sum may be beyond all whole numbers
        lower = below(at(middle))
        return jnp.where(lower, middle, low), jnp.where(lower, high, middle)

    top = jax.lax.bitcast_convert_type(jnp.full_like(like, 1e30), whole)
    return at(jax.lax.fori_loop(0, 8 * like.dtype.itemsize, halve, (-top, top))[1])


def _quantile_of_counts(below: Below, mean: jax.Array, spread: jax.Array, level: jax.Array) -> jax.Array:
    """Bisection over whole numbers between Cantelli's ends mean − spread √((1−p)/p) and mean + spread √(p/(1−p)).

    Whole numbers are exact in single precision up to 2²⁴, however large mean and spread are: one draw that extrapolates
    can make them huge and leave the quantile small. Halves are equal in log(y + 2), so that huge ends cost few steps.
    """
    # One draw may go beyond all numbers: then nothing is known of the ends. A level may round to 1.
    mean = jnp.nan_to_num(mean, nan=MOST, posinf=MOST)
    spread = jnp.maximum(jnp.nan_to_num(spread, nan=jnp.inf, posinf=jnp.inf), 1e-6)
    slack = 1.0 + 0.01 * spread + 1e-5 * mean  # what rounding may have moved the ends by
    low = jnp.floor(jnp.maximum(mean - spread * jnp.sqrt((1.0 - level) / level) - slack, -1.0))
    high = jnp.floor(jnp.minimum(mean + spread * jnp.sqrt(level / (1.0 - level)) + slack, MOST))

    def between(low: jax.Array, high: jax.Array) -> jax.Array:
        return jnp.clip(jnp.floor(jnp.sqrt((low + 2.0) * (high + 2.0))) - 2.0, low + 1.0, high - 1.0)

    def apart(ends: tuple[jax.Array, jax.Array]) -> jax.Array:
        middle = between(*ends)
        return ((middle > ends[0]) & (middle < ends[1])).any()

    def halve(ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = between(low, high)
        inside, lower = (middle > low) & (middle < high), below(middle)
        return jnp.where(inside & lower, middle, low), jnp.where(inside & ~lower, middle, high)

    return jax.lax.while_loop(apart, halve, (low, high))[1]


@partial(jax.jit, static_argnames="num")
def sample(likelihood: Likelihood, draws: Flat, key: jax.Array, num: int, chunk: jax.Array) -> jax.Array:
    """`num` draws of y for every input [num, n, k] ([num, n] for classes): one θ for all chunks, noise of their own."""
    key_pick, key_noise = jax.random.split(key)
    key_noise = jax.random.fold_in(key_noise, chunk)
    pick = jax.random.categorical(key_pick, draws.log_weights, shape=(num,))

    def one(k: jax.Array, index: jax.Array) -> jax.Array:
        return likelihood.sample(k, jax.tree.map(lambda x: x[index], draws.params), draws.outputs[index])

    return jax.lax.map(lambda pair: one(*pair), (jax.random.split(key_noise, num), pick))
