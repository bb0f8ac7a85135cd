"""Functions of count and Student-t likelihoods that stay accurate in float32, where textbook forms do not.

JAX's incomplete gamma and beta functions are good to 10⁻⁵ while their parameters are small, but in float32
they are off by 10⁻³ at 10³ and meaningless at 10⁶. Above a threshold the normal approximation of Peizer and
Pratt (1968) and the gamma approximation of Wise (1950) take over; the error stays below 10⁻⁴ everywhere.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.gamma import open_uniform
from credo.likelihoods.base import HALF_LOG_2PI

GAMMA_LIMIT = 30.0  # Peizer–Pratt from here on: 2·10⁻⁶ off, and better further up
BETA_NORMAL = 7.0  # Peizer–Pratt when both parameters of the beta reach this
BETA_LIMIT = 200.0  # Wise's gamma when only one parameter is large
NORMAL_END = 6.0  # a normal has 2·10⁻⁹ beyond
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
RULE = (0.5 * (NODES + 1)).tolist(), (0.5 * WEIGHTS).tolist()  # on [0, 1]
LINEAR_FROM = 30.0  # log-rates above this grow the rate linearly: e³⁰ ≈ 10¹³ is beyond any count


def log_rate(outputs: jax.Array) -> jax.Array:
    """log λ(f) for λ(f) = eᶠ up to f = 30 and e³⁰ (f − 29) beyond: smooth, increasing, never infinite."""
    return jnp.minimum(outputs, LINEAR_FROM) + jnp.log1p(jnp.maximum(outputs - LINEAR_FROM, 0))


def log_rate_slope(outputs: jax.Array) -> jax.Array:
    """d log λ / df: 1 up to f = 30."""
    return 1 / (1 + jnp.maximum(outputs - LINEAR_FROM, 0))


def poisson_sample(key: jax.Array, rate: jax.Array) -> jax.Array:
    """Counts with the given rates, as floats; above 10⁶ a rounded normal, since JAX counts in int32."""
    large = rate > 1e6
    exact, normal = jax.random.split(key)
    counts = jax.random.poisson(exact, jnp.where(large, 0, rate)).astype(rate.dtype)
    rounded = jnp.round(rate + jnp.sqrt(rate) * jax.random.normal(normal, rate.shape, rate.dtype))
    return jnp.where(large, rounded, counts)


def student_t_sample(key: jax.Array, df: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> jax.Array:
    """√(ν (U^(−2/ν) − 1)) cos 2πV with U, V uniform: Student's t with ν degrees of freedom, without rejection.

    Bailey (1994), Polar generation of random variates with the t-distribution. JAX divides by draws from a gamma, whose
    loop takes long to compile and to run.
    """
    radius, angle = jax.random.split(key)
    u = open_uniform(radius, shape, dtype)
    turn = jax.random.uniform(angle, shape, dtype)
    return jnp.sqrt(df * jnp.expm1(-2 / df * jnp.log(u))) * jnp.cos(2 * jnp.pi * turn)


def deviance(delta: jax.Array) -> jax.Array:
    """eᵟ − 1 − δ ≥ 0: how far a rate eᵟ times the count is from it."""
    return jnp.expm1(delta) - delta


def log_ratio(y: jax.Array, mu: jax.Array, r: jax.Array) -> jax.Array:
    """log (r + y)/(r + μ), with all its digits when y is near μ and finite when they are far apart."""
    gap = (y - mu) / (r + mu)
    near = jnp.abs(gap) < 0.5
    return jnp.where(near, jnp.log1p(jnp.where(near, gap, 0)), jnp.log(r + y) - jnp.log(r + mu))


def stirling_error(x: jax.Array) -> jax.Array:
    """log Γ(x + 1) − (x + ½) log x + x − ½ log 2π for x > 0, without cancellation (Loader 2000)."""
    small = x < 10
    low, high = jnp.where(small, x, 1), jnp.where(small, 10, x)
    exact = jax.lax.lgamma(low + 1) - (low + 0.5) * jnp.log(low) + low - HALF_LOG_2PI
    return jnp.where(small, exact, (1 / 12 - (1 / 360 - 1 / (1260 * high**2)) / high**2) / high)


def gammaincc(a: jax.Array, x: jax.Array) -> jax.Array:
    """Q(a, x) = P(Poisson(x) < a) for a > 0 and x ≥ 0."""
    large = a > GAMMA_LIMIT
    exact = jax.scipy.special.gammaincc(jnp.where(large, 1, a), jnp.where(large, 1, x))
    shifted, rate = jnp.where(large, a, 1), jnp.maximum(x, 1e-30)
    distance = shifted - 1 / 3 - rate + 0.02 / shifted
    normal = distance * jnp.sqrt(_peizer(shifted - 0.5, rate) / rate)
    return jnp.where(large, jax.scipy.special.ndtr(normal), exact)


def betainc(a: jax.Array, b: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """I_x(a, b) with y = 1 − x given apart, because its digits are lost when x is near 1."""
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    normal, exact = low >= BETA_NORMAL, high <= BETA_LIMIT
    other = normal | ~exact  # lanes of another branch run on harmless numbers
    library = jax.scipy.special.betainc(*(jnp.where(other, safe, v) for v, safe in ((a, 1), (b, 1), (x, 0.5))))
    return jnp.where(normal, _beta_normal(a, b, x, y), jnp.where(exact, library, _beta_gamma(a, b, x, y)))


def _beta_normal(a: jax.Array, b: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Peizer and Pratt: I_x(a, b) = P(Binomial(a + b − 1, x) ≥ a) as a normal tail."""
    a, b = jnp.maximum(a, 1), jnp.maximum(b, 1)
    x, y = jnp.maximum(x, 1e-30), jnp.maximum(y, 1e-30)
    total = a + b - 1
    distance = (a - 1 / 3) * y - (b - 1 / 3) * x
    distance += 0.02 * (y / a - x / b + (y - 0.5) / (a + b))
    spread = y * _peizer(a - 0.5, total * x) + x * _peizer(b - 0.5, total * y)
    z = distance * jnp.sqrt(jnp.maximum(spread, 0) / ((total + 1 / 6) * x * y))
    return jax.scipy.special.ndtr(-z)


