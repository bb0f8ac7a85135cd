"""Scores of predictives of every kind, against scikit-learn, SciPy and by hand."""

import inspect

import jax
import numpy as np
import pytest
import scipy.stats
import scoringrules
import sklearn.metrics

from credo import likelihoods
from credo.errors import InputError, Refusal
from credo.evaluation import metrics
from credo.evaluation.metrics import distances
from credo.registry import METRICS
from predictives import predictive

N = 57


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    outputs = 2 * rng.normal(size=(5, N, 3))
    return predictive(likelihoods.categorical(3), outputs), rng.integers(0, 3, N), rng.uniform(0.1, 2, N)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=(1, N, 1))
    return predictive(likelihoods.gaussian(noise=0.5), mean), mean[0, :, 0], rng.normal(size=N)


# ---------------------------------------------------------------------- classes
def test_classes_match_scikit_learn(classes):
    p, y, weights = classes
    probs = np.asarray(p.probs, np.float64)
    probs /= probs.sum(1, keepdims=True)
    for w in (None, weights):
        known = {"sample_weight": w}
        assert metrics.accuracy(p, y, w) == pytest.approx(sklearn.metrics.accuracy_score(y, probs.argmax(1), **known))
        assert -metrics.log_likelihood(p, y, w) == pytest.approx(sklearn.metrics.log_loss(y, probs, **known), rel=1e-5)
        brier = sklearn.metrics.brier_score_loss(y, probs, labels=[0, 1, 2], scale_by_half=False, **known)
        assert metrics.brier(p, y, w) == pytest.approx(brier, rel=1e-5)
        parts = metrics.brier_decomposition(p, y, w)
        assert parts.brier == pytest.approx(brier, rel=1e-5)
        total = parts.reliability - parts.resolution + parts.uncertainty + parts.within_bin
        assert total == pytest.approx(parts.brier, rel=1e-9)
        auroc = sklearn.metrics.roc_auc_score(y, probs, multi_class="ovr", **known)
        assert metrics.auroc(p, y, w) == pytest.approx(auroc, rel=1e-5)
        aupr = sklearn.metrics.average_precision_score(np.eye(3)[y], probs, average="macro", **known)
        assert metrics.aupr(p, y, w) == pytest.approx(aupr, rel=1e-5)


def test_two_classes(rng):
    p, y = predictive(likelihoods.bernoulli(), rng.normal(size=(1, N, 1))), rng.integers(0, 2, N)
    for w in (None, rng.uniform(0.1, 2, N)):
        brier = sklearn.metrics.brier_score_loss(y, np.asarray(p.probs)[:, 1], sample_weight=w)
        assert metrics.brier(p, y, w) == pytest.approx(brier, rel=1e-5)
        parts = metrics.brier_decomposition(p, y, w)
        assert parts.uncertainty == pytest.approx(np.average(y, weights=w) * (1 - np.average(y, weights=w)), rel=1e-5)
        assert parts.reliability - parts.resolution + parts.uncertainty + parts.within_bin == pytest.approx(parts.brier)
    assert metrics.auroc(p, y) == pytest.approx(sklearn.metrics.roc_auc_score(y, p.probs[:, 1]))
    false, true, _ = sklearn.metrics.roc_curve(y, p.probs[:, 1], drop_intermediate=False)
    assert metrics.tpr_at_fpr(p, y) == pytest.approx(true[false <= 0.05].max())
    assert metrics.tpr_at_fpr(p, y, max_fpr=1.0) == 1.0


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
    assert metrics.adaptive_ece(p, y, bins=2) == pytest.approx(metrics.ece(p, y), abs=1e-6)
    # One bin holds everything: the gap of the means.
    assert metrics.ece(p, y, bins=1) == pytest.approx(abs(4 / 6 - (4 * 0.95 + 2 * 0.65) / 6), abs=1e-6)


def test_ece_counts_full_certainty_in_the_last_bin():
    with np.errstate(divide="ignore"):
        p = certainty([1.0, 1.0, 0.98])
    assert np.asarray(p.probs)[0, 1] == 1.0
    # All three share the last bin, so the misses and hits of its rows offset each other.
    assert metrics.ece(p, np.array([1, 1, 0])) == pytest.approx(abs(2 / 3 - 2.98 / 3), abs=1e-6)


