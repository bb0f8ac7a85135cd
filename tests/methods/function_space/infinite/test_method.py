"""`infinite_width` in the house: draws of functions, double precision, saving, estimators, refusals."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.core.draws import function_draws
from credo.errors import InputError, Refusal
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.methods.function_space.infinite import InfiniteWidth
from credo.methods.function_space.infinite.method import check_size

from .nets import model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)).astype(np.float32)
Y = np.sin(2 * X[:, 0])
NEW = RNG.normal(size=(12, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def fit():
    return credo.fit(jax.random.key(0), model([20], "relu"), (X, Y), "infinite_width")


def test_draws_are_joint_centred_and_have_the_exact_covariance(fit):
    """20,000 draws: entries of the correlation within 5/√20000 (false alarms below 1e-4 over all of them)."""
    values = function_draws(jax.random.key(1), fit, NEW, 20_000).values[0, :, :, 0].astype(np.float64)
    mean, covariance = fit.posterior.moments(NEW, covariance=True)
    covariance = covariance[:, 0, :, 0]
    np.testing.assert_allclose(values.mean(0), mean[:, 0], atol=1e-5)
    std = np.sqrt(np.diag(covariance))
    error = (np.cov(values.T) - covariance) / np.outer(std, std)
    np.testing.assert_allclose(error, 0, atol=5 * np.sqrt(2 / 20_000))


def test_a_row_has_one_value_however_often_it_is_asked_for(fit):
    values = function_draws(jax.random.key(1), fit, NEW[[0, 3, 0, 3, 3]], 50).values[0, :, :, 0]
    np.testing.assert_array_equal(values[:, [0, 1]], values[:, [2, 3]])


def test_predictions_keep_double_precision():
    """Noise of 1e-3 leaves variances a million times smaller than the prior's: single precision has none of them."""
    fit = credo.fit(jax.random.key(0), model([20], "relu", noise=1e-3), (X, Y), "infinite_width")
    found = credo.predict(jax.random.key(1), fit, X, num_samples=4000)
    mean, variance = fit.posterior.moments(X)
    assert variance.max() < 1e-6
    np.testing.assert_allclose(found.mean, mean[:, 0], atol=1e-6)
    np.testing.assert_allclose(found.epistemic, variance[:, 0], rtol=5 * np.sqrt(2 / 4000))


def test_many_rows_are_drawn_in_blocks(fit):
    many = np.random.default_rng(1).normal(size=(1300, 2)).astype(np.float32)
    found = credo.predict(jax.random.key(1), fit, many, num_samples=400)
    mean, variance = fit.posterior.moments(many)
    np.testing.assert_allclose(found.mean, mean[:, 0], atol=1e-5)
    # Over all rows together the error is that of far more than 400 draws; each row's is 7 %.
    np.testing.assert_allclose(np.median(found.epistemic / variance[:, 0]), 1, atol=0.1)


def test_saved_and_loaded_it_predicts_the_same(fit, tmp_path):
    fit.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    for f in (fit, again):
        assert f.posterior.log_evidence.dtype == np.float64
    a, b = (credo.predict(jax.random.key(1), f, NEW) for f in (fit, again))
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a.epistemic, b.epistemic)
    np.testing.assert_array_equal(fit.posterior.moments(NEW), again.posterior.moments(NEW))


def test_summary_and_status_speak_of_functions(fit):
    assert fit.status.ok
    assert "functions, not weights" in fit.summary()
    assert not hasattr(fit.posterior, "sample")
    with pytest.raises(Refusal, match="functions and no weights"):
        fit.point()
    with pytest.raises(Refusal, match='mode="sampled" only'):
        credo.predict(jax.random.key(0), fit, NEW, mode="linearised")


def test_the_widths_of_the_network_do_not_matter(fit):
    wide = credo.fit(jax.random.key(0), model([700], "relu"), (X, Y), "infinite_width")
    np.testing.assert_array_equal(wide.posterior.moments(NEW), fit.posterior.moments(NEW))


def test_refusals_say_why():
    data, ten = (X, Y), model([20]).tempered(10.0)
    with pytest.raises(Refusal, match="temperature"):
        credo.fit(jax.random.key(0), ten, data, "infinite_width")
    with pytest.raises(InputError, match="prior_scale must be one of"):
        credo.fit(jax.random.key(0), model([20]), data, InfiniteWidth(prior_scale="best"))
    normal = dataclasses.replace(model([20]), prior=credo.priors.normal(1.0))
    with pytest.raises(Refusal, match="does not fall as 1/fan_in"):
        credo.fit(jax.random.key(0), normal, data, "infinite_width")
    with pytest.raises(Refusal, match="20,000 rows, and 10,000 is the most"):
        credo.fit(jax.random.key(0), model([20]), (np.zeros((20_000, 1)), np.zeros(20_000)), "infinite_width")
    with pytest.raises(Refusal, match="4,000 rows × 3 outputs"):
        check_size(4000, 3)


def test_the_regressor():
    regressor = BayesianRegressor(method="infinite_width").fit(X, Y)
    assert regressor.score(X, Y) > 0.9


@pytest.mark.full
def test_the_classifier():
    classifier = BayesianClassifier(method="infinite_width").fit(X, Y > 0)
    assert classifier.score(X, Y > 0) > 0.9
