"""BlackJAX's stochastic-gradient kernels as its users write them: a hand-written scan, minibatches gathered on the
device."""

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from cases import problems
from cases.measure import Measured, require_finite, steady
from cases.problems import Sizes
from jax.scipy.stats import norm

Weights = dict[str, jax.Array]
Step = Callable[[jax.Array, Weights, Any], Weights]
LEAPFROGS = 10  # gradients of one SGHMC call, all on the call's minibatch


def log_joint(weights: Weights, batch: tuple[jax.Array, jax.Array], scale: float) -> jax.Array:
    """Log density of a batch, its likelihood times ``scale`` = N / M, and standard-normal priors."""
    x, y = batch
    hidden = jax.nn.relu(x @ weights["first"] + weights["first_bias"])
    logits = hidden @ weights["second"] + weights["second_bias"]
    likelihood = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).sum()
    return scale * likelihood + sum(norm.logpdf(leaf).sum() for leaf in jax.tree.leaves(weights))


def chain(seed: int, sizes: Sizes, step: Step, per_call: int) -> Measured:
    """Gradients per second of one chain; every ``image_thin``-th position is kept."""
    start = jax.tree.map(jnp.asarray, problems.image_weights(sizes))
    x, y = map(jnp.asarray, problems.images(sizes, sizes.image_rows))
    rows, batch = sizes.image_rows, sizes.image_batch

    def call(weights: Weights, key: jax.Array) -> tuple[Weights, None]:
        batch_key, step_key = jax.random.split(key)
        index = jax.random.randint(batch_key, (batch,), 0, rows)
        return step(step_key, weights, (x[index], y[index])), None

    def thinned(weights: Weights, keys: jax.Array) -> tuple[Weights, Weights]:
        weights, _ = jax.lax.scan(call, weights, keys)
        return weights, weights

    @jax.jit
    def sample(key: jax.Array) -> Weights:
        keys = jax.random.split(key, (sizes.image_steps // sizes.image_thin, sizes.image_thin // per_call))
        return jax.lax.scan(thinned, start, keys)[1]

    keys = iter(jax.random.split(jax.random.key(seed), 2 + sizes.repeats))
    last: list[Weights] = []

    def run() -> None:
        last[:] = [jax.block_until_ready(sample(next(keys)))]

    result = steady(run, sizes.image_steps, sizes.repeats)
    require_finite("draws", last[0]["second"])
    result.facts = {"steps": sizes.image_steps}
    return result


def gradient(sizes: Sizes) -> Callable[[Weights, Any], Weights]:
    """The estimator of the gradient that the kernels are given."""
    scale = sizes.image_rows / sizes.image_batch
    return jax.grad(lambda weights, batch: log_joint(weights, batch, scale))


def sgld(seed: int, sizes: Sizes) -> Measured:
    """``blackjax.sgld``: one gradient a call."""
    kernel = blackjax.sgld(gradient(sizes))
    return chain(seed, sizes, lambda key, w, batch: kernel.step(key, w, batch, sizes.langevin_step), 1)


def sghmc(seed: int, sizes: Sizes) -> Measured:
    """``blackjax.sghmc``: ten gradients a call, with one minibatch for all of them."""
    kernel = blackjax.sghmc(gradient(sizes), LEAPFROGS, sizes.hamiltonian_friction)
    return chain(seed, sizes, lambda key, w, batch: kernel.step(key, w, batch, sizes.hamiltonian_step), LEAPFROGS)
