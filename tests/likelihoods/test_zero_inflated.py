"""The zero-inflated Poisson against SciPy and sums over all counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import credo
from credo.likelihoods.zero_inflated_poisson import zero_inflated_poisson

RATES, SHARES = np.meshgrid([1e-6, 0.3, 4.0, 300.0], [1e-7, 0.2, 0.97])
OUTPUTS = np.column_stack([np.log(RATES.ravel()) - 0.5, np.log(SHARES.ravel()) - np.log1p(-SHARES.ravel())])
LIKELIHOOD = zero_inflated_poisson(offset=0.5)
COUNTS = np.arange(1000.0)


def mass(rate, share):
    """P(y) of every count [y]."""
    return share * (COUNTS == 0) + (1 - share) * scipy.stats.poisson(rate).pmf(COUNTS)


@pytest.mark.parametrize("row", range(len(OUTPUTS)))
def test_density_moments_and_distribution(row):
    rate, share = RATES.ravel()[row], SHARES.ravel()[row]
    outputs, truth = np.tile(OUTPUTS[row], (1000, 1)), mass(rate, share)
    with jax.enable_x64(True):
        log_prob = LIKELIHOOD.log_prob({}, jnp.asarray(outputs), jnp.asarray(COUNTS[:, None]))
        with np.errstate(divide="ignore"):
            seen = truth > 1e-290
            np.testing.assert_allclose(np.asarray(log_prob)[seen], np.log(truth[seen]), rtol=1e-8, atol=1e-12)
        mean, variance = (f({}, jnp.asarray(outputs[:1]))[0, 0] for f in (LIKELIHOOD.mean, LIKELIHOOD.variance))
        assert mean == pytest.approx(truth @ COUNTS, rel=1e-8)
        assert variance == pytest.approx(truth @ (COUNTS - truth @ COUNTS) ** 2, rel=1e-8)
        cdf = LIKELIHOOD.cdf({}, jnp.asarray(outputs), jnp.asarray(COUNTS[:, None]))
        np.testing.assert_allclose(cdf[:, 0], truth.cumsum(), atol=1e-5)
        assert LIKELIHOOD.cdf({}, jnp.asarray(outputs[:1]), jnp.array([[-0.5]])) == 0


def test_curvature_is_the_expected_outer_product_of_the_score():
    """By the sum over all counts, with scores by autodiff; two entries of y do not mix."""
    with jax.enable_x64(True):
        score = jax.jit(jax.vmap(jax.grad(lambda f, y: LIKELIHOOD.log_prob({}, f[None], y[None, None])[0]), (None, 0)))
        for row, rate, share in zip(OUTPUTS, RATES.ravel(), SHARES.ravel()):
            slopes = np.asarray(score(jnp.asarray(row), jnp.asarray(COUNTS)))
            truth = np.einsum("y,yi,yj->ij", mass(rate, share), slopes, slopes)
            found = LIKELIHOOD.curvature({}, jnp.asarray(row[None]))[0]
            np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-12)
        both = np.concatenate([OUTPUTS[4:6].T.ravel()])[None]
        found = np.asarray(LIKELIHOOD.curvature({}, jnp.asarray(both))[0])
        alone = [np.asarray(LIKELIHOOD.curvature({}, jnp.asarray(OUTPUTS[i : i + 1]))[0]) for i in (4, 5)]
        np.testing.assert_allclose(found[np.ix_([0, 2], [0, 2])], alone[0], rtol=1e-12)
        np.testing.assert_allclose(found[np.ix_([1, 3], [1, 3])], alone[1], rtol=1e-12)
        np.testing.assert_array_equal(found[np.ix_([0, 2], [1, 3])], 0)


def test_draws_have_the_right_mass():
    """False-alarm budget: 1e-6, one χ² test."""
    outputs = jnp.tile(jnp.array([np.log(2.5) - 0.5, np.log(0.3 / 0.7)], jnp.float32), (20_000, 1))
    draws = np.asarray(LIKELIHOOD.sample(jax.random.key(0), {}, outputs), int)[:, 0]
    truth = mass(2.5, 0.3)
    expected = 20_000 * np.append(truth[:9], truth[9:].sum())
    assert scipy.stats.chisquare(np.bincount(np.minimum(draws, 9), minlength=10), expected).pvalue > 1e-6


def test_float32_gradients_stay_finite_and_zeros_are_likely_where_the_share_is_large():
    outputs = jnp.array([[1e4, 80.0], [-90.0, -90.0], [40.0, -1e4], [3.0, 1e4]])
    value, gradient = jax.value_and_grad(lambda f: LIKELIHOOD.log_prob({}, f, jnp.zeros((4, 1))).sum())(outputs)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert float(LIKELIHOOD.log_prob({}, outputs, jnp.zeros((4, 1)))[3]) == pytest.approx(0.0, abs=1e-6)


def test_a_fit_finds_the_share_of_zeros():
    """π = 0.4 and λ = 5 at every row: mean and share of zeros of 400 rows, to two standard errors and more."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)).astype(np.float32)
    y = np.where(rng.random(400) < 0.4, 0, rng.poisson(5, 400))
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(2.0), zero_inflated_poisson())
    fit = credo.fit(jax.random.key(0), model, (x, y), "laplace", steps=600)
    predictive = credo.predict(jax.random.key(1), fit, np.zeros((1, 1), np.float32), num_samples=200)
    assert predictive.mean[0] == pytest.approx(y.mean(), abs=0.3)
    assert predictive.cdf(np.zeros(1))[0] == pytest.approx((y == 0).mean(), abs=0.06)
    assert predictive.quantile(0.3)[0] == 0
