"""Special functions of counts and Student's t that stay accurate in single precision, of arrays of JAX or of NumPy.

JAX's incomplete gamma and beta functions are good to 10⁻⁵ while their parameters are small, but in float32
they are off by 10⁻³ at 10³ and meaningless at 10⁶. Above a threshold the normal approximation of Peizer and
Pratt (1968) and the gamma approximation of Wise (1950) take over; the error stays below 10⁻⁴ everywhere.

Exported predictors take this module along: it needs NumPy alone, and `credo.core.numpy_special` for what NumPy lacks.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from credo.core.numpy_special import NUMPY

GAMMA_LIMIT = 30.0  # Peizer–Pratt from here on: 2·10⁻⁶ off, and better further up
BETA_NORMAL = 7.0  # Peizer–Pratt when both parameters of the beta reach this
BETA_LIMIT = 200.0  # Wise's gamma when only one parameter is large
NORMAL_END = 6.0  # a normal has 2·10⁻⁹ beyond
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
RULE = (0.5 * (NODES + 1)).tolist(), (0.5 * WEIGHTS).tolist()  # on [0, 1]
LINEAR_FROM = 30.0  # log-rates above this grow the rate linearly: e³⁰ ≈ 10¹³ is beyond any count
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def namespace(*arrays: Any) -> Any:
    """NumPy where all are its arrays or plain numbers, else JAX; with SciPy's special functions and `while_loop`."""
    return NUMPY if all(isinstance(x, np.ndarray | np.generic | float | int) for x in arrays) else _jax()


@functools.cache
def _jax() -> Any:
    import jax.scipy.special

    return SimpleNamespace(**(vars(jax.scipy.special) | vars(jax.numpy)), while_loop=jax.lax.while_loop)


def log_rate(outputs: Any) -> Any:
    """log λ(f) for λ(f) = eᶠ up to f = 30 and e³⁰ (f − 29) beyond: smooth, increasing, never infinite."""
    xp = namespace(outputs)
    return xp.minimum(outputs, LINEAR_FROM) + xp.log1p(xp.maximum(outputs - LINEAR_FROM, 0))


def log_rate_slope(outputs: Any) -> Any:
    """d log λ / df: 1 up to f = 30."""
    return 1 / (1 + namespace(outputs).maximum(outputs - LINEAR_FROM, 0))


def log_sigmoid(x: Any) -> Any:
    """−log(1 + e⁻ˣ)."""
    return -namespace(x).logaddexp(-x, 0)


def deviance(delta: Any) -> Any:
    """eᵟ − 1 − δ ≥ 0: how far a rate eᵟ times the count is from it."""
    return namespace(delta).expm1(delta) - delta


def log_ratio(y: Any, mu: Any, r: Any) -> Any:
    """log (r + y)/(r + μ), with all its digits when y is near μ and finite when they are far apart."""
    return _near_one((y - mu) / (r + mu), namespace(y, mu, r).log(r + y) - namespace(mu, r).log(r + mu))


def log_share_ratio(y: Any, mu: Any, r: Any, far: Any) -> Any:
    """log of μ/(r + μ) by y/(r + y) for y > 0: as `far` says, but with all its digits where that is near 0."""
    return _near_one(r / (r + mu) * ((mu - y) / y), far)


def _near_one(gap: Any, far: Any) -> Any:
    """log(1 + gap) where that is near 0, else `far`."""
    xp = namespace(gap, far)
    near = xp.abs(gap) < 0.5
    return xp.where(near, xp.log1p(xp.where(near, gap, 0)), far)


def stirling_error(x: Any) -> Any:
    """log Γ(x + 1) − (x + ½) log x + x − ½ log 2π for x > 0, without cancellation (Loader 2000)."""
    xp = namespace(x)
    small = x < 10
    low, high = xp.where(small, x, 1), xp.where(small, 10, x)
    exact = xp.gammaln(low + 1) - (low + 0.5) * xp.log(low) + low - HALF_LOG_2PI
    return xp.where(small, exact, (1 / 12 - (1 / 360 - 1 / (1260 * high**2)) / high**2) / high)


def gammaincc(a: Any, x: Any) -> Any:
    """Q(a, x) = P(Poisson(x) < a) for a > 0 and x ≥ 0."""
    xp = namespace(a, x)
    large = a > GAMMA_LIMIT
    exact = xp.gammaincc(xp.where(large, 1, a), xp.where(large, 1, x))
    shifted, rate = xp.where(large, a, 1), xp.maximum(x, 1e-30)
    distance = shifted - 1 / 3 - rate + 0.02 / shifted
    normal = distance * xp.sqrt(_peizer(shifted - 0.5, rate) / rate)
    return xp.where(large, xp.ndtr(normal), exact)


