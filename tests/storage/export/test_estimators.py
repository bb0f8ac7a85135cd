"""Estimators and predictions among other libraries: exported with their scales, tables of pandas and Arrow."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import credo
from credo.errors import InputError
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.storage.export.portable.cells import PortableError
from exported import KEY, X, drawn

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(40, 3)) * [1, 10, 100] + 5, columns=["a", "b", "c"])
Y = 1000 + 50 * FRAME["a"].to_numpy()
QUICK = {"method": "map", "network": "mlp:4", "steps": 20, "random_state": 0}


def test_a_regressor_takes_its_scales_along(tmp_path):
    """Means to 1e-6 of their size: standardisation is undone in double precision."""
    arrow = pa.Table.from_pandas(FRAME)
    model = BayesianRegressor(**QUICK).fit(arrow, pa.chunked_array([Y]))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(arrow), model.predict(FRAME))
    predictor = credo.load_exported(credo.export(model, tmp_path / "p", "numpy"))
    mean, std = model.predict(FRAME, return_std=True)
    for rows in (FRAME, arrow, FRAME.to_numpy(), FRAME.to_dict("list"), FRAME.to_dict("records")):
        found = predictor.predict(rows)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
        np.testing.assert_allclose(found.std, std, rtol=1e-5)
    np.testing.assert_allclose(found.interval(0.8), model.predict_interval(FRAME, 0.8), rtol=1e-6)
    with pytest.raises(PortableError, match="no column 'b'"):
        predictor.predict({"a": [1.0], "c": [1.0]})


def test_a_classifier_keeps_its_labels(tmp_path):
    labels = np.where(Y > 1250, "up", "down")
    model = BayesianClassifier(**QUICK).fit(FRAME, labels)
    found = credo.load_exported(credo.export(model, tmp_path / "p", "numpy")).predict(FRAME)
    np.testing.assert_allclose(found.probs, model.predict_proba(FRAME), rtol=1e-5, atol=1e-7)
    assert found.label.tolist() == model.predict(FRAME).tolist()
    assert list(found.columns())[:3] == ["label", "p_down", "p_up"]
    chosen = np.take_along_axis(found.probs, (labels == "up").astype(int)[:, None], 1)[:, 0]
    np.testing.assert_allclose(found.log_prob(labels), np.log(chosen), rtol=1e-9)
    with pytest.raises(PortableError, match="no class 'left'"):
        found.log_prob(["left"] * 40)


def test_predictions_as_a_frame():
    two = credo.predict(KEY, drawn(targets=np.stack([Y, Y], 1)), X)
    frame = two.to_pandas(targets=["high", "low"])
    assert list(frame.columns)[:2] == ["high_mean", "high_std"]
    assert list(frame.columns)[-1] == "low_upper"
    assert two.to_pandas().columns[0] == "y0_mean"
    np.testing.assert_array_equal(frame["low_mean"], two.mean[:, 1])
    classes = credo.predict(KEY, drawn("categorical"), X)
    frame = classes.to_pandas(labels=["a", "b", "c"])
    assert frame["label"].tolist() == np.array(["a", "b", "c"])[classes.probs.argmax(1)].tolist()
    np.testing.assert_allclose(frame[["p_a", "p_b", "p_c"]].sum(axis=1), 1, rtol=1e-5)
    assert classes.to_pandas()["label"].tolist() == classes.probs.argmax(1).tolist()
    with pytest.raises(InputError, match="3 classes to name"):
        classes.to_pandas(labels=["a"])
    with pytest.raises(InputError, match="2 targets to name"):
        two.to_pandas(targets=["high"])
