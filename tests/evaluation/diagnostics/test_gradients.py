"""Noise of gradients and largest steps, where both are known: linear regression with normal noise."""

import jax
import numpy as np
import pytest

from credo.core.network import Variables
from credo.errors import InputError
from credo.evaluation.diagnostics import gradient_noise, step_size_check

from .conftest import PROBLEM, as_params

KEY = jax.random.key(0)
DATA = (PROBLEM.inputs, PROBLEM.targets)
THETA = PROBLEM.mean + 0.1
START = Variables(as_params(THETA.astype(np.float32)), {})
ROWS = -PROBLEM.design * (PROBLEM.targets - PROBLEM.design @ THETA)[:, None] / PROBLEM.noise**2  # gradients of −log p
N = len(ROWS)


def covariance(batch_size):
    """N²/M (1 − M/N) S: minibatches without replacement."""
    return N**2 / batch_size * (1 - batch_size / N) * np.cov(ROWS.T)


@pytest.mark.parametrize("batch_size", [8, 64])
def test_noise_is_the_sampling_variance(batch_size):
    """The relative error of a trace from 2,000 minibatches is below 3.2 %; 15 % is beyond four of them."""
    found = gradient_noise(KEY, PROBLEM.model(), START, DATA, batch_size, num=2000)
    expected = covariance(batch_size)
    assert found.trace == pytest.approx(np.trace(expected), rel=0.15)
    assert found.largest == pytest.approx(np.linalg.eigvalsh(expected)[-1], rel=0.2)
    assert found.per_row == pytest.approx(np.trace(np.cov(ROWS.T)), rel=0.15)
    full = ROWS.sum(0) + THETA
    assert found.gradient_norm == pytest.approx(np.linalg.norm(full), rel=1e-3)
    assert found.signal_to_noise == pytest.approx(full @ full / np.trace(expected), rel=0.15)


def test_all_rows_have_no_noise():
    found = gradient_noise(KEY, PROBLEM.model(), START, DATA, N, num=3)
    assert found.trace < 1e-4 * found.gradient_norm**2
    assert found.signal_to_noise > 1e4
    assert f"{N} of {N} rows" in str(found)


def test_steps_are_held_against_noise_and_curvature():
    """U is quadratic with Hessian Λ, whatever θ is."""
    curvature = np.linalg.eigvalsh(PROBLEM.precision)[-1]
    small = step_size_check(KEY, PROBLEM.model(), START, DATA, 1e-7, 64)
    assert small.curvature == pytest.approx(curvature, rel=1e-3)
    assert small.stability == pytest.approx(1e-7 * curvature, rel=1e-3)
    assert small.ok
    assert "well below 2" in str(small)
    noise = np.linalg.eigvalsh(covariance(64))[-1]
    large = step_size_check(KEY, PROBLEM.model(), START, DATA, 2.5 / curvature, 64, num=1000)
    assert large.noise_ratio == pytest.approx(0.5 * 2.5 / curvature * noise, rel=0.25)
    assert not large.ok
    assert "diverges" in str(large)
    assert large.largest == pytest.approx(min(0.2 / noise, 1 / curvature), rel=0.25)


def test_wrong_arguments():
    with pytest.raises(InputError, match="between 1 and the 256 rows"):
        gradient_noise(KEY, PROBLEM.model(), START, DATA, 257)
    with pytest.raises(InputError, match="at least 2"):
        gradient_noise(KEY, PROBLEM.model(), START, DATA, 8, num=1)
    with pytest.raises(InputError, match="positive"):
        step_size_check(KEY, PROBLEM.model(), START, DATA, 0.0, 8)
