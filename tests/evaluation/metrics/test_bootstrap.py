"""Intervals of scores: they are as wide as theory says, paired where rows are, and exist where the score does."""

import jax
import numpy as np
import pytest
import scipy.stats

from credo import likelihoods
from credo.errors import InputError
from credo.evaluation import metrics
from credo.evaluation.metrics import bootstrap as module_function
from predictives import predictive

KEY = jax.random.key(0)
N = 400


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    y = rng.normal(size=N)
    mean = 0.8 * y + 0.3 * rng.normal(size=N)
    return predictive(likelihoods.gaussian(noise=0.5), mean[None, :, None]), y, mean


def normal_interval(values, weights, level=0.9):
    """The interval of a weighted mean by the delta method."""
    mean = np.average(values, weights=weights)
    error = np.sqrt((weights**2 * (values - mean) ** 2).sum()) / weights.sum()
    return mean + error * scipy.stats.norm.ppf([0.5 - level / 2, 0.5 + level / 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_means_are_those_of_theory(numbers, weighted):
    p, y, mean = numbers
    weights = np.random.default_rng(1).uniform(0.2, 2, N) if weighted else np.ones(N)
    found = metrics.with_interval(metrics.mae, p, y, key=KEY, weights=weights if weighted else None)
    assert found.value == pytest.approx(metrics.mae(p, y, weights), rel=1e-12)
    low, high = normal_interval(np.abs(y - mean), weights)
    # The Monte-Carlo error of a 5 % quantile of 1000 draws is 7 % of a standard error; four of those, plus skewness.
    tolerance = 0.4 * (high - low) / 3.29
    assert abs(found.low - low) < tolerance
    assert abs(found.high - high) < tolerance
    half = metrics.with_interval(metrics.mae, p, y, key=KEY, level=0.5, weights=weights)
    assert found.low < half.low < half.high < found.high


def test_resamples_are_multinomial_and_do_not_depend_on_memory(numbers, monkeypatch):
    p, y, _ = numbers
    first = metrics.with_interval(metrics.rmse, p, y, key=KEY, resamples=50)
    assert first == metrics.with_interval(metrics.rmse, p, y, key=KEY, resamples=50)
    assert first != metrics.with_interval(metrics.rmse, p, y, key=jax.random.key(1), resamples=50)
    monkeypatch.setitem(module_function.__globals__, "NUMBERS", 7 * N)
    pieces = metrics.with_interval(metrics.rmse, p, y, key=KEY, resamples=50)
    np.testing.assert_allclose(pieces, first, rtol=1e-12)
    # The weights of 7 rows, padded to 8, always sum to 7 and never touch the padding.
    totals = metrics.bootstrap(lambda rows, weights: weights.sum() + 0 * rows.sum(), np.zeros(7), key=KEY)
    assert totals == (7.0, 7.0, 7.0)


def test_a_paired_difference_is_narrower_than_its_parts(numbers):
    p, y, mean = numbers
    other = predictive(likelihoods.gaussian(noise=0.5), (mean + 0.02)[None, :, None])
    found = metrics.difference(metrics.crps, p, other, y, key=KEY)
    assert found.value == pytest.approx(metrics.crps(p, y) - metrics.crps(other, y))
    assert found.low < found.value < found.high
    alone = metrics.with_interval(metrics.crps, p, y, key=KEY)
    assert found.high - found.low < 0.2 * (alone.high - alone.low)
    same = metrics.difference(metrics.rmse, p, p, y, key=KEY)
    assert same == (0.0, 0.0, 0.0)


def test_scores_with_options_and_with_parts(numbers):
    rng = np.random.default_rng(3)
    p, y = predictive(likelihoods.categorical(3), rng.normal(size=(2, 60, 3))), rng.integers(0, 3, 60)
    parts = metrics.with_interval(metrics.brier_decomposition.given(bins=5), p, y, key=KEY, resamples=100)
    assert parts.reliability.low <= parts.reliability.high
    assert parts.reliability.value == pytest.approx(metrics.brier_decomposition(p, y, bins=5).reliability)
    p, y, _ = numbers
    found = metrics.summarise_with_intervals(p, y, key=KEY)
    assert {name: i.value for name, i in found.items()} == pytest.approx(metrics.summarise(p, y))
    assert str(found["rmse"]).count("to") == 1


def test_resamples_without_a_class_do_not_count():
    scores, labels = np.arange(6.0), np.array([0, 0, 0, 0, 0, 1])
    # A third of resamples have no positive row: (5/6)⁶.
    found = metrics.bootstrap(metrics.arrays.auroc, scores, labels, key=KEY, resamples=200)
    assert found == (1.0, 1.0, 1.0)
    nothing = metrics.bootstrap(metrics.arrays.auroc, scores, np.zeros(6), key=KEY, resamples=10)
    assert np.isnan(nothing).all()


def test_one_row_has_no_spread(numbers):
    _, y, mean = numbers
    one = predictive(likelihoods.gaussian(noise=0.5), mean[None, :1, None])
    found = metrics.with_interval(metrics.mae, one, y[:1], key=KEY, resamples=20)
    assert found.low == found.value == found.high


def test_sentences(numbers):
    p, y, mean = numbers
    with pytest.raises(InputError, match="level"):
        metrics.with_interval(metrics.mae, p, y, key=KEY, level=1.0)
    with pytest.raises(InputError, match="resamples"):
        metrics.with_interval(metrics.mae, p, y, key=KEY, resamples=0)
    other = predictive(likelihoods.gaussian(noise=0.5), mean[None, :9, None])
    with pytest.raises(InputError, match="same rows"):
        metrics.difference(metrics.mae, p, other, y, key=KEY)
