"""Gamma variates of fixed cost against SciPy's distribution functions."""

import jax
import numpy as np
import pytest
from scipy import stats

from credo.core.gamma import log_gamma, open_uniform


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 300.0])
def test_log_gamma_has_the_right_distribution(shape):
    """Kolmogorov–Smirnov on 20,000 draws, false-alarm rate 1e-4 for each shape."""
    with jax.enable_x64(True):
        draws = np.asarray(log_gamma(jax.random.key(0), np.full(20_000, shape)))
    assert stats.kstest(np.exp(draws), stats.gamma(shape).cdf).pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniforms_are_the_middles_of_cells(dtype, monkeypatch):
    """JAX's 0 and 1 − ε become ½ε and 1 − ½ε, without rounding."""
    with jax.enable_x64(True):
        eps = np.finfo(dtype).eps
        for least, wanted in ((0, eps / 2), (1 - eps, 1 - eps / 2)):
            monkeypatch.setattr(jax.random, "uniform", lambda key, shape, t, low=least: jax.numpy.full(shape, low, t))
            found = open_uniform(jax.random.key(0), (3,), dtype)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, wanted)


def test_the_smallest_uniform_makes_no_absurd_gamma(monkeypatch):
    """G U^{1/a} with U = 2⁻²⁴ at the least: a factor of 2⁻⁴⁸ for a = ½, not one of 10⁻⁷⁶."""
    usual = log_gamma(jax.random.key(0), np.full(100, 0.5, "float32"))
    monkeypatch.setattr(
        jax.random, "uniform", lambda key, shape, dtype=float, minval=0.0: jax.numpy.full(shape, minval, dtype)
    )
    least = log_gamma(jax.random.key(0), np.full(100, 0.5, "float32"))
    assert usual.dtype == least.dtype == np.float32
    assert (least < usual).all()
    assert least.min() > -48 * np.log(2) - 10
