"""Special functions of NumPy arrays, by the same formulas as the likelihoods of credo, in double precision.

Incomplete gamma and beta functions are exact for small parameters. Above the thresholds of `credo.likelihoods.special`
the approximations used there are used here too, so that both give the same quantiles.
"""

import math
from typing import Any

import numpy as np

GAMMA_LIMIT, BETA_NORMAL, BETA_LIMIT = 30.0, 7.0, 200.0
LINEAR_FROM = 30.0
TINY = 1e-300
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_erfc = np.frompyfunc(math.erfc, 1, 1)
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


def erf(x: Any) -> np.ndarray:
    """The error function.

    Example:
        >>> round(float(erf(1.0)), 6)
        0.842701
    """
    return 1.0 - np.asarray(_erfc(np.asarray(x, float)), float)


def ndtr(x: Any) -> np.ndarray:
    """Φ(x), the distribution function of the standard normal."""
    return 0.5 * np.asarray(_erfc(np.asarray(x, float) * -math.sqrt(0.5)), float)


def log_gamma(x: Any) -> np.ndarray:
    """log Γ(x)."""
    return np.asarray(_lgamma(np.asarray(x, float)), float)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1/(1 + exp(−x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + eˣ)."""
    return np.logaddexp(0.0, x)


def logsumexp(x: np.ndarray, axis: int = 0) -> np.ndarray:
    """log Σ exp(x) along an axis."""
    top = x.max(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


def log_rate(outputs: np.ndarray) -> np.ndarray:
    """The logarithm of a rate: f up to 30, beyond which the rate grows linearly."""
    return np.minimum(outputs, LINEAR_FROM) + np.log1p(np.maximum(outputs - LINEAR_FROM, 0.0))


def log_ratio(y: np.ndarray, mu: np.ndarray, r: np.ndarray) -> np.ndarray:
    """log (r + y)/(r + μ), with all its digits when y is near μ and finite when they are far apart."""
    gap = (y - mu) / (r + mu)
    near = np.abs(gap) < 0.5
    return np.where(near, np.log1p(np.where(near, gap, 0.0)), np.log(r + y) - np.log(r + mu))


def deviance(delta: np.ndarray) -> np.ndarray:
    """eᵟ − 1 − δ ≥ 0: how far a rate eᵟ times the count is from it."""
    with np.errstate(over="ignore"):
        return np.expm1(delta) - delta


def stirling_error(x: np.ndarray) -> np.ndarray:
    """log Γ(x + 1) − (x + ½) log x + x − ½ log 2π for x > 0, without cancellation (Loader 2000)."""
    small = x < 10
    low, high = np.where(small, x, 1.0), np.where(small, 10.0, x)
    exact = log_gamma(low + 1) - (low + 0.5) * np.log(low) + low - HALF_LOG_2PI
    return np.where(small, exact, (1 / 12 - (1 / 360 - 1 / (1260 * high**2)) / high**2) / high)


def gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q(a, x) = P(Poisson(x) < a) for a > 0 and x ≥ 0."""
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    large, series = a > GAMMA_LIMIT, x < a + 1
    chosen = [(large, _gamma_normal), (~large & series, _gamma_series), (~large & ~series, _gamma_fraction)]
    return _where(chosen, a, x)


def _where(choices: list[tuple[np.ndarray, Any]], *arguments: np.ndarray) -> np.ndarray:
    """Each function at its own places: what is not asked for is not computed."""
    out = np.empty(arguments[0].shape)
    for places, function in choices:
        if places.any():
            out[places] = function(*(x[places] for x in arguments))
    return out


def _gamma_normal(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Peizer and Pratt (1968)."""
    rate = np.maximum(x, 1e-30)
    return ndtr((a - 1 / 3 - rate + 0.02 / a) * np.sqrt(_peizer(a - 0.5, rate) / rate))


def _gamma_front(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp(a * np.log(np.maximum(x, TINY)) - x - log_gamma(a))


def _gamma_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A power series, for small x."""
    term = total = 1.0 / a
    for n in range(1, 500):
        term = term * x / (a + n)
        total = total + term
        if (term <= 1e-16 * total).all():
            break
    return np.clip(1 - _gamma_front(a, x) * total, 0.0, 1.0)


def _gamma_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A continued fraction (modified Lentz), for large x."""
    b = x + 1 - a
    c, d = np.full_like(b, 1 / TINY), 1 / b
    h = d
    for n in range(1, 500):
        factor = -n * (n - a)
        b = b + 2
        d = 1 / _nonzero(factor * d + b)
        c = _nonzero(b + factor / c)
        h = h * d * c
        if (np.abs(d * c - 1) < 1e-14).all():
            break
    return np.clip(_gamma_front(a, x) * h, 0.0, 1.0)


def betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """I_x(a, b) with y = 1 − x given apart, because its digits are lost when x is near 1."""
    a, b, x, y = np.broadcast_arrays(*(np.asarray(v, float) for v in (a, b, x, y)))
    low, high = np.minimum(a, b), np.maximum(a, b)
    normal, exact = low >= BETA_NORMAL, high <= BETA_LIMIT
    chosen = [(normal, _beta_normal), (~normal & exact, _beta_exact), (~normal & ~exact, _beta_gamma)]
    return _where(chosen, a, b, x, y)


def _beta_exact(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A continued fraction (modified Lentz), from the side where it converges."""
    swap = x > (a + 1) / (a + b + 2)
    a, b, x, y = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, y, x), np.where(swap, x, y)
    x, y = np.maximum(x, TINY), np.maximum(y, TINY)
    front = np.exp(a * np.log(x) + b * np.log(y) - log_gamma(a) - log_gamma(b) + log_gamma(a + b)) / a
    c, d = np.ones_like(x), 1 / _nonzero(1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 500):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + factor * d)
            c = _nonzero(1 + factor / c)
            h = h * d * c
        if (np.abs(d * c - 1) < 1e-14).all():
            break
    return np.clip(np.where(swap, 1 - front * h, front * h), 0.0, 1.0)


