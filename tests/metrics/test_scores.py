"""Scores against scikit-learn and by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from credo import likelihoods, metrics
from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal

RNG = np.random.default_rng(0)
N = 57


def predictive(likelihood, outputs, flat=True):
    """The predictive of given outputs [draw, n, out], all equally likely."""
    draws = Flat(jnp.asarray(outputs, jnp.float32), {}, jnp.full(len(outputs), -np.log(len(outputs))))
    rows = outputs.shape[1]
    return Predictive(likelihood, lambda: iter([(slice(0, rows), draws)]), rows, flat)


@pytest.fixture(scope="module")
def classes():
    outputs = 2 * RNG.normal(size=(5, N, 3))
    return predictive(likelihoods.categorical(3), outputs), RNG.integers(0, 3, N), RNG.uniform(0.1, 2, N)


@pytest.fixture(scope="module")
def numbers():
    mean = RNG.normal(size=(1, N, 1))
    return predictive(likelihoods.gaussian(noise=0.5), mean), mean[0, :, 0], RNG.normal(size=N)


def test_classes_match_scikit_learn(classes):
    p, y, weights = classes
    probs = np.asarray(p.probs, np.float64)
    probs /= probs.sum(1, keepdims=True)
    for w in (None, weights):
        assert metrics.accuracy(p, y, w) == pytest.approx(
            sklearn.metrics.accuracy_score(y, probs.argmax(1), sample_weight=w)
        )
        assert -metrics.test_log_likelihood(p, y, w) == pytest.approx(
            sklearn.metrics.log_loss(y, probs, sample_weight=w), rel=1e-5
        )
        brier = sklearn.metrics.brier_score_loss(y, probs, sample_weight=w, labels=[0, 1, 2], scale_by_half=False)
        assert metrics.brier(p, y, w) == pytest.approx(brier, rel=1e-5)


def test_brier_of_two_classes_is_twice_the_one_class_form():
    p = predictive(likelihoods.bernoulli(), RNG.normal(size=(1, N, 1)))
    y = RNG.integers(0, 2, N)
    one_class = sklearn.metrics.brier_score_loss(y, np.asarray(p.probs)[:, 1], scale_by_half=True)
    assert metrics.brier(p, y) == pytest.approx(2 * one_class, rel=1e-5)


def test_numbers_match_scikit_learn(numbers):
    p, mean, y = numbers
    weights = RNG.uniform(0.1, 2, N)
    for w in (None, weights):
        squared = sklearn.metrics.mean_squared_error(y, mean, sample_weight=w)
        assert metrics.rmse(p, y, w) == pytest.approx(squared**0.5, rel=1e-5)
        absolute = sklearn.metrics.mean_absolute_error(y, mean, sample_weight=w)
        assert metrics.mae(p, y, w) == pytest.approx(absolute, rel=1e-5)
        density = np.average(scipy.stats.norm.logpdf(y, mean, 0.5), weights=w)
        assert metrics.test_log_likelihood(p, y, w) == pytest.approx(density, rel=1e-5)


def test_coverage_and_width(numbers):
    p, mean, y = numbers
    half = scipy.stats.norm.ppf(0.95) * 0.5
    assert metrics.coverage(p, y) == np.mean(np.abs(y - mean) <= half)
    assert metrics.interval_width(p) == pytest.approx(2 * half, rel=1e-4)
    assert metrics.coverage(p, mean + 0.1, 0.5) == 1.0
    assert metrics.coverage(p, mean + 9, 0.99) == 0.0


def certainty(values):
    """Two classes with these probabilities of the second."""
    logits = np.log(np.asarray(values)) - np.log1p(-np.asarray(values))
    return predictive(likelihoods.bernoulli(), np.clip(logits, -200, 200)[None, :, None])


def test_ece_by_hand():
    # Confidences 0.95 (three right, one wrong) and 0.65 (one right, one wrong), in different bins.
    p = certainty([0.95, 0.95, 0.95, 0.95, 0.65, 0.65])
    y = np.array([1, 1, 1, 0, 1, 0])
    assert metrics.ece(p, y) == pytest.approx(4 / 6 * 0.2 + 2 / 6 * 0.15, abs=1e-6)
    weights = np.array([1, 1, 1, 3, 1, 0])
    assert metrics.ece(p, y, weights) == pytest.approx(6 / 7 * 0.45 + 1 / 7 * 0.35, abs=1e-6)


def test_ece_counts_full_certainty_in_the_last_bin():
    with np.errstate(divide="ignore"):
        p = certainty([1.0, 1.0, 0.98])
    assert np.asarray(p.probs)[0, 1] == 1.0
    # All three share the last bin, so the misses and hits of its rows offset each other.
    assert metrics.ece(p, np.array([1, 1, 0])) == pytest.approx(abs(2 / 3 - 2.98 / 3), abs=1e-6)


def test_summaries(classes, numbers):
    p, y, _ = classes
    assert list(metrics.summarise(p, y)) == ["log_likelihood", "accuracy", "brier", "ece"]
    p, _, y = numbers
    assert list(metrics.summarise(p, y)) == ["log_likelihood", "rmse", "coverage_90"]
    counts = predictive(likelihoods.poisson(), np.ones((2, N, 1)))
    assert list(metrics.summarise(counts, RNG.poisson(2, N))) == ["log_likelihood", "rmse", "coverage_90"]


def test_scores_on_the_original_scale_of_several_outputs():
    outputs, y = RNG.normal(size=(3, N, 2)), RNG.normal(size=(N, 2))
    p = predictive(likelihoods.gaussian(noise=0.7), outputs, flat=False)
    shift, scale = np.array([100.0, -5.0]), np.array([10.0, 0.1])
    twice = p.rescaled(1.0, 2.0).rescaled(shift, scale)
    truth = shift + scale * (1 + 2 * y)
    assert np.allclose(twice.mean, shift + scale * (1 + 2 * p.mean))
    assert np.allclose(twice.variance, (2 * scale) ** 2 * p.variance)
    jacobian = np.log(2 * scale).sum()
    assert metrics.test_log_likelihood(twice, truth) == pytest.approx(
        metrics.test_log_likelihood(p, y) - jacobian, rel=1e-5
    )
    assert metrics.coverage(twice, truth) == metrics.coverage(p, y)
    assert metrics.rmse(twice, truth) > metrics.rmse(p, y)


def test_wrong_kinds_and_shapes_are_sentences(classes, numbers):
    p, y, _ = classes
    with pytest.raises(Refusal, match="numbers"):
        metrics.rmse(p, y)
    with pytest.raises(InputError, match="class indices"):
        metrics.accuracy(p, y + 5)
    p, _, y = numbers
    with pytest.raises(Refusal, match="class probabilities"):
        metrics.ece(p, y)
    with pytest.raises(InputError, match="targets of shape"):
        metrics.rmse(p, y[:3])
    with pytest.raises(InputError, match="Weights"):
        metrics.rmse(p, y, np.zeros(N))
