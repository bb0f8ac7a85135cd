"""`missing="auto"`: what a gap means is learned where training had some, and averaged over where it had none."""

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import InputError
from credo.storage.export.portable.cells import as_columns, unknown_cells
from credo.storage.export.portable.cells import encode as portable_encode
from credo.tables.columns.decode import decode, has_value
from credo.tables.encode.columns import learn_column
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.levels import LEVELS
from credo.tables.encode.unseen import fill_gaps, find_unseen, predict_unseen, unseen_notes

ROWS = 400


def table(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "x": rng.normal(size=ROWS), "town": rng.choice(["Bath", "York", "Ely"], ROWS, p=[0.5, 0.25, 0.25]),
        "new": rng.random(ROWS) < 0.3, "sold": pd.date_range("2024-01-01", periods=ROWS, freq="26h"),
    })  # fmt: skip
    frame["y"] = 3.0 * frame["x"] + 2.0 * (frame["town"] == "Bath") + rng.normal(0, 0.1, ROWS)
    return frame


def gappy(frame, names=("x", "town", "new", "sold"), every=7):
    frame = frame.copy()
    for place, name in enumerate(names):
        frame[name] = frame[name].astype(object) if frame[name].dtype == bool else frame[name]
        frame.loc[place::every, name] = None
    return frame


@pytest.mark.parametrize("other", ["error", "drop", "impute"])
def test_without_gaps_all_policies_encode_bit_for_bit_the_same(other):
    frame = table()
    auto, plain = (TableEncoder.learn(frame, "y", missing=missing) for missing in ("auto", other))
    np.testing.assert_array_equal(auto.inputs(frame), plain.inputs(frame))
    assert auto.feature_names == plain.feature_names


def test_gaps_of_training_have_features_of_their_own():
    frame = gappy(table())
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    inputs = encoder.inputs(frame)
    names = list(encoder.feature_names)
    assert [name for name in names if name.endswith(":missing")] == [
        f"{n}:missing" for n in ("x", "town", "new", "sold")
    ]
    towns = inputs[:, [names.index(f"town={t}") for t in ("Bath", "Ely", "York")]]
    gone = frame["town"].isna().to_numpy()
    np.testing.assert_array_equal(inputs[:, names.index("town:missing")], gone)
    np.testing.assert_array_equal(towns.sum(1), ~gone)  # a gap is no other category
    assert np.isfinite(inputs).all()
    assert find_unseen(encoder, inputs) == []
    new = encoder.inputs(frame.assign(town="Rome"), unseen="zeros")
    assert [one.rows.all() for one in find_unseen(encoder, new)] == [True]


def test_new_gaps_are_averaged_over_what_training_had():
    """The mean and the spread of the mixture are those of the training values, in the closed form of a linear model."""
    frame = table()
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))
    fit = credo.fit(jax.random.key(0), model, encoder.arrays(frame)[:2], "laplace", steps=600)
    rows = frame.head(40).copy()
    rows.loc[::2, "x"] = np.nan
    inputs = encoder.inputs(rows, unseen="zeros")
    found = predict_unseen(lambda x: credo.predict(jax.random.key(1), fit, x), encoder, inputs)
    whole = credo.predict(jax.random.key(1), fit, encoder.inputs(frame.head(40)))
    slope, scale = 3.0 / encoder.target_scale, frame["x"].std()
    away = np.asarray(found.mean - (whole.mean - slope * (frame["x"].head(40).to_numpy() - frame["x"].mean())))
    assert np.abs(away[::2]).max() < 0.06  # 16 quantiles, of a slope of about 1
    np.testing.assert_allclose(found.mean[1::2], whole.mean[1::2], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(found.epistemic[::2]), slope * scale, rtol=0.1)
    assert unseen_notes(encoder, inputs)[0].startswith("Column 'x' is missing where training had no gaps in 20 of 40 ")


@pytest.mark.parametrize("name", ["x", "town", "new", "sold"])
def test_a_new_gap_of_every_kind_of_column(name):
    frame = table()
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    rows = frame.head(12).astype({"new": object})
    rows.loc[[3, 5], name] = None
    inputs = encoder.inputs(rows, unseen="zeros")
    (one,) = find_unseen(encoder, inputs)
    assert np.flatnonzero(one.rows).tolist() == [3, 5]
    assert one.values.shape == (LEVELS, len(one.features))
    assert np.isfinite(fill_gaps(encoder, inputs)).all()
    column = next(column for column in encoder.columns if column.name == name)
    assert np.flatnonzero(~has_value(column, inputs[:, one.features])).tolist() == [3, 5]
    assert has_value(column, one.values).all()
    assert len(set(decode(column, one.values))) > 1
    with pytest.raises(InputError, match=f"Column '{name}' is missing in row 4, and training had no such cell"):
        encoder.inputs(rows)


@pytest.mark.parametrize("train_gaps", [True, False])
def test_the_portable_encoder_gives_the_same_inputs(train_gaps):
    frame = table()
    encoder = TableEncoder.learn(gappy(frame) if train_gaps else frame, "y", missing="auto")
    config = TableEncoder.from_config(encoder.to_config()).to_config()
    rows = gappy(frame, every=5)
    rows.loc[8, "town"] = "Rome"
    wanted = encoder.inputs(rows, unseen="zeros")
    found = portable_encode(config, as_columns(rows), "zeros")
    np.testing.assert_array_equal(found, wanted)
    pairs = list(zip(unknown_cells(config, found), find_unseen(encoder, wanted), strict=True))
    assert len(pairs) == (1 if train_gaps else 5)
    for ours, theirs in pairs:
        assert (ours.name, list(ours.features), ours.why) == (theirs.name, list(theirs.features), theirs.why)
        np.testing.assert_array_equal(ours.rows, theirs.rows)
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_the_spread_counts_weights_as_rows():
    values = pd.Series([0.0, 1.0, 2.0, 3.0], name="x")
    weights = np.array([13.0, 1.0, 1.0, 1.0])
    column = learn_column("numeric", values, weights, "auto")
    assert np.sum(np.array(column.spread) == column.spread[0]) == 13


def test_a_table_with_gaps_needs_no_option(tmp_path):
    frame = gappy(table())
    run = credo.tables.fit(frame, "y", method="deep_ensemble", steps=30, seed=0, out=tmp_path / "run")
    told = []
    found = credo.tables.load(tmp_path / "run").predict(gappy(table(1), every=3), tell=told.append)
    assert np.isfinite(found.to_numpy()).all()
    assert told == []
    clean = credo.tables.fit(table(), "y", method="deep_ensemble", steps=30, seed=0)
    unsure = clean.predict(gappy(table(), ("x",), 1), tell=told.append)
    assert (unsure["epistemic_std"] > clean.predict(table())["epistemic_std"]).mean() > 0.95
    assert told == [f"Column 'x' is missing where training had no gaps in {ROWS} of {ROWS} rows; there predictions are "
                    "averages over the known values, by their shares in training, and less certain."]  # fmt: skip
    assert np.isfinite(clean.effects(gappy(table(), ("x",), 2)).strength).all()
    assert run.encoder.missing == "auto"