def test_aurc_orders_by_any_confidence(classes):
    p, y, _ = classes
    wrong = p.probs.argmax(1) != y
    oracle = metrics.aurc(p, y, confidence=~wrong)
    assert oracle <= metrics.aurc(p, y) <= metrics.aurc(p, y, confidence=wrong)
    assert metrics.aurc(p, y, confidence=np.zeros(N)) == pytest.approx(wrong.mean())
    curve = metrics.risk_coverage(p, y)
    assert np.mean(curve.risk) == pytest.approx(metrics.aurc(p, y))
    assert curve.risk[-1] == pytest.approx(wrong.mean())


# ---------------------------------------------------------------------- numbers
def test_numbers_match_scikit_learn_and_scipy(numbers, rng):
    p, mean, y = numbers
    for w in (None, rng.uniform(0.1, 2, N)):
        squared = sklearn.metrics.mean_squared_error(y, mean, sample_weight=w)
        assert metrics.rmse(p, y, w) == pytest.approx(squared**0.5, rel=1e-5)
        absolute = sklearn.metrics.mean_absolute_error(y, mean, sample_weight=w)
        assert metrics.mae(p, y, w) == pytest.approx(absolute, rel=1e-5)
        density = np.average(scipy.stats.norm.logpdf(y, mean, 0.5), weights=w)
        assert metrics.log_likelihood(p, y, w) == pytest.approx(density, rel=1e-5)
        crps = np.average(scoringrules.crps_normal(y, mean, 0.5), weights=w)
        assert metrics.crps(p, y, w) == pytest.approx(crps, rel=1e-5)
        low, high = mean - 0.5 * scipy.stats.norm.ppf(0.95), mean + 0.5 * scipy.stats.norm.ppf(0.95)
        fine = np.average(scoringrules.interval_score(y, low, high, 0.1), weights=w)
        assert metrics.interval_score(p, y, w) == pytest.approx(fine, rel=1e-4)


def test_coverage_width_and_sharpness(numbers):
    p, mean, y = numbers
    half = scipy.stats.norm.ppf(0.95) * 0.5
    assert metrics.coverage(p, y) == np.mean(np.abs(y - mean) <= half)
    assert metrics.interval_width(p) == pytest.approx(2 * half, rel=1e-4)
    assert metrics.sharpness(p) == pytest.approx(0.5)
    assert metrics.coverage(p, mean + 0.1, level=0.5) == 1.0
    assert metrics.coverage(p, mean + 9, level=0.99) == 0.0


def test_crps_takes_the_whole_mixture(rng):
    """Three draws with their own noise and weights, in chunks; many draws go by the integral to the same number."""
    y, weights = rng.normal(size=N), np.array([0.5, 0.3, 0.2])
    outputs = np.stack([rng.normal(size=(3, N)), rng.normal(size=(3, N))], -1)
    p = predictive(likelihoods.heteroscedastic(), outputs, weights=weights, width=20)
    stds = 1e-3 + np.logaddexp(0, outputs[..., 1])
    wanted = scoringrules.crps_mixnorm(y, outputs[..., 0].T, stds.T, np.tile(weights, (N, 1)))
    assert metrics.crps(p, y) == pytest.approx(wanted.mean(), rel=1e-5)
    scaled = p.rescaled(1000.0, 10.0)
    assert metrics.crps(scaled, 1000 + 10 * y) == pytest.approx(10 * wanted.mean(), rel=1e-4)
    many = np.stack([rng.normal(size=(300, 20)), rng.normal(size=(300, 20))], -1)
    assert len(many) > distances.PAIRS
    p = predictive(likelihoods.heteroscedastic(), many)
    stds = 1e-3 + np.logaddexp(0, many[..., 1])
    wanted = scoringrules.crps_mixnorm(y[:20], many[..., 0].T, stds.T)
    assert metrics.crps(p, y[:20]) == pytest.approx(wanted.mean(), rel=1e-4)


