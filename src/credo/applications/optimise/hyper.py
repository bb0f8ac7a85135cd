"""Hyper-parameters of the reference surrogate: their evidence, their prior, the maximum and draws around it."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import hmc
from blackjax.mcmc.hmc import HMCState

from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.methods.function_space.infinite.search import Search, climb
from credo.methods.function_space.kernels import Matern52

LEAST, MOST = 1e-8, 1.0  # variance of the noise; targets have variance 1
JITTER = 1e-8  # of the variance, so that rows that repeat leave the matrix regular
SPREAD = 0.5  # standard deviation of log length scales around their common level
STEPS = 80  # of the search from each start
MOVES, LEAPS = 10, 6  # of each chain, and steps of the leapfrog in each move
STEP = 0.15  # of the leapfrog: the data determine logarithms of scales to some tenths

KERNEL = hmc.build_kernel()


@struct
class Matern(Matern52):
    """`credo.methods.function_space.Matern52` with its diagonal."""

    def diagonal(self, x: jax.Array) -> jax.Array:
        """k(x_i, x_i) [n]."""
        return jnp.broadcast_to(jnp.asarray(self.scale) ** 2, x.shape[:1])


def level(width: int) -> float:
    """The prior's mean of log length scales: distances in the unit cube grow as √d. Hvarfner et al. (2024)."""
    return 0.4 + 0.5 * float(np.log(width))


def log_prior(params: PyTree) -> jax.Array:
    """The log density of all logarithms and of the constant, normal every one.

    log ℓ_i = m + e_i with m ~ N(0.4 + ½ log d, 1) and e_i ~ N(0, ½²): a common level that grows as √d (Hvarfner,
    Hellsten and Nardi, 2024, Vanilla Bayesian optimization performs great in high dimensions), around which a column
    has a length scale of its own as far as the values show one. Independent length scales explain the ripples of few
    points in many columns instead of what lies below them. log σ² ~ N(−8, 4²): most objectives have next to no noise,
    but what no smooth function explains is as good as noise.
    """
    length = params["length"]
    width, middle = len(length), length.mean()
    # m and the mean of e_i are not identified apart: the mean of log ℓ has the sum of their variances.
    relative = -0.5 * ((length - middle) ** 2).sum() / SPREAD**2
    common = -0.5 * (middle - level(width)) ** 2 / (1 + SPREAD**2 / width)
    noise = -0.5 * ((params["noise"] + 8.0) / 4.0) ** 2
    return relative + common + noise - 0.5 * params["scale"] ** 2 - 0.5 * params["constant"] ** 2


def log_evidence(params: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
    """log N(y; c, K + σ²I), σ² with a floor of 1e-8, over the rows with weight 1; those with weight 0 fill up.

    Args:
        params: "length" [d], "scale", "noise" (all logarithms; scale and noise of variances) and "constant".
        x, y, weight: rows [n, d], targets [n], 1 or 0 [n].
    """
    lower, rest = factor(params, x, y, weight)
    solved = jax.scipy.linalg.solve_triangular(lower, rest, lower=True)
    log_det = (weight * jnp.log(jnp.diagonal(lower))).sum()
    return -0.5 * solved @ solved - log_det - 0.5 * weight.sum() * jnp.log(2 * jnp.pi)


def kernel(params: PyTree) -> Matern:
    """The kernel of hyper-parameters."""
    return Matern(jnp.exp(0.5 * params["scale"]), jnp.exp(params["length"]))


def factor(params: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The Cholesky factor of K + σ²I, with those of the identity in rows of weight 0, and y − c."""
    gram = kernel(params)(x, x) * weight * weight[:, None]
    noise = LEAST + jnp.exp(params["noise"]) + JITTER * jnp.exp(params["scale"])
    lower = jnp.linalg.cholesky(gram + jnp.diag(jnp.where(weight > 0, noise, 1.0)))
    return lower, weight * (y - params["constant"])


def unpacked(vector: Any, width: int, noise: Any = None) -> PyTree:
    """Hyper-parameters by name; the noise is the vector's where it is not given."""
    noise = vector[width + 1] if noise is None else noise
    return {"length": vector[:width], "scale": vector[width], "noise": noise, "constant": vector[width + 2]}


def starts(width: int) -> np.ndarray:
    """Where the search begins: without noise, and with so much that a smooth function explains the rest [2, d + 3]."""
    return np.stack([np.concatenate([np.full(width, level(width) - 1.5), [0.0, noise, 0.0]]) for noise in (-8.0, -2.0)])


@partial(jax.jit, static_argnames="steps")
def maximise(
    begin: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array, noise: Any, steps: int = STEPS
) -> tuple[jax.Array, jax.Array]:
    """Where BFGS ends from each start [s, d + 3], and log evidence + log prior there [s]; one program for it all."""

    def value(vector: jax.Array) -> tuple[jax.Array, None]:
        params = unpacked(vector, x.shape[1], noise)
        return log_evidence(params, x, y, weight) + log_prior(params), None

    def one(start: jax.Array) -> tuple[jax.Array, jax.Array]:
        def more(state: Search) -> jax.Array:
            return ~state.done & (state.count < steps)

        end = jax.lax.while_loop(more, lambda state: climb(value, state, None)[0], Search.start(start))
        return end.at, end.value

    return jax.lax.map(one, begin)


@partial(jax.jit, static_argnames="num")
def sample(
    key: jax.Array, begin: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array, noise: Any, num: int
) -> tuple[jax.Array, jax.Array]:
    """Draws of hyper-parameters [num, d + 3] by Hamiltonian Monte Carlo from the maximum, and the share of moves taken.

    Each of the chains gives what it has after half of its moves and at its end. Neal (2011), MCMC using Hamiltonian
    dynamics. Snoek, Larochelle and Adams (2012), Practical Bayesian optimization of machine learning algorithms.
    """

    def value(vector: jax.Array) -> jax.Array:
        params = unpacked(vector, x.shape[1], noise)
        return log_evidence(params, x, y, weight) + log_prior(params)

    def move(state: HMCState, key: jax.Array) -> tuple[HMCState, tuple[jax.Array, jax.Array]]:
        key_step, key_path = jax.random.split(key)
        step = STEP * jnp.exp(0.3 * jax.random.normal(key_step, (), begin.dtype))  # no orbit closes at every step size
        state, info = KERNEL(key_path, state, value, step, jnp.ones_like(begin), LEAPS)
        return state, (state.position, info.is_accepted)

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        _, (path, accepted) = jax.lax.scan(move, hmc.init(begin, value), jax.random.split(key, MOVES))
        return path[jnp.array([MOVES // 2 - 1, MOVES - 1])], accepted.mean()

    draws, accepted = jax.lax.map(chain, jax.random.split(key, (num + 1) // 2))
    return draws.reshape(-1, len(begin))[:num], accepted.mean()
