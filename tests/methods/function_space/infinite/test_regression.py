"""The exact posterior and evidence, against scikit-learn's Gaussian process with the same kernel."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from sklearn.gaussian_process import GaussianProcessRegressor

import credo
from credo.methods.function_space.infinite import InfiniteWidth, kernel, kernel_of
from credo.methods.function_space.infinite.regression import regression, smooth_regression

from .nets import model
from .peers import Wide

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)).astype(np.float32)
Y = (np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=30)).astype(np.float32)
NEW = RNG.normal(size=(15, 2)).astype(np.float32)
NOISE = float(np.float32(0.1))  # numbers of a model travel in single precision


def peer(function, noise=NOISE, inputs=X, targets=Y):
    found = GaussianProcessRegressor(Wide(function), alpha=noise**2, optimizer=None)
    return found.fit(inputs.astype(np.float64), targets.astype(np.float64))


def fitted(given, inputs=X, targets=Y, method="infinite_width", **options):
    return credo.fit(jax.random.key(0), given, (inputs, targets), method, **options)


QUICK = (("erf", [20, 20, 20]), ("relu", [20]))
CASES = [(a, w) for a in ("erf", "relu") for w in ([], [20], [20, 20, 20])]


@pytest.mark.parametrize(
    ("activation", "widths"), [c if c in QUICK else pytest.param(*c, marks=pytest.mark.full) for c in CASES]
)
def test_posterior_and_evidence_are_those_of_scikit_learn(activation, widths):
    given = model(widths, activation)
    fit = fitted(given)
    truth = peer(fit.posterior.kernel)
    mean, covariance = truth.predict(NEW.astype(np.float64), return_cov=True)
    own, spread = fit.posterior.moments(NEW, covariance=True)
    np.testing.assert_allclose(own[:, 0], mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(spread[:, 0, :, 0], covariance, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fit.posterior.moments(NEW)[1][:, 0], np.diag(covariance), rtol=0, atol=1e-6)
    np.testing.assert_allclose(fit.posterior.log_evidence, truth.log_marginal_likelihood_value_, rtol=1e-6)
    np.testing.assert_allclose(fit.posterior.kernel.weight, kernel_of(given, 2).weight, rtol=1e-6)


def test_several_outputs_are_independent():
    both = np.stack([Y, -2 * Y], 1)
    fit = fitted(model([20]), targets=both)
    mean, variance = fit.posterior.moments(NEW)
    for k in (0, 1):
        truth = peer(fit.posterior.kernel, targets=both[:, k])
        expected, std = truth.predict(NEW.astype(np.float64), return_std=True)
        np.testing.assert_allclose(mean[:, k], expected, atol=1e-6)
        np.testing.assert_allclose(variance[:, k], std**2, atol=1e-6)
    one = fitted(model([20])).posterior.log_evidence
    other = fitted(model([20]), targets=-2 * Y).posterior.log_evidence
    np.testing.assert_allclose(fit.posterior.log_evidence, one + other, rtol=1e-9)
    _, covariance = fit.posterior.moments(NEW, covariance=True)
    assert not covariance[:, 0, :, 1].any()


def test_slopes_from_one_inverse_are_those_of_the_factor():
    """Two outputs, a row of weight 2 and one of weight 0."""
    with jax.enable_x64(True):
        weight = jnp.ones(30).at[0].set(2.0).at[1].set(0.0)
        both, rows = jnp.stack([Y, Y**2], 1), jnp.asarray(X, jnp.float64)

        def evidence(function, numbers):
            gram = numbers[0] * jnp.exp(-((rows[:, None] - rows) ** 2).sum(-1) / numbers[1])
            return function(gram, both, weight, numbers[2:]).log_evidence

        at = jnp.array([1.3, 0.7, -1.0, -2.0])
        values, slopes = zip(*(jax.value_and_grad(partial(evidence, f))(at) for f in (regression, smooth_regression)))
    np.testing.assert_allclose(values[1], values[0], rtol=1e-12)
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-8)


def test_a_weight_counts_rows():
    """Weight 2 is the row twice, evidence included; weight 0 is no row."""
    weight = np.ones(30, np.float32)
    weight[:5], weight[5:8] = 2.0, 0.0
    fit = fitted(model([20]), inputs=X, targets=Y)
    weighted = credo.fit(jax.random.key(0), model([20]), (X, Y, weight), "infinite_width")
    rows = np.repeat(np.arange(30), weight.astype(int))
    repeated = fitted(model([20]), inputs=X[rows], targets=Y[rows])
    for a, b in zip(weighted.posterior.moments(NEW), repeated.posterior.moments(NEW)):
        np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(weighted.posterior.log_evidence, repeated.posterior.log_evidence, rtol=1e-10)
    assert not np.allclose(weighted.posterior.log_evidence, fit.posterior.log_evidence)


def test_learned_noise_is_at_the_maximum_of_the_evidence():
    fit = fitted(model([20], noise="learned"))
    function = fit.posterior.kernel

    def loss(log_sigma):
        return -peer(function, np.exp(log_sigma)).log_marginal_likelihood_value_

    best = optimize.minimize_scalar(loss, bounds=(-6, 1), method="bounded", options={"xatol": 1e-8})
    np.testing.assert_allclose(fit.posterior.likelihood["log_scale"].ravel(), best.x, atol=1e-4)
    np.testing.assert_allclose(fit.posterior.log_evidence, -best.fun, atol=1e-6)
    converged = fit.trace["converged"][0]
    assert len(converged) < 100  # it ends by itself
    assert converged[-1] == 1
    assert not converged[:-1].any()
    assert (np.diff(fit.trace["log_evidence"][0]) >= -1e-5).all()


@pytest.mark.full
def test_inferred_noise_is_at_its_mode():
    fit = fitted(model([20], noise="inferred"))
    function, likelihood = fit.posterior.kernel, fit.model.likelihood

    def loss(log_sigma):
        prior = 0.5 * ((log_sigma - likelihood.prior_loc) / likelihood.prior_scale) ** 2
        return prior - peer(function, np.exp(log_sigma)).log_marginal_likelihood_value_

    best = optimize.minimize_scalar(loss, bounds=(-6, 1), method="bounded", options={"xatol": 1e-8})
    np.testing.assert_allclose(fit.posterior.likelihood["log_scale"].ravel(), best.x, atol=1e-4)
    assert "taken at its mode" in str(fit.status)


@pytest.mark.full
def test_scales_by_the_evidence():
    """Weight variance, bias variance and noise at the maximum, as a simplex search finds it."""
    fit = fitted(model([20], noise="learned"), method=InfiniteWidth(prior_scale="evidence"))
    start = kernel_of(model([20]), 2)

    def loss(logs):
        scaled = start.scaled(np.exp(logs[0]), np.exp(logs[1]))
        function = kernel(1, "erf", weight=np.asarray(scaled.weight), bias=np.asarray(scaled.bias))
        return -peer(function, np.exp(logs[2])).log_marginal_likelihood_value_

    best = optimize.minimize(loss, [0.0, 0.0, -2.0], method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-7})
    assert fit.posterior.log_evidence[0] > -best.fun - 1e-3
    kept = fitted(model([20], noise="learned")).posterior.log_evidence[0]
    assert fit.posterior.log_evidence[0] > kept
    scales = [fit.posterior.weight_scale, fit.posterior.bias_scale]
    np.testing.assert_allclose(np.log(scales).ravel(), best.x[:2], atol=0.02)


def test_rows_that_repeat_and_tiny_noise():
    """B stays regular where K + σ²I is singular to rounding."""
    fit = fitted(model([20], noise=1e-5), inputs=np.repeat(X, 3, axis=0), targets=np.repeat(Y, 3))
    mean, variance = fit.posterior.moments(X)
    np.testing.assert_allclose(mean[:, 0], Y, atol=1e-3)
    assert (variance < 1e-8).all()
    assert np.isfinite(fit.posterior.log_evidence).all()


@pytest.mark.parametrize("rows", [1, pytest.param(2, marks=pytest.mark.full)])
def test_few_rows(rows):
    fit = fitted(model([20], noise="learned"), inputs=X[:rows], targets=Y[:rows])
    assert np.isfinite(fit.posterior.moments(NEW)).all()


def test_a_constant_target():
    fit = fitted(model([20], noise="learned"), targets=np.zeros(30))
    mean, variance = fit.posterior.moments(NEW)
    np.testing.assert_allclose(mean, 0, atol=1e-9)
    assert np.isfinite(variance).all()
