"""BlackJAX as its users write it: the kernel's step inside a hand-written scan, chains under vmap."""

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.vi import meanfield_vi
from cases import problems
from cases.measure import Measured, require_finite, steady
from cases.problems import Sizes
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm

Weights = dict[str, jax.Array]


def log_joint(weights: Weights, x: jax.Array, y: jax.Array, scale: float = 1.0) -> jax.Array:
    """Log density of a batch, its likelihood times ``scale`` = N / M, and standard-normal priors."""
    hidden = jax.nn.relu(x @ weights["first"] + weights["first_bias"])
    mean = hidden @ weights["second"] + weights["second_bias"]
    likelihood = norm.logpdf(y, mean, jnp.exp(weights["log_noise"])).sum()
    return scale * likelihood + sum(norm.logpdf(leaf).sum() for leaf in jax.tree.leaves(weights))


def setting(sizes: Sizes) -> tuple[Weights, jax.Array, jax.Array]:
    """Start weights, inputs and targets on the device."""
    start = jax.tree.map(jnp.asarray, problems.start_weights(sizes))
    x, y = map(jnp.asarray, problems.regression(sizes))
    return start, x, y


def mfvi(seed: int, sizes: Sizes) -> Measured:
    """``meanfield_vi.step`` with one draw per step; the noise scale has a factor of its own."""
    start, x, y = setting(sizes)
    optimiser = optax.adam(sizes.learning_rate)
    rows, batch = sizes.num_data, sizes.batch_size

    def step(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        batch_key, noise_key = jax.random.split(key)
        index = jax.random.randint(batch_key, (batch,), 0, rows)

        def target(weights: Weights) -> jax.Array:
            return log_joint(weights, x[index], y[index], rows / batch)

        state, info = meanfield_vi.step(noise_key, state, target, optimiser, num_samples=1)
        return state, info.elbo

    @jax.jit
    def fit(key: jax.Array) -> tuple[Any, jax.Array]:
        keys = jax.random.split(key, sizes.steps)
        return jax.lax.scan(step, meanfield_vi.init(start, optimiser), keys)

    keys = iter(jax.random.split(jax.random.key(seed), 2 + sizes.repeats))
    last: list[jax.Array] = []

    def run() -> None:
        last[:] = [jax.block_until_ready(fit(next(keys)))[1]]

    result = steady(run, sizes.steps, sizes.repeats)
    losses = require_finite("losses", last[0])
    result.facts = {"steps": losses.size, "last_loss": float(losses[-100:].mean())}
    return result


def chain_of(sizes: Sizes) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
    """One HMC chain from a key: positions and acceptance of every draw."""
    start, x, y = setting(sizes)
    flat, unravel = ravel_pytree(start)
    hmc = blackjax.hmc(
        lambda position: log_joint(unravel(position), x, y),
        step_size=sizes.step_size,
        inverse_mass_matrix=jnp.ones_like(flat),
        num_integration_steps=sizes.leapfrogs,
    )

    def step(state: Any, key: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        state, info = hmc.step(key, state)
        return state, (state.position, info.num_integration_steps)

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.scan(step, hmc.init(flat), jax.random.split(key, sizes.hmc_draws))[1]

    return chain


def hmc(seed: int, sizes: Sizes) -> Measured:
    """Gradients per second of vmapped chains with fixed step size and trajectory."""
    chains = jax.jit(jax.vmap(chain_of(sizes)))
    keys = iter(jax.random.split(jax.random.key(seed), (2 + sizes.repeats, sizes.chains)))
    last: list[Any] = []

    def run() -> None:
        last[:] = jax.block_until_ready(chains(next(keys)))

    work = sizes.chains * sizes.hmc_draws * sizes.leapfrogs
    result = steady(run, work, sizes.repeats)
    require_finite("draws", last[0])
    leapfrogs = int(np.asarray(last[1]).sum())
    if leapfrogs != work:
        raise AssertionError(f"{leapfrogs} leapfrogs where {work} were to be timed")
    result.facts = {"gradients": work, "chains": sizes.chains}
    return result
