"""What a threshold picks out of two classes, against scikit-learn and by hand."""

import numpy as np
import pytest
import sklearn.metrics

from credo import likelihoods
from credo.errors import InputError, Refusal
from credo.evaluation import metrics
from credo.evaluation.metrics import arrays
from predictives import predictive

N = 200


@pytest.fixture(scope="module")
def churn():
    """Probabilities with ties, labels that follow them, and weights."""
    rng = np.random.default_rng(0)
    probs = np.round(rng.beta(1, 4, N), 2).clip(0.01, 0.99)
    p = predictive(likelihoods.bernoulli(), np.log(probs / (1 - probs))[None, :, None])
    return p, (rng.random(N) < probs).astype(int), rng.uniform(0.1, 2, N)


def expected_f1(probs, weights, threshold):
    picked = probs >= threshold
    return 2 * (weights * probs)[picked].sum() / (weights[picked].sum() + (weights * probs).sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_recall_and_precision_match_scikit_learn(churn, weighted):
    p, y, weights = churn
    w, probs = weights if weighted else None, np.asarray(p.probs)[:, 1]
    best = metrics.threshold(p, y, w)
    wanted = max(expected_f1(probs, np.ones(N) if w is None else w, t) for t in np.unique(probs))
    assert expected_f1(probs, np.ones(N) if w is None else w, np.float32(best)) == pytest.approx(wanted, rel=1e-6)
    for given, least in ((None, np.float32(best)), (0.305, 0.305)):
        named = {"sample_weight": w}
        assert metrics.recall(p, y, w, threshold=given) == pytest.approx(
            sklearn.metrics.recall_score(y, probs >= least, **named), rel=1e-6
        )
        assert metrics.precision(p, y, w, threshold=given) == pytest.approx(
            sklearn.metrics.precision_score(y, probs >= least, **named), rel=1e-6
        )


def test_the_threshold_sees_no_label(churn):
    p, y, _ = churn
    assert metrics.threshold(p, y) == metrics.threshold(p, 1 - y)


def test_lift_by_hand(churn):
    p, y, _ = churn
    probs = np.asarray(p.probs)[:, 1]
    # Ties at the border count in part: the mean over all orders of equal rows.
    rng, found = np.random.default_rng(1), []
    for _ in range(2000):
        order = np.lexsort((rng.random(N), -probs))
        found.append(y[order[: N // 10]].mean() / y.mean())
    assert metrics.lift(p, y) == pytest.approx(np.mean(found), abs=5 * np.std(found) / np.sqrt(2000) + 1e-9)
    assert metrics.lift(p, y, share=1.0) == pytest.approx(1)
    twice = arrays.lift(np.repeat(probs, 2), np.repeat(y, 2))
    assert metrics.lift(p, y, np.full(N, 2.0)) == pytest.approx(float(twice), rel=1e-5)


def test_the_majority_and_the_confusions(churn):
    p, y, weights = churn
    probs = np.asarray(p.probs)
    assert metrics.majority_accuracy(p, y) == pytest.approx(max(y.mean(), 1 - y.mean()))
    assert metrics.majority_accuracy(p, y, weights) == pytest.approx(
        max(np.average(y, weights=weights), 1 - np.average(y, weights=weights))
    )
    wanted = sklearn.metrics.confusion_matrix(y, probs.argmax(1), sample_weight=weights)
    np.testing.assert_allclose(metrics.confusion(p, y, weights), wanted)


def test_refusals(churn):
    p, y, _ = churn
    three = predictive(likelihoods.categorical(3), np.zeros((1, N, 3)))
    with pytest.raises(Refusal, match="positive and a negative class"):
        metrics.recall(three, y)
    with pytest.raises(Refusal, match="all targets are of class 0"):
        metrics.lift(p, np.zeros(N))
    with pytest.raises(InputError, match="share of rows"):
        metrics.lift(p, y, share=0.0)