@pytest.mark.full
def test_crps_of_other_shapes_from_draws(rng, monkeypatch):
    """Five standard errors of 57 rows with 1000 draws each: false alarms below 10⁻⁶."""
    outputs, y = rng.normal(size=(1, N, 1)), rng.normal(size=N)
    t = predictive(likelihoods.student_t(df=5, noise=0.7), outputs)
    wanted = scoringrules.crps_t(y, 5, outputs[0, :, 0], 0.7)
    error = 5 * 0.7 * np.sqrt(5 / 3) / np.sqrt(1000 * N)
    assert metrics.crps(t, y) == pytest.approx(wanted.mean(), abs=error)
    monkeypatch.setattr(distances, "NUMBERS", 1000 * 19)  # three blocks of rows
    counts = predictive(likelihoods.poisson(), outputs)
    y = rng.poisson(2, N)
    rate = np.exp(outputs[0, :, 0])
    assert metrics.crps(counts, y) == pytest.approx(
        scoringrules.crps_poisson(y, rate).mean(), abs=5 * np.sqrt(rate.mean()) / np.sqrt(1000 * N)
    )
    assert metrics.crps(counts, y) != metrics.crps(counts, y, seed=1)


def test_energy_score_is_the_crps_of_one_output(numbers):
    p, _, y = numbers
    assert metrics.energy_score(p, y, draws=500) == pytest.approx(metrics.crps(p, y), abs=5 * 0.5 / np.sqrt(500 * N))


def test_integral_transform(numbers, rng):
    p, mean, y = numbers
    np.testing.assert_allclose(metrics.pit(p, y), scipy.stats.norm.cdf(y, mean, 0.5), atol=1e-5)
    wanted, _ = np.histogram(metrics.pit(p, y), 10, (0, 1))
    np.testing.assert_allclose(metrics.pit_histogram(p, y), wanted / N)
    counts = predictive(likelihoods.poisson(), np.full((1, 4000, 1), np.log(1.5)))
    y = rng.poisson(1.5, 4000)
    ends = scipy.stats.poisson.cdf(y - 1, 1.5), scipy.stats.poisson.cdf(y, 1.5)
    np.testing.assert_allclose(metrics.pit(counts, y), np.mean(ends, 0), atol=1e-5)
    random = metrics.pit(counts, y, jax.random.key(0))
    assert ((ends[0] - 1e-5 <= random) & (random <= ends[1] + 1e-5)).all()
    assert scipy.stats.kstest(random, "uniform").pvalue > 1e-4
    assert scipy.stats.kstest(metrics.pit(counts, y), "uniform").pvalue < 1e-4  # counts jump
    np.testing.assert_allclose(metrics.pit_histogram(counts, y), 0.1, atol=5 * np.sqrt(0.09 / 4000))


# ---------------------------------------------------------------------- all of them
NUMBERS = ["log_likelihood", "rmse", "crps", "coverage_90"]
CLASSES = ["log_likelihood", "accuracy", "majority_accuracy", "brier", "ece"]


def test_summaries(classes, numbers, rng):
    p, y, _ = classes
    assert list(metrics.summarise(p, y)) == [*CLASSES, "auroc"]
    assert list(metrics.summarise(p, np.zeros(N))) == CLASSES
    two = predictive(likelihoods.bernoulli(), np.ones((2, N, 1)))
    assert list(metrics.summarise(two, y > 0)) == [*CLASSES, "auroc", "recall", "precision", "threshold", "lift_10"]
    p, _, y = numbers
    found = metrics.summarise(p, y)
    assert list(found) == NUMBERS
    assert all(type(value) is float for value in found.values())
    assert list(metrics.summarise(predictive(likelihoods.student_t(4.0, 0.5), np.ones((2, N, 1))), y)) == NUMBERS
    counts = predictive(likelihoods.poisson(), np.ones((2, N, 1)))
    assert list(metrics.summarise(counts, rng.poisson(2, N))) == [name for name in NUMBERS if name != "crps"]


