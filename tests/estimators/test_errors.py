"""Wrong input is answered with a sentence."""

import numpy as np
import pytest
import scipy.sparse

import credo
from credo.errors import InputError
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.estimators.rows import drop_unweighted, merge_repeats

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6.0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"method": "nutz"}, "Did you mean 'nuts'"),
        ({"method": 3}, "method must be a method of credo"),
        ({"settings": {"learningrate": 1.0}}, "Did you mean 'learning_rate'"),
        ({"method": credo.methods.MAP(), "settings": {"beta": 1.0}}, "MAP has no setting 'beta'"),
        ({"network": "cnn:3"}, "mlp:50,50"),
        ({"network": 50}, "a list of widths"),
        ({"network": [0]}, "at least 1"),
        ({"prior": "norml"}, "Did you mean 'normal'"),
        ({"prior": 1.0}, "prior must be"),
        ({"likelihood": "gausian"}, "Did you mean 'gaussian'"),
        ({"likelihood": "bernoulli"}, "A regressor has no likelihood 'bernoulli'"),
        ({"likelihood": credo.likelihoods.categorical(3)}, "takes a likelihood for numbers"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"batch_size": -1}, "batch_size must be a whole number"),
    ],
)
def test_parameters(wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        BayesianRegressor(**wrong).fit(X, Y)


def test_regression_likelihood_in_a_classifier():
    with pytest.raises(InputError, match="A classifier has no likelihood 'gaussian'"):
        BayesianClassifier(likelihood="gaussian").fit(X, Y > 2)
    with pytest.raises(InputError, match="Classes must be whole numbers from 0 to 1"):
        BayesianClassifier(likelihood=credo.likelihoods.categorical(2)).fit(X, [0, 1, 2, 0, 1, 2])


def test_sparse_is_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        BayesianRegressor().fit(scipy.sparse.csr_array(X), Y)


def test_one_row_and_one_class():
    with pytest.raises(ValueError, match="minimum of 2 is required by BayesianRegressor"):
        BayesianRegressor().fit(X[:1], Y[:1])
    with pytest.raises(InputError, match="at least 2 classes, got one class: 'a'"):
        BayesianClassifier().fit(X, ["a"] * 6)


def test_weights():
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        BayesianRegressor().fit(X, Y, sample_weight=np.zeros(6))
    with pytest.raises(InputError, match="Every sample_weight is 0"):
        drop_unweighted(X, Y, np.zeros(6))
    with pytest.raises(ValueError, match=r"[Nn]egative values"):
        BayesianRegressor().fit(X, Y, sample_weight=-np.ones(6))


def test_questions():
    model = BayesianRegressor("map", [8], steps=2, random_state=0).fit(X, Y)
    with pytest.raises(InputError, match=r"between 0 and 1, got 1\.5"):
        model.predict_interval(X, 1.5)
    with pytest.raises(InputError, match=r"between 0 and 1, got 0\.0"):
        model.predict_quantiles(X, [0.0])
    with pytest.raises(InputError, match="list of levels"):
        model.predict_quantiles(X, [])
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict(X[:, :1])
    with pytest.raises(InputError, match="num_samples must be a whole number"):
        model.set_params(num_samples=0).predict(X)


def test_merging_keeps_every_row_and_all_weight():
    rng = np.random.default_rng(0)
    x, y, w = rng.integers(0, 3, (50, 2)) * 1.0, rng.integers(0, 2, 50) * 1.0, rng.uniform(size=50)
    a, b, total = merge_repeats(x, y, w)
    expected: dict[tuple, float] = {}
    for row, target, weight in zip(x, y, w):
        key = (*row, target)
        expected[key] = expected.get(key, 0.0) + weight
    assert len(a) == len(expected)
    for row, target, weight in zip(a, b, total):
        np.testing.assert_allclose(weight, expected[(*row, target)])
