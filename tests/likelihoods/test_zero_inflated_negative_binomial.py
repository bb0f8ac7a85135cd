"""The zero-inflated negative binomial against SciPy and sums over all counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import credo
from credo.likelihoods import negative_binomial, zero_inflated_negative_binomial, zero_inflated_poisson

R = 2.5
RATES, SHARES = np.meshgrid([1e-6, 0.3, 4.0, 20.0], [1e-7, 0.2, 0.97])
OUTPUTS = np.column_stack([np.log(RATES.ravel()) - 0.5, np.log(SHARES.ravel()) - np.log1p(-SHARES.ravel())])
LIKELIHOOD = zero_inflated_negative_binomial(R, offset=0.5)
COUNTS = np.arange(1000.0)


def mass(rate, share):
    """P(y) of every count [y]."""
    return share * (COUNTS == 0) + (1 - share) * scipy.stats.nbinom(R, R / (R + rate)).pmf(COUNTS)


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


def test_its_limits_are_its_neighbours():
    """Without zeros of their own the negative binomial, with large r the zero-inflated Poisson."""
    f = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)), jnp.float32)
    y = jnp.array([[0, 1], [2, 0], [5, 5], [0, 0], [1, 30]], jnp.float32)
    never = jnp.concatenate([f, jnp.full((5, 2), -40.0)], -1)
    wanted = negative_binomial(R, offset=0.5).log_prob({}, f, y)
    np.testing.assert_allclose(LIKELIHOOD.log_prob({}, never, y), wanted, rtol=1e-5)
    some = jnp.concatenate([f, 0.3 * f], -1)
    wanted = zero_inflated_poisson().log_prob({}, some, y)
    np.testing.assert_allclose(zero_inflated_negative_binomial(1e7).log_prob({}, some, y), wanted, rtol=1e-4)


def test_a_fit_is_as_likely_as_the_truth():
    """π = 0.4, μ = 5 and r = 2 at 2,000 rows: three numbers that are learned beat the truth by 1.5 nats on average, and
    the prior and the spread of the posterior cost little; mean and variance to three standard errors and more."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.4, 0, rng.negative_binomial(2.0, 2 / 7, 2000))
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(2.0), zero_inflated_negative_binomial())
    fit = credo.fit(
        jax.random.key(0), model, (np.zeros((2000, 1)), y), credo.methods.Laplace(learning_rate=0.05), steps=800
    )
    predictive = credo.predict(jax.random.key(1), fit, np.zeros((2000, 1), np.float32), num_samples=50)
    assert predictive.mean[0] == pytest.approx(3.0, abs=0.35)
    assert predictive.std[0] ** 2 == pytest.approx(0.6 * (5 + 12.5) + 0.24 * 25, rel=0.2)
    truth = 0.4 * (y == 0) + 0.6 * scipy.stats.nbinom(2.0, 2 / 7).pmf(y)
    assert predictive.log_prob(y).sum() > np.log(truth).sum() - 3
