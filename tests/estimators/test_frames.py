"""DataFrames with categories, dates, truth values and missing cells, as estimators take them."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.class_weight import compute_sample_weight

import credo
from credo.errors import InputError
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.tables.encode.encoder import TableEncoder

QUICK = {"method": "map", "network": "mlp:4", "steps": 20, "random_state": 0}


def houses(rows: int = 40) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(100, 20, rows),
            "town": rng.choice(["Bath", "Leeds", "York"], rows),
            "sold": pd.date_range("2020-01-01", periods=rows, freq="9D"),
            "garden": rng.random(rows) > 0.5,
            "rooms": rng.integers(1, 6, rows).astype(float),
        }
    )
    frame.loc[::9, "rooms"] = np.nan
    frame.loc[3, "town"] = None
    return frame, pd.Series(5 * frame["size"] + 80 * (frame["town"] == "York"), name="price")


FRAME, PRICE = houses()
NUMBERS = FRAME[["size", "garden"]]


@pytest.fixture(scope="module")
def fitted() -> BayesianRegressor:
    return BayesianRegressor(**QUICK).fit(FRAME, PRICE)


def test_the_encoder_is_that_of_the_command_line(fitted):
    learned = TableEncoder.learn(FRAME.assign(price=PRICE), "price", missing="auto")
    assert fitted.encoder_.columns == learned.columns
    assert fitted.encoder_.target == "price"
    assert fitted.feature_names_in_.tolist() == list(FRAME.columns)
    assert fitted.n_features_in_ == 5
    assert np.ptp(fitted.predict(FRAME)) > 0


def test_new_categories_and_missing_cells_are_predicted(fitted):
    rows = FRAME.head(2).copy()
    rows.loc[0, "size"] = np.nan
    with pytest.warns(UserWarning, match="'size' is missing where training had no gaps in 1 of 2 rows"):
        mean, std = fitted.predict(rows, return_std=True)
    ends = [fitted.predict(rows.fillna({"size": FRAME["size"].quantile(q)}), return_std=True) for q in (0, 0.5, 1)]
    assert min(e[0][0] for e in ends) < mean[0] < max(e[0][0] for e in ends)
    assert std[0] > min(e[1][0] for e in ends)
    rows = FRAME.head(2).copy()
    rows.loc[0, "town"] = "Hull"
    with pytest.warns(UserWarning, match="'town' has categories that training did not have in 1 of 2 rows"):
        mean, std = fitted.predict(rows, return_std=True)
    each = [fitted.predict(rows.assign(town=town), return_std=True) for town in ("Bath", "Leeds", "York")]
    assert min(e[0][0] for e in each) < mean[0] < max(e[0][0] for e in each)
    assert std[0] > min(e[1][0] for e in each)
    np.testing.assert_array_equal(mean[1], fitted.predict(FRAME)[1])


def test_names_are_held_to_those_of_the_fit(fitted):
    with pytest.raises(ValueError, match="order"):
        fitted.predict(FRAME[FRAME.columns[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(fitted.predict(FRAME.to_numpy(object)), fitted.predict(FRAME))
    np.testing.assert_array_equal(fitted.predict(pa.Table.from_pandas(FRAME)), fitted.predict(FRAME))


def test_numbers_in_a_frame_are_an_array():
    frame = BayesianRegressor(**QUICK).fit(NUMBERS, PRICE)
    array = BayesianRegressor(**QUICK).fit(NUMBERS.to_numpy(float), PRICE)
    assert frame.encoder_ is None
    np.testing.assert_array_equal(frame.predict(NUMBERS), array.predict(NUMBERS.to_numpy(float)))
    rows = NUMBERS.head(3).astype({"garden": float})
    filled = rows.fillna({"size": NUMBERS["size"].median()})
    rows.loc[1, "size"], filled.loc[1, "size"] = np.nan, NUMBERS["size"].median()
    np.testing.assert_array_equal(frame.predict(rows), frame.predict(filled))
    with pytest.raises(ValueError, match="NaN"):
        array.predict(rows.to_numpy())


@pytest.mark.parametrize("more", [{}, {"town": FRAME["town"]}], ids=["numbers", "with categories"])
def test_sparse_columns_of_a_frame_are_read(more):
    """As scikit-learn's and pandas' own encoders give them; a sparse matrix is refused (test_errors.py)."""
    dense = NUMBERS.astype(float).where(NUMBERS["size"] > 100, 0.0)
    sparse = dense.astype(pd.SparseDtype(float, 0.0)).assign(**more)
    wanted = BayesianRegressor(**QUICK).fit(dense.assign(**more), PRICE)
    found = BayesianRegressor(**QUICK).fit(sparse, PRICE)
    np.testing.assert_array_equal(found.predict(sparse), wanted.predict(dense.assign(**more)))
    np.testing.assert_array_equal(wanted.predict(sparse), found.predict(sparse))


def test_a_weight_of_two_is_a_row_twice():
    weight = np.random.default_rng(1).integers(0, 3, len(FRAME))
    rows = np.repeat(np.arange(len(FRAME)), weight)
    weighted = BayesianRegressor(**QUICK).fit(FRAME, PRICE, sample_weight=weight)
    repeated = BayesianRegressor(**QUICK).fit(FRAME.iloc[rows], PRICE.iloc[rows])
    np.testing.assert_allclose(weighted.predict(FRAME), repeated.predict(FRAME), rtol=1e-4)


@pytest.mark.parametrize("class_weight", ["balanced", {"far": 3.0, "near": 0.5}])
def test_class_weights_are_sample_weights(class_weight):
    y = np.where(PRICE > 560, "far", "near")
    weight = np.linspace(0.5, 2, len(y))
    model = BayesianClassifier(**QUICK, class_weight=class_weight).fit(NUMBERS, y, weight)
    told = BayesianClassifier(**QUICK).fit(NUMBERS, y, weight * compute_sample_weight(class_weight, y))
    np.testing.assert_array_equal(model.predict_proba(NUMBERS), told.predict_proba(NUMBERS))
    plain = BayesianClassifier(**QUICK).fit(NUMBERS, y, weight)
    assert (model.predict_proba(NUMBERS) != plain.predict_proba(NUMBERS)).any()


def test_a_budget_in_place_of_steps_and_progress_on_stderr(capsys):
    model = BayesianRegressor("map", "mlp:4", budget="0.2s", verbose=True, random_state=0).fit(NUMBERS, PRICE)
    assert model.fit_.config["budget"] == 0.2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip().startswith("Fit(map, 40 rows")
    with pytest.raises(InputError, match="steps or a budget, not both"):
        BayesianRegressor(steps=2, budget="1s").fit(NUMBERS, PRICE)


@pytest.mark.full
def test_auto_keeps_its_budget():
    model = BayesianRegressor(budget="3s", random_state=0).fit(FRAME, PRICE)
    assert model.why_.startswith("deep_ensemble")
    assert model.fit_.timing["seconds_run"] < 4


def test_copies_predict_the_same(fitted, tmp_path):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(FRAME), fitted.predict(FRAME))
    again = clone(fitted).fit(FRAME, PRICE)
    np.testing.assert_array_equal(again.predict(FRAME), fitted.predict(FRAME))
    predictor = credo.load_exported(credo.export(fitted, tmp_path / "p", "numpy"))
    mean, std = fitted.predict(FRAME, return_std=True)
    for rows in (FRAME, FRAME.to_dict("records")):
        np.testing.assert_allclose(predictor.predict(rows).mean, mean, rtol=1e-5)
        np.testing.assert_allclose(predictor.predict(rows).std, std, rtol=1e-4)


@pytest.mark.full
def test_searches_and_pipelines_take_frames():
    y = np.where(PRICE > 560, "far", "near")
    pipe = make_pipeline(FunctionTransformer(), BayesianClassifier(**QUICK))
    search = GridSearchCV(pipe, {"bayesianclassifier__class_weight": [None, "balanced"]}, cv=2, error_score="raise")
    assert search.fit(FRAME, y).predict_proba(FRAME).shape == (40, 2)
    assert search.best_estimator_[-1].encoder_.classes == ("far", "near")


def test_notebooks_show_the_fit_beside_the_diagram(fitted):
    page = fitted._repr_mimebundle_()["text/html"]
    assert fitted._repr_html_().endswith(page[page.index("<caption>") :])
    assert "sk-estimator" in page
    for words in ("map", "The fit finished.", "scores on 40 rows that it learned from", "rmse"):
        assert words in page
    copy = pickle.loads(pickle.dumps(fitted))
    assert "scores on" not in copy._repr_html_()
    assert "<caption>" not in clone(fitted)._repr_html_()
    error = float(page.split("rmse ")[1].split(",")[0])
    np.testing.assert_allclose(error, np.sqrt(np.mean((fitted.predict(FRAME) - PRICE) ** 2)), rtol=1e-3)


def test_columns_that_cannot_be_inputs_are_left_out_and_said():
    ids = [f"house number {i}" for i in range(len(FRAME))]
    model = BayesianRegressor(**QUICK).fit(FRAME.assign(key=ids), PRICE)
    assert "Column 'key' looks like an id" in model.encoder_.notes[0]
    assert "Column &#x27;key&#x27; looks like an id" in model._repr_html_()
    with pytest.raises(InputError, match="No column is left to predict 'price' from"):
        BayesianRegressor(**QUICK).fit(FRAME[[]].assign(key=ids), PRICE)
