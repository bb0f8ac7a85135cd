"""What an evaluation at a point is worth: upper confidence bounds, expected improvement, draws of the function."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jax.scipy.stats import norm

from credo.applications.optimise.belief import Belief, condition, precision
from credo.core.checks import one_of
from credo.core.tree import leaf, struct

ACQUISITIONS = ("log_ei", "ei", "ucb", "thompson")
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
SOFT = 0.01  # temperature of the smooth maximum of "log_ei" on draws, in standard deviations of the targets


def log_h(z: jax.Array) -> jax.Array:
    """log(φ(z) + z Φ(z)), also where φ(z) + z Φ(z) is too small for its type, and with a gradient there.

    h = φ(z) (1 + z Φ(z)/φ(z)): far below 0 the bracket is 1/z² − 3/z⁴ + 15/z⁶ …, used from where the difference loses
    its digits. Ament et al. (2023), Unexpected improvements to expected improvement for Bayesian optimization.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> round(float(log_h(jnp.float32(0.0))), 4), bool(jnp.isfinite(jax.grad(log_h)(jnp.float32(-40.0))))
        (-0.9189, True)
    """
    z = jnp.asarray(z)
    far = -30.0 if z.dtype == jnp.float64 else -7.0
    # Each branch sees only numbers that it is right for, so that no gradient of another one is infinite or NaN.
    high, middle = jnp.maximum(z, -1.0), jnp.clip(z, far, -1.0)
    low = jnp.minimum(z, far)
    above = jnp.log(norm.pdf(high) + high * norm.cdf(high))
    ratio = jnp.exp(log_ndtr(middle) + 0.5 * middle**2 + HALF_LOG_TWO_PI)
    between = jnp.log1p(middle * ratio)
    square = 1 / low**2
    series = 1 - square * (3 - square * (15 - square * (105 - square * 945)))
    below = jnp.log(square) + jnp.log(series)
    return jnp.where(z > -1.0, above, -0.5 * z**2 - HALF_LOG_TWO_PI + jnp.where(z > far, between, below))


def log_expected_improvement(mean: jax.Array, std: jax.Array, best: Any) -> jax.Array:
    """log E[max(f − best, 0)] for f ~ N(mean, std²): log std + log h((mean − best)/std)."""
    return jnp.log(std) + log_h((mean - best) / std)


def expected_improvement(mean: jax.Array, std: jax.Array, best: Any) -> jax.Array:
    """E[max(f − best, 0)] = std (φ(z) + z Φ(z)) for f ~ N(mean, std²), with z = (mean − best)/std. Jones et al. (1998).

    Example:
        >>> import jax.numpy as jnp, credo
        >>> ei = credo.applications.optimise.expected_improvement
        >>> round(float(ei(jnp.float32(0.0), jnp.float32(1.0), 0.0)), 4)
        0.3989
    """
    z = (mean - best) / std
    return std * (norm.pdf(z) + z * norm.cdf(z))


def draw_improvement(values: jax.Array, weights: jax.Array, bar: jax.Array, soft: float = 0.0) -> jax.Array:
    """Σ_k w_k max(f_k(x) − bar_k, 0) [n]: what is gained over the bar of each draw, exactly for these draws.

    With bar_k = max(best, f_k(x_1) … f_k(x_j)) its sum over a batch is the expected improvement of the batch (q-EI).
    With `soft` = τ the logarithm of the smooth version, τ log(1 + e^(·/τ)) for max(·, 0): it has a slope everywhere.
    """
    gain = values - bar[:, None]
    if not soft:
        return weights @ jnp.maximum(gain, 0.0)
    u = gain / soft
    # log log(1 + e^u) is u where e^u is tiny.
    log_soft = jnp.where(u < -10, u, jnp.log(jax.nn.softplus(jnp.maximum(u, -10.0))))
    return logsumexp(jnp.log(weights)[:, None] + log_soft, axis=0) + math.log(soft)


@struct
class AcquisitionSetting:
    """The parameters of an acquisition.

    Attributes:
        best: the incumbent: the largest posterior mean at points that were evaluated.
        beta: of "ucb".
        pending: rows that were chosen and have no value yet [q, columns].
        mask: 1 for those that count [q].
        which: the draw of "thompson".
    """

    best: Any = leaf()
    beta: Any = leaf()
    pending: Any = leaf()
    mask: Any = leaf()
    which: Any = leaf()


def score(name: str, batched: bool, belief: Belief, setting: AcquisitionSetting, x: jax.Array) -> jax.Array:
    """The acquisition at rows [n]; more is better.

    - "ucb": m + β s, with s after conditioning on pending points.
    - "ei", "log_ei": from m and s, conditioned likewise, over the best mean of pending points, too; where there are
      draws and pending points (`batched`), the improvement over the bar that pending points raise for each draw.
    - "thompson": one draw of f.
    """
    if name == "thompson":
        return belief.draws(x)[0][setting.which]  # type: ignore[union-attr]
    if batched and name in ("ei", "log_ei"):
        values, weights = belief.draws(jnp.concatenate([x, setting.pending]))  # type: ignore[union-attr]
        pending = jnp.where(setting.mask > 0, values[:, len(x) :], -jnp.inf)
        bar = jnp.maximum(setting.best, pending.max(1, initial=-jnp.inf))
        return draw_improvement(values[:, : len(x)], weights, bar, SOFT if name == "log_ei" else 0.0)
    mean, variance = condition(belief, jnp.concatenate([x, setting.pending]), setting.pending, setting.mask)
    pending, mean, std = mean[len(x) :], mean[: len(x)], jnp.sqrt(variance[: len(x)])
    if name == "ucb":
        return mean + setting.beta * std
    best = jnp.maximum(setting.best, jnp.where(setting.mask > 0, pending, -jnp.inf).max())
    return (log_expected_improvement if name == "log_ei" else expected_improvement)(mean, std, best)


scores_of = partial(jax.jit, static_argnames=("name", "batched"))(score)


def acquisition_values(name: str, belief: Belief, x: np.ndarray, setting: AcquisitionSetting) -> np.ndarray:
    """`score` at rows as NumPy numbers [n]."""
    with precision(belief):
        kind = jnp.float64 if belief.double else jnp.float32
        batched = not belief.normal and bool(np.any(setting.mask))
        values = scores_of(name, batched, belief, typed(setting, kind), jnp.asarray(x, kind))
        return np.asarray(values, np.float64)


def typed(setting: AcquisitionSetting, kind: Any) -> AcquisitionSetting:
    """The setting with numbers of one type."""
    real = [jnp.asarray(a, kind) for a in (setting.best, setting.beta, setting.pending, setting.mask)]
    best, beta, pending, mask = real
    return AcquisitionSetting(best, beta, pending, mask, jnp.asarray(setting.which, jnp.int32))


def checked(name: str) -> str:
    """The acquisition's name, or a sentence."""
    return one_of(name, ACQUISITIONS, "acquisition")
