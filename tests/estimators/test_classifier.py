"""Quality, labels and shapes of the classifier."""

import numpy as np
import pytest

from credo.estimators import BayesianClassifier
from credo.likelihoods import categorical


def moons(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_moons

    x, code = make_moons(rows, noise=0.15, random_state=seed)
    return x, np.array(["lower", "upper"])[1 - code]


@pytest.fixture(scope="module")
def fitted() -> BayesianClassifier:
    return BayesianClassifier("bayes_by_backprop", steps=4000, random_state=0).fit(*moons(200, 0))


def test_it_learns_and_is_calibrated(fitted):
    x, y = moons(1000, 1)
    assert fitted.classes_.tolist() == ["lower", "upper"]
    assert fitted.score(x, y) > 0.93
    confidence = fitted.predict_proba(x).max(1)
    # The binomial standard deviation of the accuracy is below 0.01; the mean field is somewhat underconfident.
    assert abs(confidence.mean() - fitted.score(x, y)) < 0.1


def test_probabilities_follow_classes(fitted):
    x, _ = moons(50, 2)
    probs, spread = fitted.predict_proba(x, return_std=True)
    assert probs.shape == spread.shape == (50, 2)
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(x), fitted.classes_[probs.argmax(1)])


def test_uncertainty_is_entropy_and_adds_up(fitted):
    x, _ = moons(50, 3)
    parts = fitted.uncertainty(x)
    np.testing.assert_allclose(parts["total"], parts["aleatoric"] + parts["epistemic"], atol=1e-5)
    assert parts["total"].max() <= np.log(2) + 1e-6
    across = fitted.uncertainty(np.array([[0.5, 0.25]]))["total"]  # between the moons
    assert across > np.median(parts["total"])


def test_draws_are_labels(fitted):
    x, _ = moons(50, 4)
    draws = fitted.sample_y(x, 2000, random_state=0)
    assert draws.shape == (50, 2000)
    share = (draws == "upper").mean(1)
    np.testing.assert_allclose(share, fitted.predict_proba(x)[:, 1], atol=5 * 0.5 / np.sqrt(2000))


def test_three_classes_of_any_type():
    rng = np.random.default_rng(0)
    y = rng.choice([10, 20, 70], 90)
    x = np.column_stack([y, -y]) + rng.normal(size=(90, 2))
    model = BayesianClassifier("map", [8], steps=300, settings={"learning_rate": 0.03}, random_state=0).fit(x, y)
    assert model.predict_proba(x).shape == (90, 3)
    assert set(model.predict(x)) == {10, 20, 70}
    assert model.score(x, y) > 0.95


def test_likelihood_may_be_given():
    x, y = moons(50, 5)
    for likelihood in ("categorical", categorical(2)):
        model = BayesianClassifier("map", [8], likelihood=likelihood, steps=5, random_state=0).fit(x, y)
        assert model.predict_proba(x).shape == (50, 2)


def test_class_without_weight_is_not_a_class():
    x, y = moons(50, 6)
    y = y.astype(object)
    y[:5] = "other"
    model = BayesianClassifier("map", [8], steps=5, random_state=0)
    assert model.fit(x, y, sample_weight=(y != "other").astype(float)).classes_.tolist() == ["lower", "upper"]