def test_one_row(classes, numbers):
    for p, y in ((classes[0], classes[1]), (numbers[0], numbers[2])):
        outputs = next(p._chunks())[1].outputs[:, :1]
        one = predictive(p.likelihood, outputs, width=N)
        assert all(np.isfinite(value) for value in metrics.summarise(one, y[:1]).values())
        assert np.isfinite(metrics.aurc(one, y[:1]))


@pytest.mark.full
def test_scores_on_the_original_scale_of_several_outputs(rng):
    outputs, y = rng.normal(size=(3, N, 2)), rng.normal(size=(N, 2))
    p = predictive(likelihoods.gaussian(noise=0.7), outputs, flat=False)
    shift, scale = np.array([100.0, -5.0]), np.array([10.0, 0.1])
    twice = p.rescaled(1.0, 2.0).rescaled(shift, scale)
    truth = shift + scale * (1 + 2 * y)
    assert np.allclose(twice.mean, shift + scale * (1 + 2 * p.mean))
    assert np.allclose(twice.variance, (2 * scale) ** 2 * p.variance)
    jacobian = np.log(2 * scale).sum()
    assert metrics.log_likelihood(twice, truth) == pytest.approx(metrics.log_likelihood(p, y) - jacobian, rel=1e-5)
    assert metrics.coverage(twice, truth) == metrics.coverage(p, y)
    assert metrics.rmse(twice, truth) > metrics.rmse(p, y)
    stds = np.full((3, N, 2), 0.7)
    crps = scoringrules.crps_mixnorm(
        y, np.moveaxis(outputs, 0, -1), np.moveaxis(stds, 0, -1), np.full((N, 2, 3), 1 / 3)
    )
    assert metrics.crps(twice, truth) == pytest.approx((2 * scale * crps).mean(), rel=1e-4)
    draws = np.moveaxis(twice.sample(jax.random.key(5), 256), 0, 1)
    energy = scoringrules.es_ensemble(truth, draws, estimator="fair").mean()
    assert metrics.energy_score(twice, truth) == pytest.approx(energy, rel=0.1)


def test_wrong_kinds_and_shapes_are_sentences(classes, numbers):
    p, y, _ = classes
    with pytest.raises(Refusal, match="numbers"):
        metrics.rmse(p, y)
    with pytest.raises(Refusal, match="crps is a score of numbers"):
        metrics.crps(p, y)
    with pytest.raises(InputError, match="class indices"):
        metrics.accuracy(p, y + 5)
    with pytest.raises(Refusal, match="all targets are of class 2"):
        metrics.auroc(p, np.full(N, 2))
    with pytest.raises(Refusal, match="positive and a negative class"):
        metrics.tpr_at_fpr(p, y)
    p, _, y = numbers
    with pytest.raises(Refusal, match="class probabilities"):
        metrics.ece(p, y)
    with pytest.raises(InputError, match="targets of shape"):
        metrics.rmse(p, y[:3])
    with pytest.raises(InputError, match="Weights"):
        metrics.rmse(p, y, np.zeros(N))
    with pytest.raises(InputError, match="Weights"):
        metrics.rmse(p, y, np.full(N, np.nan))
    with pytest.raises(InputError, match="Confidence"):
        metrics.aurc(p, y, confidence=np.zeros(3))
    with pytest.raises(InputError, match="at least 2"):
        metrics.energy_score(p, y, draws=1)


def test_chunks_have_noise_of_their_own():
    """Equal rows in chunks of two: equal noise would give every chunk the same errors."""
    p = predictive(likelihoods.student_t(4.0, 0.5), np.zeros((3, 6, 1)), width=2)
    for found in (distances.crps(p, np.zeros(6), 100, 0), distances.energy(p, np.zeros(6), 100, 0)):
        assert len(np.unique(found)) == 6
    np.testing.assert_array_equal(distances.crps(p, np.zeros(6), 100, 0), distances.crps(p, np.zeros(6), 100, 0))


@pytest.mark.parametrize("row", METRICS.values(), ids=lambda row: row.name)
def test_every_metric_of_the_registry_is_a_score(row):
    score = row.load().given(**dict(row.given))
    assert isinstance(score, metrics.Score)
    assert {name for name, _ in row.given} <= set(inspect.signature(score).parameters)
