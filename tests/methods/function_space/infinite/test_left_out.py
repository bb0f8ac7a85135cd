"""Rows left out of a Gaussian process in closed form, against fits without them."""

import jax
import numpy as np
import pytest

import credo
from credo.methods.function_space.infinite.left_out import leave_one_out

ROWS = 30


def _fit(likelihood, x, y, **how):
    model = credo.Model(credo.networks.mlp([50], "erf"), credo.priors.fan_in_normal(2.0), likelihood)
    return credo.fit(jax.random.key(0), model, (x, y), credo.methods.InfiniteWidth(**how), progress=False)


def _data():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, 2))
    return x, np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=ROWS)


def _without(x, y, i):
    return np.delete(x, i, 0), np.delete(y, i, 0)


@pytest.mark.parametrize("columns", [1, 2])
def test_it_is_the_fit_without_the_row_under_normal_noise(columns):
    x, y = _data()
    y = y if columns == 1 else np.stack([y, x[:, 0] - y], 1)
    likelihood = credo.likelihoods.gaussian(noise=0.3)
    mean, covariance = leave_one_out(_fit(likelihood, x, y).posterior, ROWS)
    assert mean.shape == (ROWS, columns)
    for i in (0, 7, ROWS - 1):
        exact = _fit(likelihood, *_without(x, y, i)).posterior.moments(x[i : i + 1])
        np.testing.assert_allclose(mean[i], exact[0][0], atol=1e-6)
        np.testing.assert_allclose(np.diagonal(covariance[i]), exact[1][0], rtol=1e-5)


def test_noise_that_is_far_smaller_than_the_error_keeps_the_digits():
    """At σ = 1e-5 the product W V is 1 up to rounding; what is left of I − W V says all about the row."""
    x, y = _data()
    posterior = _fit(credo.likelihoods.gaussian(noise=1e-5), x, y).posterior
    mean, covariance = leave_one_out(posterior, ROWS)
    # 1/(C⁻¹)ᵢᵢ = V₋ᵢ + σ² and y − (C⁻¹y)ᵢ/(C⁻¹)ᵢᵢ, of C = K + σ²I.
    inverse = np.linalg.inv(posterior.kernel(x) + 1e-10 * np.eye(ROWS))
    np.testing.assert_allclose(covariance[:, 0, 0], 1 / np.diagonal(inverse) - 1e-10, rtol=1e-3)
    np.testing.assert_allclose(mean[:, 0], y - inverse @ y / np.diagonal(inverse), atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_close_to_the_fit_without_the_row_under_other_likelihoods(classes):
    x, y = _data()
    labels = np.digitize(y, [0.0] if classes == 2 else [-0.4, 0.4])
    likelihood = credo.likelihoods.bernoulli() if classes == 2 else credo.likelihoods.categorical(classes)
    mean, covariance = leave_one_out(_fit(likelihood, x, labels).posterior, ROWS)
    for i in (0, 7, ROWS - 1):
        moments = _fit(likelihood, *_without(x, labels, i)).posterior.moments(x[i : i + 1], covariance=True)
        spread = np.sqrt(np.diagonal(moments[1][0, :, 0]))
        assert (np.abs(mean[i] - moments[0][0]) < 0.1 * spread).all()
        np.testing.assert_allclose(covariance[i], moments[1][0, :, 0], atol=0.1 * spread.max() ** 2)


def test_relevance_finds_the_inputs_that_matter():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(80, 6))
    y = np.sin(2 * x[:, 1]) + 0.1 * rng.normal(size=80)
    likelihood = credo.likelihoods.gaussian(noise="learned")
    plain, own = (_fit(likelihood, x, y, prior_scale=word) for word in ("evidence", "relevance"))
    relevance = np.asarray(own.posterior.relevance)[0]
    assert relevance.argmax() == 1
    assert np.delete(relevance, 1).max() < 0.05 * relevance[1]
    new = rng.normal(size=(200, 6))
    errors = [np.square(fit.posterior.moments(new)[0][:, 0] - np.sin(2 * new[:, 1])).mean() for fit in (plain, own)]
    assert errors[1] < 0.5 * errors[0]


def test_relevance_is_a_scale_of_the_inputs():
    x, y = _data()
    fit = _fit(credo.likelihoods.gaussian(noise="learned"), x, y, prior_scale="relevance")
    own = fit.posterior.kernel
    scaled = credo.infinite.kernel(1, "erf", weight=own.weight, bias=own.bias)
    np.testing.assert_allclose(own(x), scaled(x * np.sqrt(own.relevance)))
    np.testing.assert_allclose(own.diagonal(x), np.diagonal(own(x)))
