"""NumPy with the special functions of SciPy that likelihoods need, in double precision; `NUMPY` has all of them.

Exported predictors take this module along, since they need NumPy alone.
"""

import math
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

TINY = 1e-300
_erfc = np.frompyfunc(math.erfc, 1, 1)
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


def _erf(x: Any) -> np.ndarray:
    return 1.0 - np.asarray(_erfc(np.asarray(x, float)), float)


def _ndtr(x: Any) -> np.ndarray:
    """Φ(x), the distribution function of the standard normal."""
    return 0.5 * np.asarray(_erfc(np.asarray(x, float) * -math.sqrt(0.5)), float)


def _gammaln(x: Any) -> np.ndarray:
    return np.asarray(_lgamma(np.asarray(x, float)), float)


def _betaln(a: Any, b: Any) -> np.ndarray:
    return _gammaln(a) + _gammaln(b) - _gammaln(a + b)


def _expit(x: np.ndarray) -> np.ndarray:
    """1/(1 + exp(−x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def _logsumexp(x: np.ndarray, axis: int = 0) -> np.ndarray:
    """log Σ exp(x) along an axis."""
    top = x.max(axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


def _log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    below = x - x.max(axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.exp(_log_softmax(x, axis))


def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 0.0, x * np.log(y))


def _gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Q(a, x) for moderate a: a power series where x is small, else a continued fraction."""
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    series = x < a + 1
    out = np.empty(a.shape)
    for lanes, function in ((series, _gamma_series), (~series, _gamma_fraction)):
        out[lanes] = np.clip(function(a[lanes], x[lanes]), 0.0, 1.0)  # what is not asked for is not computed
    return out


def _gamma_front(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp(a * np.log(np.maximum(x, TINY)) - x - _gammaln(a))


def _gamma_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    term = total = 1.0 / a
    for n in range(1, 500):
        term = term * x / (a + n)
        total = total + term
        if (term <= 1e-16 * total).all():
            break
    return 1 - _gamma_front(a, x) * total


def _gamma_fraction(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    b = x + 1 - a
    terms = ((-n * (n - a), b + 2 * n) for n in range(1, 500))
    return _gamma_front(a, x) * _continued(terms, np.full_like(b, 1 / TINY), 1 / b)


def _betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """I_x(a, b) for moderate a and b: a continued fraction from the side where it converges."""
    y = 1.0 - x
    swap = x > (a + 1) / (a + b + 2)
    a, b, x, y = np.where(swap, b, a), np.where(swap, a, b), np.where(swap, y, x), np.where(swap, x, y)
    front = np.exp(a * np.log(np.maximum(x, TINY)) + b * np.log(np.maximum(y, TINY)) - _betaln(a, b)) / a
    terms = (
        (factor, 1.0)
        for m in range(1, 500)
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        )
    )
    lower = front * _continued(terms, np.ones_like(x), 1 / _nonzero(1 - (a + b) * x / (a + 1)))
    return np.clip(np.where(swap, 1 - lower, lower), 0.0, 1.0)


def _continued(terms: Iterable[tuple[Any, Any]], c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """A continued fraction of numerators and denominators, from its first c and d (modified Lentz)."""
    value = d
    for above, below in terms:
        d = 1 / _nonzero(above * d + below)
        c = _nonzero(below + above / c)
        value = value * d * c
        if (np.abs(d * c - 1) < 1e-14).all():
            break
    return value


def _nonzero(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < TINY, TINY, x)


def _while_loop(goes_on: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    while goes_on(state):
        state = step(state)
    return state


NUMPY: Any = SimpleNamespace(
    **vars(np), erf=_erf, ndtr=_ndtr, gammaln=_gammaln, betaln=_betaln, expit=_expit, logsumexp=_logsumexp,
    log_softmax=_log_softmax, softmax=_softmax, xlogy=_xlogy, gammaincc=_gammaincc, betainc=_betainc,
    while_loop=_while_loop,
)  # fmt: skip
