"""Corrected likelihoods against SciPy, and against the ones that they correct."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from credo.core.likelihood import Likelihood
from credo.likelihoods import (
    Overdispersed,
    Stretched,
    Tempered,
    bernoulli,
    categorical,
    gaussian,
    heteroscedastic,
    heteroscedastic_t,
    negative_binomial,
    poisson,
    student_t,
)

RAW = float(np.log(np.expm1(0.2 - 1e-3)))  # the raw output whose scale is 0.2
REAL = {
    "gaussian": (gaussian(0.2), scipy.stats.norm(scale=0.3)),
    "student_t": (student_t(4.0, noise=0.2), scipy.stats.t(4.0, scale=0.3)),
    "heteroscedastic": (heteroscedastic(), scipy.stats.norm(scale=0.3)),
    "heteroscedastic_t": (heteroscedastic_t(df=5.0), scipy.stats.t(5.0, scale=0.3)),
}
COUNTS = {"poisson": (poisson(), 0.0), "negative_binomial": (negative_binomial(3.0), 1 / 3)}
LOG_SHARES = tuple(np.log([0.7, 0.3]).tolist())


@pytest.mark.parametrize(("inner", "truth"), REAL.values(), ids=REAL.keys())
def test_noise_is_as_much_wider_as_it_says(inner, truth):
    likelihood = Stretched(inner, 1.5)
    assert isinstance(likelihood, Likelihood)
    with jax.enable_x64(True):
        mean, y = np.array([[1.0], [2.0], [-3.0]]), np.array([[1.1], [0.5], [-3.0]])
        outputs = jnp.asarray(mean)
        if likelihood.num_outputs(mean) == 2:
            outputs = jnp.concatenate([outputs, jnp.full((3, 1), RAW)], 1)
        z = y - mean
        np.testing.assert_allclose(likelihood.log_prob({}, outputs, y), truth.logpdf(z)[:, 0], rtol=1e-9)
        np.testing.assert_allclose(likelihood.cdf({}, outputs, y), truth.cdf(z), atol=1e-7)
        np.testing.assert_allclose(likelihood.variance({}, outputs), np.full((3, 1), truth.var()), rtol=1e-9)
        np.testing.assert_array_equal(likelihood.mean({}, outputs), mean)
        same = Stretched(inner, 1.0)
        np.testing.assert_allclose(same.log_prob({}, outputs, y), inner.log_prob({}, outputs, y), rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "heteroscedastic"])
def test_curvature_of_stretched_noise_is_the_expected_hessian(name):
    """By the mean over quantiles, which is exact to the spacing of 2,000 of them."""
    inner = REAL[name][0]
    likelihood = Stretched(inner, 1.5)
    with jax.enable_x64(True):
        row = jnp.array([0.5, RAW])[: likelihood.num_outputs(np.zeros((1, 1)))]
        y = 0.5 + scipy.stats.norm(scale=0.3).ppf((np.arange(2000) + 0.5) / 2000)

        def density(f, target):
            return likelihood.log_prob({}, f[None], target[None, None])[0]

        each = jax.vmap(jax.hessian(density), (None, 0))(row, jnp.asarray(y))
        np.testing.assert_allclose(likelihood.curvature({}, row[None])[0], -each.mean(0), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("inner", "inverse"), COUNTS.values(), ids=COUNTS.keys())
def test_counts_vary_by_as_much_more(inner, inverse):
    likelihood = Overdispersed(inner, 1.5)
    assert isinstance(likelihood, Likelihood)
    with jax.enable_x64(True):
        mu = np.array([[2.0], [40.0]])
        outputs, y = jnp.log(mu), np.array([[3.0], [20.0]])
        np.testing.assert_allclose(likelihood.mean({}, outputs), mu, rtol=1e-9)
        variance = 2.25 * (mu + mu**2 * inverse)
        np.testing.assert_allclose(likelihood.variance({}, outputs), variance, rtol=1e-9)
        r = mu**2 / (variance - mu)
        truth = scipy.stats.nbinom(r, r / (r + mu))
        np.testing.assert_allclose(likelihood.log_prob({}, outputs, y), truth.logpmf(y)[:, 0], rtol=1e-6)
        np.testing.assert_allclose(likelihood.cdf({}, outputs, y), truth.cdf(y), atol=5e-6)
        np.testing.assert_allclose(
            Overdispersed(inner, 1.0).log_prob({}, outputs, y), inner.log_prob({}, outputs, y), rtol=1e-5
        )
        information = np.asarray(likelihood.curvature({}, outputs))[:, 0, 0]
        np.testing.assert_allclose(information, (mu**2 / variance)[:, 0], rtol=1e-6)


@pytest.mark.parametrize("inner", [bernoulli(), categorical(2)], ids=["bernoulli", "categorical"])
def test_probabilities_are_cooled_and_drawn_to_the_frequencies(inner):
    likelihood = Tempered(inner, 2.0, 0.25, LOG_SHARES)
    assert isinstance(likelihood, Likelihood)
    with jax.enable_x64(True):
        outputs = jnp.asarray(np.random.default_rng(0).normal(size=(5, inner.num_outputs(None))) * 3)
        cooled = scipy.special.softmax(np.asarray(inner.log_probs({}, outputs)) / 2, -1)
        probs = 0.75 * cooled + 0.25 * np.exp(LOG_SHARES)
        np.testing.assert_allclose(likelihood.mean({}, outputs), probs, rtol=1e-9)
        np.testing.assert_allclose(likelihood.variance({}, outputs), probs * (1 - probs), rtol=1e-9)
        entropy = scipy.stats.entropy(probs, axis=1)
        np.testing.assert_allclose(likelihood.entropy({}, outputs), entropy, rtol=1e-9)
        labels = np.array([0, 1, 1, 0, 1])
        got = likelihood.log_prob({}, outputs, jnp.asarray(labels))
        np.testing.assert_allclose(got, np.log(probs[np.arange(5), labels]), rtol=1e-9)
        same = Tempered(inner, 1.0, 0.0, LOG_SHARES)
        np.testing.assert_allclose(same.log_probs({}, outputs), inner.log_probs({}, outputs), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(same.curvature({}, outputs), inner.curvature({}, outputs), rtol=1e-6, atol=1e-9)
        frequencies = Tempered(inner, 1.0, 1.0, LOG_SHARES)
        np.testing.assert_allclose(frequencies.mean({}, outputs), np.tile(np.exp(LOG_SHARES), (5, 1)), rtol=1e-9)


def test_draws_are_as_wide_as_the_density():
    """A variance of 4,000 draws lies within 5 % by 4.5 standard errors."""
    draws = Stretched(gaussian(0.2), 1.5).sample(jax.random.key(0), {}, jnp.zeros((4000, 1)))
    assert float(jnp.var(draws)) == pytest.approx(0.09, rel=0.1)
    counts = Overdispersed(poisson(), 2.0).sample(jax.random.key(0), {}, jnp.full((4000, 1), jnp.log(10.0)))
    assert float(jnp.var(counts)) == pytest.approx(40.0, rel=0.15)
    labels = Tempered(bernoulli(), 1.0, 1.0, LOG_SHARES).sample(jax.random.key(0), {}, jnp.zeros((4000, 1)))
    assert float(labels.mean()) == pytest.approx(0.3, abs=0.04)


def test_what_is_learned_stays_the_inner_ones_business():
    likelihood = Stretched(gaussian(), 1.5)
    assert likelihood.point
    assert likelihood.normal
    assert likelihood.inferring().inner.noise == "inferred"
    assert likelihood.inferring().factor == 1.5
    known = Stretched(gaussian(0.1), 1.5)
    assert known.inferring() is known
    assert not Stretched(student_t(), 1.5).normal
    params = likelihood.init(jnp.ones((3, 1)), jnp.ones(3))
    assert set(params) == {"log_scale"}