def betainc(a: Any, b: Any, x: Any, y: Any) -> Any:
    """I_x(a, b) with y = 1 − x as an argument, because its digits are lost when x is near 1."""
    xp = namespace(a, b, x, y)
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    normal, exact = low >= BETA_NORMAL, high <= BETA_LIMIT
    elsewhere = normal | ~exact  # lanes of another branch run on harmless numbers
    library = xp.betainc(*(xp.where(elsewhere, safe, v) for v, safe in ((a, 1), (b, 1), (x, 0.5))))
    return xp.where(normal, _beta_normal(a, b, x, y), xp.where(exact, library, _beta_gamma(a, b, x, y)))


def _beta_normal(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Peizer and Pratt: I_x(a, b) = P(Binomial(a + b − 1, x) ≥ a) as a normal tail."""
    xp = namespace(a, b, x, y)
    a, b = xp.maximum(a, 1), xp.maximum(b, 1)
    x, y = xp.maximum(x, 1e-30), xp.maximum(y, 1e-30)
    total = a + b - 1
    distance = (a - 1 / 3) * y - (b - 1 / 3) * x
    distance += 0.02 * (y / a - x / b + (y - 0.5) / (a + b))
    spread = y * _peizer(a - 0.5, total * x) + x * _peizer(b - 0.5, total * y)
    z = distance * xp.sqrt(xp.maximum(spread, 0) / ((total + 1 / 6) * x * y))
    return xp.ndtr(-z)


def _beta_gamma(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Wise: a beta with one large parameter is a gamma in −log(1 − x)."""
    xp = namespace(a, b, x, y)
    swap = a > b
    small, large = xp.where(swap, b, a), xp.where(swap, a, b)
    x, y = xp.where(swap, y, x), xp.where(swap, x, y)
    log_y = xp.where(x < 0.5, xp.log1p(-xp.minimum(x, 0.5)), xp.log(xp.maximum(y, 1e-30)))
    upper = gammaincc(small, -(large + 0.5 * (small - 1)) * log_y)
    return xp.where(swap, upper, 1 - upper)


def _peizer(value: Any, expected: Any) -> Any:
    """1 + g(r) with g(r) = (1 − r² + 2 r log r)/(1 − r)² at r = value/expected; a series where that is 0/0.

    The sum is 2(1 − r + r log r)/(1 − r)², and must not be taken of its parts: g comes near −1 where r is large.
    """
    xp = namespace(value, expected)
    gap = (expected - value) / expected
    near = xp.abs(gap) < 0.2
    small = xp.where(near, gap, 0)
    series: Any = 0.0
    for k in range(6, 0, -1):
        series = small * (series + 2 / ((k + 1) * (k + 2)))
    ratio = xp.where(near, 0.5, xp.clip(1 - gap, 1e-9, 1e9))
    return xp.where(near, 1 + series, 2 * (1 - ratio + ratio * xp.log(ratio)) / (1 - ratio) ** 2)


def student_t_cdf(df: Any, z: Any) -> Any:
    """P(T ≤ z) for Student's t, to 10⁻⁶ from ν = 0.3 upwards.

    In x = sign(t) √(ν log(1 + t²/ν)) the density is e^{−x²/2} √(e/(1 − e⁻ᵉ)) with e = x²/ν, up to a constant: nearly
    normal for every ν, so that Gauss and Legendre's rule needs few points, and the same rule has the constant. The
    incomplete beta function of JAX takes forty times as long on CPUs.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(student_t_cdf(jnp.array(4.0), jnp.array(0.0))), 4)
        0.5
    """
    xp = namespace(df, z)
    df = xp.asarray(df, z.dtype)
    square = xp.minimum(z * z, 1e30)  # ∞ − ∞ is not a number
    x = xp.minimum(xp.sqrt(df * xp.log1p(square / df)), NORMAL_END)
    part = 0.5 * _near_normal(df, x) / _near_normal(df, xp.full_like(df, NORMAL_END))
    return xp.where(z < 0, 0.5 - part, 0.5 + part)


def _near_normal(df: Any, x: Any) -> Any:
    """∫₀ˣ e^{−s²/2} √(e/(1 − e⁻ᵉ)) ds with e = s²/ν."""
    xp = namespace(df, x)
    total: Any = 0.0
    for node, weight in zip(*RULE):
        square = (x * node) ** 2
        e = xp.maximum(square / df, 1e-12)
        total = total + weight * xp.exp(-0.5 * square) * xp.sqrt(e / -xp.expm1(-e))
    return total * x