def _beta_gamma(a: jax.Array, b: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Wise: a beta with one large parameter is a gamma in −log(1 − x)."""
    swap = a > b
    small, large = jnp.where(swap, b, a), jnp.where(swap, a, b)
    x, y = jnp.where(swap, y, x), jnp.where(swap, x, y)
    log_y = jnp.where(x < 0.5, jnp.log1p(-jnp.minimum(x, 0.5)), jnp.log(jnp.maximum(y, 1e-30)))
    upper = gammaincc(small, -(large + 0.5 * (small - 1)) * log_y)
    return jnp.where(swap, upper, 1 - upper)


def _peizer(value: jax.Array, expected: jax.Array) -> jax.Array:
    """1 + g(r) with g(r) = (1 − r² + 2 r log r)/(1 − r)² at r = value/expected; a series where that is 0/0.

    The sum is 2(1 − r + r log r)/(1 − r)², and must not be taken of its parts: g comes near −1 where r is large.
    """
    gap = (expected - value) / expected
    near = jnp.abs(gap) < 0.2
    small = jnp.where(near, gap, 0)
    series: Any = 0.0
    for k in range(6, 0, -1):
        series = small * (series + 2 / ((k + 1) * (k + 2)))
    ratio = jnp.where(near, 0.5, jnp.clip(1 - gap, 1e-9, 1e9))
    return jnp.where(near, 1 + series, 2 * (1 - ratio + ratio * jnp.log(ratio)) / (1 - ratio) ** 2)


def student_t_cdf(df: jax.Array, z: jax.Array) -> jax.Array:
    """P(T ≤ z) for Student's t, to 10⁻⁶ from ν = 0.3 upwards.

    In x = sign(t) √(ν log(1 + t²/ν)) the density is e^{−x²/2} √(e/(1 − e⁻ᵉ)) with e = x²/ν, up to a constant: nearly
    normal for every ν, so that Gauss and Legendre's rule needs few points, and the same rule has the constant. The
    incomplete beta function of JAX takes forty times as long on CPUs.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(student_t_cdf(jnp.array(4.0), jnp.array(0.0))), 4)
        0.5
    """
    df = jnp.asarray(df, z.dtype)
    square = jnp.minimum(z * z, 1e30)  # ∞ − ∞ is not a number
    x = jnp.minimum(jnp.sqrt(df * jnp.log1p(square / df)), NORMAL_END)
    part = 0.5 * _near_normal(df, x) / _near_normal(df, jnp.full_like(df, NORMAL_END))
    return jnp.where(z < 0, 0.5 - part, 0.5 + part)


def _near_normal(df: jax.Array, x: jax.Array) -> jax.Array:
    """∫₀ˣ e^{−s²/2} √(e/(1 − e⁻ᵉ)) ds with e = s²/ν."""
    total: Any = 0.0
    for node, weight in zip(*RULE):
        square = (x * node) ** 2
        e = jnp.maximum(square / df, 1e-12)
        total = total + weight * jnp.exp(-0.5 * square) * jnp.sqrt(e / -jnp.expm1(-e))
    return total * x
