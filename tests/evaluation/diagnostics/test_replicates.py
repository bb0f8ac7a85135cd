"""Posterior predictive checks: a right model makes data like these, a wrong one does not."""

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.evaluation.diagnostics import posterior_predictive_check
from credo.posteriors import Samples

from .conftest import PROBLEM, as_params, exact_draws, samples, with_posterior

KEY = jax.random.key(0)
DATA = (PROBLEM.inputs, PROBLEM.targets)


def test_a_right_model_makes_such_data(base):
    found = posterior_predictive_check(KEY, with_posterior(base, samples(exact_draws(PROBLEM, 4, 250))), DATA)
    assert list(found) == ["mean", "std", "min", "max"]
    assert all(0.01 < check.p_value < 0.99 for check in found.values())
    assert found["mean"].observed == pytest.approx(PROBLEM.targets.mean(), rel=1e-5)
    # E[mean y_rep] = x̄'m, with variance x̄'Σx̄ + σ²/N.
    middle = PROBLEM.design.mean(0)
    variance = middle @ PROBLEM.covariance @ middle + PROBLEM.noise**2 / 256
    assert found["mean"].replicated.mean() == pytest.approx(middle @ PROBLEM.mean, abs=5 * np.sqrt(variance / 1000))
    assert found["mean"].replicated.std() == pytest.approx(np.sqrt(variance), rel=0.15)


def test_too_little_noise_is_seen(base):
    quiet = PROBLEM._replace(noise=0.1)
    fit = with_posterior(base, samples(exact_draws(quiet, 4, 100)), model=quiet.model())
    found = posterior_predictive_check(KEY, fit, DATA, "std")
    assert list(found) == ["std"]
    assert found["std"].p_value < 0.01
    assert "does not make data like these" in str(found["std"])


def test_own_statistics_and_weighted_draws(base):
    fit = with_posterior(base, samples(exact_draws(PROBLEM, 1, 200)))
    found = posterior_predictive_check(KEY, fit, DATA, {"median": np.median, "first": lambda y: y[0]})
    assert list(found) == ["median", "first"]
    assert list(posterior_predictive_check(KEY, fit, DATA, np.ptp)) == ["ptp"]
    # All weight on the draws of one half: the other half, far away, does not count.
    theta = exact_draws(PROBLEM, 1, 200)
    theta[:, 100:] += 100
    weights = np.where(np.arange(200) < 100, 0.0, -50.0)[None].astype(np.float32)
    fit = with_posterior(base, Samples(as_params(theta), {}, weights))
    assert 0.01 < posterior_predictive_check(KEY, fit, DATA, "mean")["mean"].p_value < 0.99
    with pytest.raises(InputError, match="mean, std, min, max"):
        posterior_predictive_check(KEY, fit, DATA, "mode")


@pytest.mark.full
def test_counts_and_classes():
    x = PROBLEM.inputs[:64]
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, 64)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.poisson())
    fit = credo.fit(KEY, model, (x, counts), "map", steps=300)
    found = posterior_predictive_check(KEY, fit, (x, counts))
    assert list(found) == ["mean", "std", "min", "max", "share of zeros"]
    classes = rng.integers(0, 3, 64)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.categorical(3))
    fit = credo.fit(KEY, model, (x, classes), "map", steps=300)
    fit = with_posterior(fit, jax.tree.map(lambda p: np.repeat(p, 400, 1), fit.posterior))
    found = posterior_predictive_check(KEY, fit, (x, classes))
    assert list(found) == ["share of class 0", "share of class 1", "share of class 2"]
    assert all(0.01 < check.p_value < 0.99 for check in found.values())
    with pytest.raises(InputError, match="no mean"):
        posterior_predictive_check(KEY, fit, (x, classes), "mean")


def test_several_outputs():
    x, y = PROBLEM.inputs[:64], np.column_stack([PROBLEM.targets[:64], -PROBLEM.targets[:64]])
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.5))
    fit = credo.fit(KEY, model, (x, y), "map", steps=10)
    found = posterior_predictive_check(KEY, fit, (x, y), "mean", num=5)
    assert list(found) == ["mean of output 1", "mean of output 2"]
