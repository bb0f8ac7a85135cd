"""Pólya-gamma variates: they turn a logistic likelihood into a normal one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

CUT = 0.64  # where the two forms of the series change over
TERMS = 8  # of the alternating series: the next one is below 1e-30 of the first on both sides of the cut
LARGEST = 60.0  # |z| beyond which PG(1, z) is its mean to all digits that a logit of that size can show


class _Search(NamedTuple):
    """Which rows are done, their values, and whether the next candidate's branch is to be drawn."""

    key: jax.Array
    done: jax.Array
    value: jax.Array
    branch: jax.Array
    choose: jax.Array


def polya_gamma(key: jax.Array, z: jax.Array) -> jax.Array:
    """Exact draws of ω ~ PG(1, z), elementwise.

    e^{κf}/(1 + e^f)… = ½ ∫ e^{κf − ωf²/2} p(ω) dω with p = PG(1, 0) and κ = y − ½: given ω, a logit f has the normal
    likelihood N(κ/ω; f, 1/ω), and ω | f ~ PG(1, f). Polson, Scott and Windle (2013), Bayesian inference for logistic
    models using Pólya-gamma latent variables; the sampler is Devroye's (2009) for the Jacobi distribution: a candidate
    from an inverse Gaussian cut at t or from an exponential beyond it, accepted by the value of an alternating series.
    """
    half = jnp.minimum(0.5 * jnp.abs(z), 0.5 * LARGEST)
    rate = jnp.pi**2 / 8 + 0.5 * half**2
    log_right = jnp.log(jnp.pi / 2) - jnp.log(rate) - rate * CUT
    root = CUT**-0.5
    log_left = jnp.log(2.0) + jnp.logaddexp(
        -half + log_ndtr(root * (CUT * half - 1)), half + log_ndtr(-root * (CUT * half + 1))
    )
    share = jax.nn.sigmoid(log_right - log_left)
    mean = 1 / jnp.maximum(half, 1e-12)

    def body(s: _Search) -> _Search:
        key, *keys = jax.random.split(s.key, 5)
        uniform = jax.random.uniform(keys[0], (4, *half.shape), half.dtype)
        exponential = jax.random.exponential(keys[1], (3, *half.shape), half.dtype)
        normal = jax.random.normal(keys[2], half.shape, half.dtype)
        branch = jnp.where(s.choose, uniform[0] < share, s.branch)
        left, fits = _left(uniform[1], exponential[:2], normal, half, mean)
        x = jnp.where(branch, CUT + exponential[2] / rate, left)
        valid = branch | fits
        first, total = _series(x)
        accepted = valid & (uniform[2] * first < total)
        take = accepted & ~s.done
        # A cut candidate that misses is drawn again within its branch; only the series sends back to the choice.
        return _Search(key, s.done | accepted, jnp.where(take, x, s.value), branch, valid)

    start = _Search(key, jnp.zeros(half.shape, bool), jnp.ones_like(half), jnp.zeros(half.shape, bool),
                    jnp.ones(half.shape, bool))  # fmt: skip
    omega = jax.lax.while_loop(lambda s: ~s.done.all(), body, start).value / 4
    return jnp.where(jnp.abs(z) > LARGEST, 0.5 / jnp.maximum(jnp.abs(z), 1.0), omega)


def _left(
    uniform: jax.Array, exponential: jax.Array, normal: jax.Array, half: jax.Array, mean: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A candidate of the inverse Gaussian IG(1/h, 1), and whether it is a draw below the cut."""
    # A large mean: the tail of a chi-square, thinned. A small one: the whole distribution, kept below the cut.
    wide = CUT / (1 + CUT * exponential[0]) ** 2
    wide_fits = (exponential[0] ** 2 <= 2 * exponential[1] / CUT) & (uniform <= jnp.exp(-0.5 * half**2 * wide))
    square = normal**2
    near = mean + 0.5 * mean**2 * square - 0.5 * mean * jnp.sqrt(4 * mean * square + (mean * square) ** 2)
    near = jnp.maximum(near, 1e-300 if near.dtype == jnp.float64 else 1e-37)
    narrow = jnp.where(uniform > mean / (mean + near), mean**2 / near, near)
    is_wide = mean > CUT
    return jnp.where(is_wide, wide, narrow), jnp.where(is_wide, wide_fits, narrow <= CUT)


def _series(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """a_0(x), which the candidates follow, and Σ_n (−1)^n a_n(x), the density that they are to follow."""
    n = (jnp.arange(TERMS) + 0.5).reshape(-1, *[1] * x.ndim)
    below = jnp.pi * n * (2 / (jnp.pi * jnp.minimum(x, CUT))) ** 1.5 * jnp.exp(-2 * n**2 / jnp.minimum(x, CUT))
    above = jnp.pi * n * jnp.exp(-0.5 * (n * jnp.pi) ** 2 * jnp.maximum(x, CUT))
    terms = jnp.where(x <= CUT, below, above)
    signs = jnp.where(jnp.arange(TERMS) % 2 == 0, 1.0, -1.0).reshape(n.shape)
    return terms[0], (signs * terms).sum(0)
