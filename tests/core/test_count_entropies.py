"""Entropies of counts against sums over all of them in double precision, and against their limits at huge rates."""

import numpy as np
import pytest
from scipy import special, stats

from credo import likelihoods
from predictives import predictive


def parts(p, outputs, weights=None):
    """Entropy, noise and mutual information [3] of one row of outputs [K], each [n, 1] in one predictive."""
    found = predictive(p, np.asarray(outputs, float)[:, None, None], weights=weights)
    return np.array([found.entropy()[0], found.conditional_entropy()[0], found.mutual_information()[0]])


def summed(laws, weights, top):
    """The same by sums over 0 … top."""
    y = np.arange(top + 1)
    each = np.stack([law.logpmf(y) for law in laws])
    whole = special.logsumexp(each + np.log(weights)[:, None], axis=0)
    plogp = lambda log_p: -np.where(log_p > -700, np.exp(log_p) * log_p, 0.0).sum(-1)  # noqa: E731
    total, noise = plogp(whole), weights @ plogp(each)
    return np.array([total, noise, total - noise])


def normal_entropy(log_rate):
    """½ log 2πe λ, and the first term that it leaves out."""
    return 0.5 * np.log(2 * np.pi * np.e) + 0.5 * log_rate - np.exp(-log_rate) / 12


@pytest.mark.parametrize("log_rate", [-3.0, 0.0, 2.0, 5.0, 9.0, 10.7, 11.0, 13.0])
def test_one_poisson_is_the_sum_over_all_counts(log_rate):
    """On both sides of 2,048 counts that matter, which is near log λ = 10."""
    rate = np.exp(log_rate)
    wanted = summed([stats.poisson(rate)], np.ones(1), int(rate + 12 * np.sqrt(rate) + 30))
    np.testing.assert_allclose(parts(likelihoods.poisson(), [log_rate]), wanted, atol=3e-4)


@pytest.mark.parametrize("log_rate", [15.0, 16.9, 17.1, 20.0, 23.0, 29.0])
def test_one_poisson_of_a_huge_rate_is_a_normal(log_rate):
    found = parts(likelihoods.poisson(), [log_rate])
    np.testing.assert_allclose(found, [normal_entropy(log_rate)] * 2 + [0.0], atol=3e-4)


@pytest.mark.parametrize("shape", [0.1, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("log_mean", [1.0, 6.0, 9.5])
def test_one_negative_binomial_is_the_sum_over_all_counts(log_mean, shape):
    mean = np.exp(log_mean)
    law = stats.nbinom(shape, shape / (shape + mean))
    wanted = summed([law], np.ones(1), int(law.isf(1e-13)) + 10)
    found = parts(likelihoods.negative_binomial(dispersion=shape), [log_mean])
    np.testing.assert_allclose(found, wanted, atol=5e-4)


@pytest.mark.parametrize("shape", [1.0, 3.0, 30.0])
def test_one_negative_binomial_of_a_huge_mean_is_a_gamma(shape):
    found = parts(likelihoods.negative_binomial(dispersion=shape), [20.0])
    np.testing.assert_allclose(found[:2], stats.gamma(shape, scale=np.exp(20.0) / shape).entropy(), atol=5e-4)


@pytest.mark.parametrize("far", [8.0, 15.0, 23.0, 29.0, 1e5])
def test_parts_that_are_apart_tell_which_one_it_is(far):
    """A narrow part keeps its own counts, however wide the other is; beyond f = 30 rates grow linearly."""
    log_rate = far if far < 30 else 30 + np.log(far - 29)
    near = summed([stats.poisson(1.0)], np.ones(1), 60)[0]
    noise = 0.8 * near + 0.2 * normal_entropy(log_rate)
    told = stats.entropy([0.8, 0.2])
    found = parts(likelihoods.poisson(), [0.0, 0.0, 0.0, 0.0, far])
    np.testing.assert_allclose(found, [noise + told, noise, told], rtol=2e-4)
    weighted = parts(likelihoods.poisson(), [0.0, far, 3.0], np.array([0.8, 0.2, 1e-30]))
    np.testing.assert_allclose(weighted, found, rtol=1e-3)


@pytest.mark.parametrize("count", [2, 5, 300])
def test_overlapping_parts_of_a_large_rate(count):
    """Rates about 10⁶, whose standard deviation is 1,000, with means 1,500 apart or normal around it."""
    rng = np.random.default_rng(0)
    move = np.linspace(-1, 1, count) if count < 10 else rng.normal(size=count)
    log_rates = np.float32(np.log(1e6 + 1500 * move))
    y = np.arange(985_000, 1_015_001)
    each = np.stack([stats.poisson(np.exp(np.float64(f))).logpmf(y) for f in log_rates])
    whole = special.logsumexp(each, axis=0) - np.log(count)
    noise = -(np.exp(each) * each).sum(1).mean()
    total = -(np.exp(whole) * whole).sum()
    found = parts(likelihoods.poisson(), log_rates)
    np.testing.assert_allclose(found, [total, noise, total - noise], atol=2e-3)


def test_rows_do_not_depend_on_each_other():
    outputs = np.array([[0.0, 16.0, 2.0, 12.0], [1.0, 0.0, 2.5, 12.01]])[..., None]
    together = predictive(likelihoods.poisson(), outputs)
    for i in range(4):
        alone = predictive(likelihoods.poisson(), outputs[:, i : i + 1])
        for name in ("entropy", "conditional_entropy", "mutual_information"):
            a, b = (getattr(p, name)() for p in (together, alone))
            np.testing.assert_allclose(a[i], b[0], rtol=1e-4, atol=1e-5)
