"""Many fits as one program: the same answers as one fit after another."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.network import Variables
from credo.methods.combine import then
from credo.training.many import fit_many
from oracles import coefficients, linear

PROBLEMS = [linear(num_rows=40, dims=2, seed=s) for s in range(3)]


def batches():
    stack = [np.stack([getattr(p, name) for p in PROBLEMS]) for name in ("inputs", "targets")]
    return Batch(stack[0], stack[1][..., None], np.ones((3, 40), np.float32), np.full(3, 40, np.float32))


def posterior(key, model, found, extra):
    return found


def test_points_reach_the_mode_of_every_data_set():
    model = PROBLEMS[0].model()
    found = fit_many(jax.random.key(0), credo.methods.MAP(), model, batches(), posterior, steps=3000)
    for i, problem in enumerate(PROBLEMS):
        np.testing.assert_allclose(coefficients(found.params["network"])[i, 0, 0], problem.mean, atol=1e-3)


def test_chains_after_an_optimum_have_the_right_moments():
    """Stages, members, thinning and shared programs at once; 2 × 500 draws: means within 0.3 standard deviations."""
    model = PROBLEMS[0].model()
    method = then("map", credo.methods.HMC(chains=2, warmup=200, num_steps=10))
    found = fit_many(jax.random.key(1), method, model, batches(), posterior, steps=1000, thin=2)
    draws = coefficients(found.params["network"])
    assert draws.shape == (3, 2, 500, 3)
    for i, problem in enumerate(PROBLEMS):
        std = np.sqrt(np.diag(problem.covariance))
        np.testing.assert_allclose((draws[i].mean((0, 1)) - problem.mean) / std, 0, atol=0.3)
        np.testing.assert_allclose(draws[i].std((0, 1)) / std, 1, atol=0.2)


def test_a_method_in_double_precision_has_the_digits_of_one_fit():
    """Of Gaussian rows the curvature is exact, and so is the covariance: to 1e-7, which single precision has not."""
    model = PROBLEMS[0].model()
    found = fit_many(jax.random.key(0), credo.methods.Laplace(), model, batches(), posterior, steps=3000)
    for i, problem in enumerate(PROBLEMS):
        own = jax.tree.map(lambda x, i=i: x[i], found.spread)
        factor = np.asarray(own.scale[0])
        assert factor.dtype == np.float64
        expected = np.sort(np.linalg.eigvalsh(problem.covariance))
        np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(factor @ factor.T)), expected, rtol=1e-7)


def test_given_starts_are_used():
    model = PROBLEMS[0].model()
    network = {"output": {"bias": np.full((3, 1), 7.0, np.float32), "kernel": np.zeros((3, 1, 2), np.float32)}}
    start = Variables({"network": network, "likelihood": {}, "prior": {}}, {})
    still = dataclasses.replace(credo.methods.MAP(), learning_rate=0.0)
    found = fit_many(jax.random.key(0), still, model, batches(), posterior, start=start, steps=2)
    np.testing.assert_array_equal(found.params["network"]["output"]["bias"], np.full((3, 1, 1, 1), 7.0))


def test_refusals_come_before_anything_is_compiled():
    with pytest.raises(credo.errors.InputError, match="step size"):
        fit_many(jax.random.key(0), credo.methods.HMC(warmup=0), PROBLEMS[0].model(), batches(), posterior, steps=5)
