"""The method of examples/own_method.py, which people copy, is exact on linear regression."""

import runpy
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

import arviz_numbers
import credo
from oracles import coefficients, linear

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_method.py"


@pytest.fixture(scope="module")
def method():
    return runpy.run_path(str(EXAMPLE))["EllipticalSlice"]


def test_it_is_exact_and_repeatable(method):
    """z-scores of all means and variances below the Bonferroni bound for a false-alarm rate of 1e-3."""
    problem = linear(num_rows=64, dims=2)
    data, model = (problem.inputs, problem.targets), problem.model()
    fit, again = (credo.fit(jax.random.key(0), model, data, method(), steps=2000) for _ in range(2))
    chains = coefficients(fit.posterior.params["network"]).astype(np.float64)
    np.testing.assert_array_equal(chains, coefficients(again.posterior.params["network"]))
    values = np.concatenate([chains, (chains - problem.mean) ** 2], axis=-1)
    truth = np.concatenate([problem.mean, np.diag(problem.covariance)])
    error = arviz_numbers.mcse(values)
    scores = (values.mean((0, 1)) - truth) / error
    assert np.abs(scores).max() < stats.norm.isf(1e-3 / 2 / scores.size)
