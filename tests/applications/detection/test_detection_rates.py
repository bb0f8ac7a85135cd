"""Detection: rates and areas against scikit-learn, thresholds from validation rows alone, paired comparisons (H3)."""

import jax
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

import credo
from credo.applications.detection import Attack, attack, compare, detect, detection_of, roc, threshold
from credo.errors import InputError

KEY = jax.random.key(0)
RNG = np.random.default_rng(1)


def scores(rows, shift=0.0, ties=False):
    values = RNG.normal(shift, 1.0, rows)
    return np.round(values, 1) if ties else values


@pytest.mark.parametrize("ties", [True, False])
def test_roc_and_area_are_those_of_scikit_learn(ties):
    clean, positive = scores(400, ties=ties), scores(300, 1.0, ties)
    found = roc(clean, positive)
    truth, both = np.r_[np.zeros(400), np.ones(300)], np.r_[clean, positive]
    fpr, tpr, _ = roc_curve(truth, both, drop_intermediate=False)
    np.testing.assert_allclose(found.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(found.tpr, tpr, atol=1e-12)
    measured = detection_of(KEY, clean, clean, positive, resamples=50)
    assert measured.auroc.value == pytest.approx(roc_auc_score(truth, both), abs=1e-12)
    assert measured.auroc.value == pytest.approx(np.trapezoid(found.tpr, found.fpr), abs=1e-12)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_the_threshold_keeps_its_promise_and_is_the_smallest(ties, share):
    clean = scores(237, ties=ties)
    at = threshold(clean, share)
    assert (clean > at).mean() <= share
    below = clean[clean < at]
    assert len(below) == 0 or (clean > below.max()).mean() > share


def test_the_threshold_comes_from_validation_rows_alone():
    validation, clean, positive = scores(400), scores(400, 0.5), scores(300, 2.0)
    found = detection_of(KEY, validation, clean, positive, resamples=50)
    assert found.threshold == threshold(validation)
    assert found.tpr.value == pytest.approx((positive > found.threshold).mean())
    assert found.fpr.value == pytest.approx((clean > found.threshold).mean())
    assert found.fpr.value > 0.07  # these clean rows are not like those: what is reached is told, not what was asked
    assert found.tpr.low < found.tpr.value < found.tpr.high
    frame = found.to_pandas()
    assert len(frame) == 700
    assert frame.query("group == 'positive'")["flagged"].mean() == pytest.approx(found.tpr.value)
    assert "catches" in str(found)


def test_intervals_are_those_of_a_bootstrap_over_images():
    """Two ways to the standard error of a TPR: binomial, and a 90 % interval by 3.29 (within 15 %: 1,000 resamples)."""
    clean, positive = scores(400), scores(300, 1.5)
    found = detection_of(KEY, clean, clean, positive, resamples=1000)
    error = np.sqrt(found.tpr.value * (1 - found.tpr.value) / 300)
    assert (found.tpr.high - found.tpr.low) / 3.29 == pytest.approx(error, rel=0.15)


def test_pairs_make_small_differences_visible():
    """The same images under a second score that is a little worse: the paired interval is far narrower."""
    clean, base = scores(300), scores(300, 1.5)
    options = {"rows": np.arange(300), "resamples": 200}
    good, bad = (detection_of(KEY, clean, clean, base + shift, **options) for shift in (0.15, 0.0))
    found = compare(KEY, good, bad, "auroc", resamples=200)
    assert found.verdict == "win"
    assert compare(KEY, bad, good, "auroc", resamples=200).verdict == "loss"
    assert compare(KEY, good, good, resamples=200).verdict == "tie"
    assert found.difference.value == pytest.approx(good.auroc.value - bad.auroc.value)
    assert found.difference.high - found.difference.low < 0.3 * (good.auroc.high - good.auroc.low)
    assert "win" in str(found)
    with pytest.raises(InputError, match="measure is one of"):
        compare(KEY, good, bad, "accuracy")
    with pytest.raises(InputError, match="same images"):
        compare(KEY, good, detection_of(KEY, clean, clean[:50], base, resamples=5))


@pytest.fixture(scope="module")
def moons():
    x = RNG.normal(size=(400, 2)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(int)
    model = credo.Model(credo.networks.mlp([10], "tanh"), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
    fit = credo.fit(KEY, model, (x[:100], labels[:100]), credo.methods.DeepEnsemble(size=2), steps=300)
    return fit, x, labels


def test_only_attacks_that_succeed_count(moons):
    fit, x, labels = moons
    attacked = attack(KEY, fit, x[200:], labels[200:], "fgsm:0.4")
    found = detect(KEY, fit, x[100:200], x[200:], attacked, resamples=50)
    assert len(found.positive) == attacked.success.sum() > 20
    np.testing.assert_array_equal(found.rows, np.flatnonzero(attacked.success))
    assert 0 <= found.fpr.value < 0.2
    none = detect(KEY, fit, x[100:200], x[200:], attack(KEY, fit, x[200:], labels[200:], "fgsm:0"), resamples=50)
    assert np.isnan(none.tpr.value)
    assert "no positives" in str(none)
    with pytest.raises(InputError, match="no attack succeeded"):
        none.plot()
    with pytest.raises(InputError, match="attack the rows of clean_test"):
        detect(KEY, fit, x[100:200], x[250:], attacked)


def test_a_figure_shows_curves_and_scores(moons, tmp_path):
    fit, x, labels = moons
    attacked = attack(KEY, fit, x[200:], labels[200:], Attack("fgsm", 0.4))
    found = [
        detect(KEY, fit, x[100:200], x[200:], attacked, score, resamples=50)
        for score in ("entropy", "mutual_information")
    ]
    figure = found[0].plot(found[1])
    figure.savefig(tmp_path / "detection.png")
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 5
    numbers = detection_of(KEY, np.ones(50) * 0.1, np.full(50, 0.1), np.full(50, 100.0), score="epistemic", resamples=5)
    assert numbers.plot().axes[1].get_xscale() == "log"


def test_bad_scores_get_a_sentence():
    with pytest.raises(InputError, match="none of them NaN"):
        threshold([1.0, np.nan])
    with pytest.raises(InputError, match="max_fpr"):
        threshold([1.0], 1.0)
