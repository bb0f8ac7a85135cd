"""Pólya-gamma variates against their moments, their Laplace transform and the sum of gammas that defines them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo.methods.shallow.polya_gamma import polya_gamma

NUM = 40_000


def draws(z, seed=0):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(polya_gamma)(jax.random.key(seed), jnp.full(NUM, float(z))))


@pytest.mark.parametrize("z", [0.0, 0.5, 2.9, 3.4, 12.0, -70.0])
def test_moments_and_laplace_transform(z):
    """Mean, variance and E e^{−ω}: within five standard errors (false alarms below 1e-5)."""
    found = draws(z)
    a = abs(z)
    mean = 0.25 if a == 0 else np.tanh(a / 2) / (2 * a)
    np.testing.assert_allclose(found.mean(), mean, atol=5 * found.std() / np.sqrt(NUM) + 1e-9)
    if a > 50:
        return
    variance = 1 / 24 if a == 0 else (np.sinh(a) - a) / (4 * a**3 * np.cosh(a / 2) ** 2)
    squares = (found - mean) ** 2
    np.testing.assert_allclose(squares.mean(), variance, atol=5 * squares.std() / np.sqrt(NUM))
    transform = np.exp(-found)
    exact = np.cosh(a / 2) / np.cosh(np.sqrt((a**2 / 2 + 1) / 2))
    np.testing.assert_allclose(transform.mean(), exact, atol=5 * transform.std() / np.sqrt(NUM))


@pytest.mark.parametrize("z", [0.0, 3.0, 8.0])
def test_distribution_is_that_of_the_sum_of_gammas(z):
    """Two-sample Kolmogorov–Smirnov against 500 terms of Σ g_k/((k−½)² + z²/4π²)/2π², false-alarm rate 1e-4."""
    rng = np.random.default_rng(0)
    k = np.arange(1, 501)
    total = (rng.exponential(size=(NUM // 4, 500)) / ((k - 0.5) ** 2 + z**2 / (4 * np.pi**2))).sum(1) / (2 * np.pi**2)
    tail = 1 / (2 * np.pi**2) / 500  # the mean of the terms left out
    assert stats.ks_2samp(draws(z), total + tail).pvalue > 1e-4