def _beta_normal(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Peizer and Pratt (1968)."""
    a, b = np.maximum(a, 1.0), np.maximum(b, 1.0)
    x, y = np.maximum(x, 1e-30), np.maximum(y, 1e-30)
    total = a + b - 1
    distance = (a - 1 / 3) * y - (b - 1 / 3) * x + 0.02 * (y / a - x / b + (y - 0.5) / (a + b))
    spread = y * _peizer(a - 0.5, total * x) + x * _peizer(b - 0.5, total * y)
    return ndtr(-distance * np.sqrt(np.maximum(spread, 0.0) / ((total + 1 / 6) * x * y)))


def _beta_gamma(a: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Wise (1950): a beta with one large parameter is a gamma in −log(1 − x)."""
    swap = a > b
    small, large = np.where(swap, b, a), np.where(swap, a, b)
    x, y = np.where(swap, y, x), np.where(swap, x, y)
    log_y = np.where(x < 0.5, np.log1p(-np.minimum(x, 0.5)), np.log(np.maximum(y, 1e-30)))
    upper = gammaincc(small, -(large + 0.5 * (small - 1)) * log_y)
    return np.where(swap, upper, 1 - upper)


def _peizer(value: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """1 + g(r) with g(r) = (1 − r² + 2 r log r)/(1 − r)² at r = value/expected, as 2(1 − r + r log r)/(1 − r)²."""
    gap = (expected - value) / expected
    near = np.abs(gap) < 0.2
    small = np.where(near, gap, 0.0)
    series: Any = 0.0
    for k in range(6, 0, -1):
        series = small * (series + 2 / ((k + 1) * (k + 2)))
    ratio = np.where(near, 0.5, np.clip(1 - gap, 1e-9, 1e9))
    return np.where(near, 1 + series, 2 * (1 - ratio + ratio * np.log(ratio)) / (1 - ratio) ** 2)


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < TINY, TINY, x)
