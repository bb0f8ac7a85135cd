"""Quantiles of columns, and the networks of tables that use them."""

import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import ArtifactError
from credo.networks import Embedded, Piecewise
from credo.tables.encode.encoder import TableEncoder
from credo.tables.model import table_model


def table(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=rows)
    return pd.DataFrame({
        "dose": x, "flag": rng.integers(0, 2, rows), "kind": rng.choice(["a", "b", "c"], rows),
        "gappy": np.where(rng.random(rows) < 0.3, np.nan, rng.normal(size=rows)),
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
        "y": np.where(x > 1, 2.0, 0.0) + 0.1 * rng.normal(size=rows),
    })  # fmt: skip


def test_cuts_are_quantiles_of_encoded_columns():
    frame = table()
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    inputs = encoder.inputs(frame)
    places, knots = encoder.knots(8)
    names = [encoder.feature_names[place] for place in places]
    assert names == ["dose", "gappy", "day:elapsed"]
    np.testing.assert_allclose(
        knots[0], np.quantile(inputs[:, places[0]], np.linspace(0, 1, 9), method="inverted_cdf"), atol=1e-5
    )
    present = ~frame["gappy"].isna().to_numpy()
    np.testing.assert_allclose(
        knots[1], np.quantile(inputs[present, places[1]], np.linspace(0, 1, 9), method="inverted_cdf"), atol=1e-5
    )


def test_a_weight_of_two_is_two_rows():
    frame = table(50)
    twice = pd.concat([frame, frame.iloc[:25]])
    weighted = frame.assign(w=np.r_[np.full(25, 2.0), np.ones(25)])
    one = TableEncoder.learn(twice, "y", missing="auto").knots(4)[1]
    other = TableEncoder.learn(weighted, "y", missing="auto", weights="w").knots(4)[1]
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_encoders_of_earlier_versions_have_no_cuts():
    config = TableEncoder.learn(table(), "y", missing="auto").to_config()
    for column in config["columns"]:
        column.pop("cuts", None)
    encoder = TableEncoder.from_config(config)
    assert encoder.knots(8)[0] == ()
    assert table_model(encoder, "piecewise_mlp:5").network.columns == ()


def test_damaged_cuts_are_refused():
    config = TableEncoder.learn(table(), "y", missing="auto").to_config()
    config["columns"][0]["cuts"] = config["columns"][0]["cuts"][::-1]
    with pytest.raises(ArtifactError):
        TableEncoder.from_config(config)


def test_codes_and_pieces_of_one_table():
    frame = table(400)
    frame["shop"] = [f"shop {i % 50}" for i in range(400)]
    encoder = TableEncoder.learn(frame, "y", missing="auto", codes=True)
    network = table_model(encoder, "piecewise_mlp:5,5:tanh:4").network
    assert isinstance(network, Piecewise)
    assert network.bins == 4
    assert isinstance(network.network, Embedded)


@pytest.mark.parametrize("network", ["piecewise_mlp:6:tanh:4", "residual_mlp:6:2:silu"])
def test_runs_round_trip_and_exports_equal_the_library(tmp_path, network):
    frame = table(120)
    frame["shop"] = [f"shop {i % 40}" for i in range(120)]
    run = credo.tables.fit(
        frame, target="y", method="deep_ensemble", network=network, settings={"size": 2}, steps=50, progress=False,
        out=tmp_path / "run",
    )  # fmt: skip
    rows = frame.drop(columns="y").head(9)
    ours = run.predict(rows)
    pd.testing.assert_frame_equal(ours, credo.tables.load(tmp_path / "run").predict(rows))
    exported = credo.load_exported(run.export(tmp_path / "portable", form="numpy")).predict(rows)
    np.testing.assert_allclose(ours["mean"], np.asarray(exported.mean).ravel(), rtol=1e-4, atol=1e-4)
