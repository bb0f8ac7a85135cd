"""Gamma variates of fixed cost against SciPy's distribution functions."""

import jax
import numpy as np
import pytest
from scipy import stats

from credo.core.gamma import log_gamma


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 300.0])
def test_log_gamma_has_the_right_distribution(shape):
    """Kolmogorov–Smirnov on 20,000 draws, false-alarm rate 1e-4 for each shape."""
    with jax.enable_x64(True):
        draws = np.asarray(log_gamma(jax.random.key(0), np.full(20_000, shape)))
    assert stats.kstest(np.exp(draws), stats.gamma(shape).cdf).pvalue > 1e-4
