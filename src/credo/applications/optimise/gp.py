"""The reference surrogate: a Gaussian process with a length scale for each column."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.optimise.belief import Fitted, NormalBelief, as_numpy
from credo.applications.optimise.targets import room, standardised
from credo.core.batch import pad_rows
from credo.core.tree import struct
from credo.errors import Refusal
from credo.function_space.kernels import Matern52
from credo.infinite.search import Search, climb

PyTree = Any
STARTS = (1.0, 0.3)  # length scales at the starts, in units of the prior's mode
STEPS = 80  # of the search from each start
LEAST, MOST = 1e-7, 1.0  # variance of the noise; targets have variance 1
JITTER = 1e-8  # of the variance, so that rows that repeat leave the matrix regular


@struct
class Matern(Matern52):
    """`credo.function_space.Matern52` with its diagonal."""

    def diagonal(self, x: jax.Array) -> jax.Array:
        """k(x_i, x_i) [n]."""
        return jnp.broadcast_to(jnp.asarray(self.scale) ** 2, x.shape[:1])


def log_evidence(chosen: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
    """log N(y; c, K + σ²I), σ² with a floor of 1e-7, over the rows with weight 1; those with weight 0 fill up.

    Args:
        chosen: "length" [d], "scale", "noise" (all logarithms; scale and noise of variances) and "constant".
        x, y, weight: rows [n, d], targets [n], 1 or 0 [n].
    """
    lower, rest = _factor(chosen, x, y, weight)
    solved = jax.scipy.linalg.solve_triangular(lower, rest, lower=True)
    log_det = (weight * jnp.log(jnp.diagonal(lower))).sum()
    return -0.5 * solved @ solved - log_det - 0.5 * weight.sum() * jnp.log(2 * jnp.pi)


def log_prior(chosen: PyTree) -> jax.Array:
    """Log-normal densities of the length scales, the noise and the variance, and a normal one of the constant.

    log ℓ ~ N(√2 + ½ log d, 3), whose mode grows as √d: distances do, too. Hvarfner, Hellsten and Nardi (2024), Vanilla
    Bayesian optimization performs great in high dimensions. log σ² ~ N(−7, 4): most objectives
    have next to no noise, and those that have some show it.
    """
    width = len(chosen["length"])
    length = _log_normal(chosen["length"], 2**0.5 + 0.5 * np.log(width), 3**0.5).sum()
    rest = _log_normal(chosen["noise"], -7.0, 2.0) + _log_normal(chosen["scale"], 0.0, 1.0)
    return length + rest - 0.5 * chosen["constant"] ** 2


def _log_normal(log_value: jax.Array, loc: Any, scale: float) -> jax.Array:
    return -0.5 * ((log_value - loc) / scale) ** 2 - log_value


def _kernel(chosen: PyTree) -> Matern:
    return Matern(jnp.exp(0.5 * chosen["scale"]), jnp.exp(chosen["length"]))


def _factor(chosen: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The Cholesky factor of K + σ²I, with those of the identity in rows of weight 0, and y − c."""
    gram = _kernel(chosen)(x, x) * weight * weight[:, None]
    own = LEAST + jnp.exp(chosen["noise"]) + JITTER * jnp.exp(chosen["scale"])
    lower = jnp.linalg.cholesky(gram + jnp.diag(jnp.where(weight > 0, own, 1.0)))
    return lower, weight * (y - chosen["constant"])


@partial(jax.jit, static_argnames="steps")
def _searched(
    starts: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array, noise: Any, steps: int
) -> tuple[jax.Array, jax.Array]:
    """Where BFGS ends from each start [s, d + 3], and log evidence + log prior there [s]; one program for it all."""
    width = x.shape[1]

    def value(vector: jax.Array) -> tuple[jax.Array, None]:
        chosen = unpacked(vector, width, noise)
        return log_evidence(chosen, x, y, weight) + log_prior(chosen), None

    def one(start: jax.Array) -> tuple[jax.Array, jax.Array]:
        def more(state: Search) -> jax.Array:
            return ~state.done & (state.count < steps)

        found = jax.lax.while_loop(more, lambda state: climb(value, state, None)[0], Search.start(start))
        return found.at, found.value

    return jax.lax.map(one, starts)


def unpacked(vector: Any, width: int, noise: Any = None) -> PyTree:
    """Hyper-parameters by name; the noise is the vector's where it is not given."""
    noise = vector[width + 1] if noise is None else noise
    return {"length": vector[:width], "scale": vector[width], "noise": noise, "constant": vector[width + 2]}


@jax.jit
def posterior(chosen: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> NormalBelief:
    """f given the rows, at hyper-parameters."""
    lower, rest = _factor(chosen, x, y, weight)
    half = jax.scipy.linalg.solve_triangular(lower, rest, lower=True)
    coefficients = jax.scipy.linalg.solve_triangular(lower.T, half, lower=False)
    return NormalBelief(
        _kernel(chosen),
        x,
        coefficients,
        weight,
        lower,
        jnp.asarray(chosen["constant"]),
        LEAST + jnp.exp(chosen["noise"]),
    )


class GaussianProcess:
    """f ~ GP(c, k) with the Matérn-5/2 kernel and a length scale for each column of the code.

    Length scales, variance, noise and the constant are at the maximum of evidence × priors (see `log_prior`), found by
    BFGS from several starts in double precision. The reference that networks have to beat, and the best choice for
    few evaluations of smooth objectives.

    Args:
        noise: the standard deviation of the noise in units of the objective; None: chosen with the rest.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(0, 1, 9)[:, None]
        >>> fitted = credo.applications.optimise.GaussianProcess().fit(jax.random.key(0), x, np.sin(6 * x[:, 0]))
        >>> mean, std = fitted.moments(np.array([[0.3]]))
        >>> bool(abs(mean[0] - np.sin(1.8)) < 0.05)
        True
    """

    name = "gp"

    def __init__(self, noise: float | None = None):
        self.noise = noise

    def fit(self, key: jax.Array, x: np.ndarray, gains: np.ndarray) -> Fitted:
        """What is believed after gains at unit-cube rows; the key is not needed."""
        y, shift, scale = standardised(gains)
        width, size = x.shape[1], room(len(x))
        mode = 2**0.5 + 0.5 * np.log(width) - 3.0
        starts = [np.concatenate([np.full(width, mode + np.log(t)), [0.0, -8.0, 0.0]]) for t in STARTS]
        known = None if self.noise is None else np.log(np.clip((self.noise / scale) ** 2, LEAST, MOST))
        with jax.enable_x64(True):
            rows = pad_rows(x, size), pad_rows(y, size), pad_rows(np.ones(len(x)), size)
            data = [jnp.asarray(a, jnp.float64) for a in rows]
            noise = None if known is None else jnp.asarray(known, jnp.float64)
            ends, values = (np.asarray(a) for a in _searched(jnp.asarray(starts), *data, noise, STEPS))
            best = int(np.where(np.isfinite(values), values, -np.inf).argmax())
            if not np.isfinite(ends[best]).all() or not np.isfinite(values[best]):
                raise Refusal("No length scales give these values a finite evidence: are some of them huge?")
            belief = as_numpy(posterior(unpacked(jnp.asarray(ends[best]), width, noise), *data))
        return Fitted(belief, shift, scale, width)
