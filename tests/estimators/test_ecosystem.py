"""The estimators among other tools: pandas, pipelines, searches, pickles."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import credo
from credo.estimators import BayesianClassifier, BayesianRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] - 2 * X[:, 1] + 0.1 * RNG.normal(size=60)
QUICK = {"network": "mlp:8", "steps": 400, "random_state": 0, "settings": {"learning_rate": 0.02}}


def test_pipeline_and_cross_validation():
    model = make_pipeline(PolynomialFeatures(2, include_bias=False), BayesianRegressor("map", **QUICK))
    assert cross_val_score(model, X, Y, cv=3).min() > 0.8


@pytest.mark.full
def test_grid_search_over_parameters_and_settings():
    grid = {"network": ["mlp:8", [8, 8]], "settings": [{"learning_rate": 0.02}, {"learning_rate": 1e-6}]}
    search = GridSearchCV(BayesianClassifier("map", **QUICK), grid, cv=2, error_score="raise").fit(X, Y > 0)
    assert search.best_params_["settings"] == {"learning_rate": 0.02}
    assert search.best_score_ > 0.8
    assert search.predict_proba(X).shape == (60, 2)


def test_dataframe_in_names_remembered():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = BayesianRegressor("map", **QUICK).fit(frame, pd.Series(Y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict(X), model.predict(frame))
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize(
    "method",
    [
        "bayes_by_backprop",
        *(
            pytest.param(method, marks=pytest.mark.full)
            for method in ("map", credo.methods.DeepEnsemble(size=3), credo.methods.HMC(warmup=20, chains=2))
        ),
    ],
    ids=["bayes_by_backprop", "map", "deep_ensemble", "hmc"],
)
def test_pickle_predicts_the_same(method):
    model = BayesianRegressor(method, network="mlp:8", steps=20, num_samples=20, random_state=0).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.fit_.loop is None
    assert model.fit_.loop is not None
    for question in ("predict", "predict_interval", "sample_y"):
        np.testing.assert_array_equal(getattr(copy, question)(X), getattr(model, question)(X))
    assert copy.fit_.status == model.fit_.status


def test_a_stack_in_an_estimator_is_pickled_without_its_parts_data():
    """What predicts goes along; the fits that it was made of, with their rows, do not."""
    x = np.linspace(-1, 1, 40)[:, None]
    models = [BayesianRegressor("map", steps=20, random_state=seed).fit(x, x[:, 0]) for seed in (0, 1)]
    model = models[0]
    model.fit_ = credo.stacked([one.fit_ for one in models], [1, 2])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(x), model.predict(x))
    assert copy.fit_.parts == ()
    assert len(model.fit_.parts) == 2
    assert copy.fit_.status.notes == model.fit_.status.notes


def test_joblib_and_unfitted_pickle():
    model = BayesianClassifier("map", **QUICK).fit(X, Y > 0)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    np.testing.assert_array_equal(joblib.load(file).predict_proba(X), model.predict_proba(X))
    assert pickle.loads(pickle.dumps(clone(model))).get_params() == model.get_params()


@pytest.mark.full
def test_objects_and_words_give_the_same_fit():
    words = BayesianRegressor("map", "mlp:8:tanh", "normal:0.5", "student_t", steps=20, random_state=0)
    things = BayesianRegressor(
        credo.methods.MAP(), credo.networks.mlp([8], "tanh"), credo.priors.normal(0.5),
        credo.likelihoods.student_t(), steps=20, random_state=0,
    )  # fmt: skip
    np.testing.assert_array_equal(words.fit(X, Y).predict(X), clone(things).fit(X, Y).predict(X))


def test_random_state_fixes_everything_and_changes_something():
    model = BayesianRegressor("bayes_by_backprop", "mlp:8", steps=20, num_samples=20)
    first, again, other = (clone(model).set_params(random_state=s).fit(X, Y).predict(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_rows_predict_alone_as_together():
    model = BayesianRegressor("bayes_by_backprop", "mlp:8", steps=20, num_samples=20, random_state=0).fit(X, Y)
    together = model.predict(X)
    np.testing.assert_allclose([model.predict(X[i : i + 1])[0] for i in range(10)], together[:10], rtol=1e-5)


@pytest.mark.full
def test_minibatches():
    x = np.random.default_rng(1).normal(size=(600, 3))
    model = BayesianRegressor("map", network="mlp:8", steps=400, batch_size=32, random_state=0)
    assert model.fit(x, x @ [1, -2, 3]).score(x, x @ [1, -2, 3]) > 0.9
    assert model.fit_.config["batch_size"] == 32
