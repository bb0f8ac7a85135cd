"""Noise and relevances of many inputs, of rows that repeat, and of rows without a factor."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import credo
from credo.methods.function_space.infinite.regression import regression
from credo.methods.function_space.infinite.relevance import SHARE, with_least_noise
from credo.methods.function_space.infinite.rows import TrainingRows, copies, searched


def _fit(x, y, noise="learned", **how):
    model = credo.Model(
        credo.networks.mlp([50, 50], "erf"), credo.priors.fan_in_normal(2.0), credo.likelihoods.gaussian(noise)
    )
    method = credo.methods.InfiniteWidth(**({"prior_scale": "relevance"} | how))
    return credo.fit(jax.random.key(0), model, (x, y), method, progress=False)


def _sigma(fit):
    return float(np.exp(fit.posterior.likelihood["log_scale"][0, 0]))


def test_irrelevant_inputs_do_not_stand_for_noise():
    """Rough functions of 28 inputs explain noise as well, and draws of them with no noise are spikes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 30)).astype(np.float32)
    y = x[:, 0] + np.sin(2 * x[:, 1]) + 0.3 * rng.normal(size=200)
    fit = _fit(x[:100], y[:100])
    assert 0.1 < _sigma(fit) < 0.6
    mean, variance = (part[:, 0] for part in fit.posterior.moments(x[100:]))
    exact = norm.logpdf(y[100:], mean, np.sqrt(variance + _sigma(fit) ** 2)).mean()
    found = credo.predict(jax.random.key(1), fit, x[100:]).log_prob(y[100:]).mean()
    assert found == pytest.approx(exact, abs=0.1)
    assert found > -1.3  # that of the mean and deviation of all targets alone: -1.63


def test_a_function_without_noise_has_draws_that_describe_targets():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(160, 3)).astype(np.float32)
    y = np.sin(x[:, 0]) * x[:, 1] + x[:, 2] ** 2
    fit = _fit(x[:80], y[:80])
    mean, variance = (part[:, 0] for part in fit.posterior.moments(x[80:]))
    exact = norm.logpdf(y[80:], mean, np.sqrt(variance + _sigma(fit) ** 2))
    found = credo.predict(jax.random.key(1), fit, x[80:]).log_prob(y[80:])
    assert np.median(found - exact) == pytest.approx(0, abs=0.1)
    assert found.mean() > 0.5


def test_rows_that_repeat_do_not_take_the_noise_away():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 2)).astype(np.float32)
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=40)
    once = _fit(x, y)
    twice = _fit(np.repeat(x, 2, 0), np.repeat(y, 2))
    assert _sigma(once) > 0.15
    assert _sigma(twice) > 0.6 * _sigma(once)


def test_copies_are_those_that_numpy_finds():
    rng = np.random.default_rng(3)
    table = rng.integers(0, 3, size=(200, 4)).astype(float)
    found = np.asarray(copies(jax.random.key(0), table[:, :3], table[:, 3]))
    distinct = np.unique(table, axis=0)
    assert found.sum() == len(table) - len(distinct)
    np.testing.assert_array_equal(np.unique(table[~found], axis=0), distinct)


@pytest.mark.parametrize("most", [None, 30, 500])
def test_the_search_sees_distinct_rows(most):
    x = jnp.asarray(np.repeat(np.arange(50.0), 2)[:, None])
    rows = TrainingRows(x, jnp.cos(x), jnp.ones(100).at[90:].set(0.0))
    some = searched(jax.random.key(0), rows, most)
    seen = np.asarray(some.inputs)[np.asarray(some.weight) > 0, 0]
    assert len(seen) == len(set(seen)) == (30 if most == 30 else 45)


def test_the_least_noise_is_a_share_of_the_error_of_a_row_left_out():
    rows = np.linspace(0, 1, 20)
    gram = jnp.asarray(np.exp(-((rows[:, None] - rows) ** 2) / 0.02))
    weight = jnp.ones(20).at[0].set(0.0)
    found = with_least_noise(gram, weight, jnp.array([-7.0, 1.0]))
    inverse = np.linalg.inv(gram[1:, 1:] + np.exp(-14.0) * np.eye(19))
    expected = np.log(SHARE * np.median(np.diagonal(inverse) ** -0.5))
    np.testing.assert_allclose(found, [expected, 1.0], rtol=1e-3)
    assert np.isfinite(regression(gram, jnp.ones((20, 2)), weight, found).log_evidence)


def test_rows_without_a_factor_fail_the_fit_with_a_sentence():
    """The three rows of the search have one; all rows have none."""
    x = np.repeat(np.linspace(-1, 1, 30), 20)[:, None]
    fit = _fit(x, np.sin(x[:, 0]), noise=1e-9, prior_scale="prior", search_rows=3)
    assert fit.outcome == "failed"
    assert not fit.status.ok
    assert "no Cholesky factor in double precision" in " ".join(fit.status.notes)
