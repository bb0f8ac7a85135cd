"""Columns of many categories: one code each, in the encoder, in the model of a table and in what is exported."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import ArtifactError, InputError
from credo.estimators import BayesianRegressor
from credo.networks import MLP, Embedded
from credo.storage.export.arrays import numbers
from credo.storage.export.portable.load import Predictor
from credo.storage.export.subject import Subject
from credo.tables.auto import pilots
from credo.tables.auto.case import of_table
from credo.tables.auto.choice import choose, count
from credo.tables.auto.model_set import model_set
from credo.tables.auto.resolution import resolve
from credo.tables.columns.decode import decode
from credo.tables.encode.columns import MOST_ONE_HOT, CodeColumn, learn_column
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.levels import LEVELS
from credo.tables.encode.unseen import find_unseen, predict_unseen
from credo.tables.model import table_model
from exported import KEY, drawn, same
from plain_cells import same_without_pandas

TOWNS = 40


def table(rows=400, missing=False, seed=0):
    rng = np.random.default_rng(seed)
    code = np.concatenate([np.arange(TOWNS), rng.choice(TOWNS, rows - TOWNS, p=np.arange(TOWNS, 0, -1) / 820)])
    effect = rng.normal(size=TOWNS)
    x, z = rng.normal(size=(2, rows))
    frame = pd.DataFrame({"x": x, "town": [f"town {c:02d}" for c in code], "z": z})
    frame["y"] = effect[code] + frame["x"] + 0.1 * rng.normal(size=rows)
    if missing:
        frame.loc[rng.choice(rows, 30, replace=False), "town"] = None
    return frame


def learned(frame=None, missing="auto", **options):
    return TableEncoder.learn(table() if frame is None else frame, "y", missing=missing, codes=True, **options)


def column_of(encoder):
    return next(column for column in encoder.columns if isinstance(column, CodeColumn))


@pytest.mark.parametrize("missing", [False, True])
def test_a_row_has_the_code_of_its_category(missing):
    frame = table(missing=missing)
    encoder = learned(frame)
    column, own = column_of(encoder), encoder.inputs(frame)[:, 1]
    assert encoder.codes == ((1, TOWNS + missing),)
    assert encoder.feature_names == ("x", "town", "z")
    present = frame["town"].notna().to_numpy()
    assert [column.categories[int(code)] for code in own[present]] == frame["town"][present].tolist()
    assert (own[~present] == TOWNS).all()
    counts = frame["town"].value_counts()
    assert counts[list(column.categories)].is_monotonic_decreasing
    assert TableEncoder.from_config(json.loads(json.dumps(encoder.to_config()))) == encoder
    wanted = [town if there else None for town, there in zip(frame["town"], present)]
    assert decode(column, own[:, None]).tolist() == wanted


def test_few_categories_have_a_feature_each_and_many_where_codes_are_not_known():
    for size, codes, width in ((MOST_ONE_HOT, True, MOST_ONE_HOT), (MOST_ONE_HOT + 1, True, 1), (60, False, 60)):
        frame = pd.DataFrame({"town": [f"t{i}" for i in range(size)] * 3})
        frame["y"] = np.random.default_rng(0).normal(size=len(frame))
        assert len(TableEncoder.learn(frame, "y", codes=codes).feature_names) == width


def test_typical_categories_are_quantiles_of_the_target():
    """A sixteenth of the rows each: their mean is near the mean of all rows, closer than any sixteen at random."""
    frame = table(4000)
    column = column_of(learned(frame))
    means = frame.groupby("town")["y"].mean()[list(column.categories)].to_numpy()
    own = means[list(column.typical)]
    assert (np.diff(own) > -0.05).all()
    assert abs(own.mean() - frame["y"].mean()) < 0.1
    assert own.std() == pytest.approx(np.std(means[[column.categories.index(t) for t in frame["town"]]]), rel=0.15)
    assert len(column.typical) == LEVELS


def test_new_categories_and_gaps_are_averages():
    frame = table()
    encoder = learned(frame)
    rows = frame.head(4).copy()
    rows.loc[0, "town"], rows.loc[2, "town"] = "nowhere", None
    with pytest.raises(InputError, match="'nowhere' in row 1"):
        encoder.inputs(rows.head(2))
    with pytest.raises(InputError, match="missing in row 3"):
        encoder.inputs(rows.iloc[1:])
    inputs = encoder.inputs(rows, unseen="zeros")
    assert inputs[0, 1] == TOWNS
    assert np.isnan(inputs[2, 1])
    found = {unseen.why: unseen.rows.tolist() for unseen in find_unseen(encoder, inputs)}
    assert list(found.values()) == [[True, False, False, False], [False, False, True, False]]
    fit = drawn(inputs=encoder.inputs(frame), network=table_model(encoder, "mlp:4").network)
    got = predict_unseen(lambda x: credo.predict(KEY, fit, x), encoder, inputs)
    each = [encoder.inputs(rows.assign(town=column_of(encoder).categories[c])) for c in column_of(encoder).typical]
    outputs = np.array([credo.predict(KEY, fit, x).mean for x in each])
    np.testing.assert_allclose(got.mean[[0, 2]], outputs.mean(0)[[0, 2]], rtol=1e-4)
    assert (got.epistemic[[0, 2]] > outputs.var(0)[[0, 2]]).all()


def test_gaps_are_filled_in_where_asked():
    frame = table(missing=True)
    encoder = learned(frame, "impute")
    own = encoder.inputs(frame)
    assert encoder.feature_names == ("x", "town", "town:missing", "z")
    np.testing.assert_array_equal(own[:, 2], frame["town"].isna())
    assert (own[frame["town"].isna(), 1] == 0).all()
    assert decode(column_of(encoder), own[:, 1:3])[frame["town"].isna().to_numpy().argmax()] is None
    with pytest.raises(InputError, match="missing"):
        learned(frame, "error")


def test_numbers_written_otherwise_have_the_same_code():
    """Codes of shops, which a file may have as texts or as numbers."""
    rng = np.random.default_rng(0)
    shops = pd.Series([f"{i:03d}" for i in range(40)] * 3, name="shop")
    column = learn_column("category", shops, None, "auto", codes=True, outcome=rng.normal(size=120))
    out = np.empty((2, 1), np.float32)
    column.encode(pd.Series([7, 12], name="shop"), out, unseen="error")
    assert [column.categories[int(code)] for code in out[:, 0]] == ["007", "012"]


def test_a_saved_column_is_checked():
    encoder = learned()
    for change in ({"typical": [0] * 3}, {"typical": [TOWNS] * LEVELS}, {"fill": "Rome"}):
        plain = json.loads(json.dumps(encoder.to_config()))
        plain["columns"][1] |= change
        with pytest.raises(ArtifactError, match="damaged"):
            TableEncoder.from_config(plain)


def test_very_many_categories_take_little_room():
    """Their texts, once, and four bytes for each row."""
    count = 50_000
    keys = np.random.default_rng(0).permutation(np.repeat(np.arange(count), 2))
    frame = pd.DataFrame({"shop": [f"s{k}" for k in keys], "y": np.random.default_rng(1).normal(size=2 * count)})
    encoder = learned(frame)
    assert encoder.codes == ((0, count),)
    assert encoder.inputs(frame).nbytes == 4 * len(frame)
    assert len(json.dumps(encoder.to_config())) < 12 * count


def test_the_model_has_vectors_where_the_method_can_learn_them():
    encoder = learned()
    model = table_model(encoder, "mlp:8", {"prior": "fan_in_normal:1"}, "deep_ensemble")
    assert isinstance(model.network, Embedded)
    assert model.network.columns == ((1, TOWNS),)
    assert model.prior.globs == ("embedding_*", "*")
    own = table_model(encoder, "mlp:8", {"prior": "by_path:embedding_*=normal(0.5),*=normal(1)"})
    assert own.prior.priors[0].scale == 0.5
    assert isinstance(table_model(TableEncoder.learn(table(), "y", missing="auto"), "mlp:8").network, MLP)


@pytest.mark.parametrize("method", ["map", "bayes_by_backprop", "laplace", "mc_dropout"])
def test_a_fit_learns_effects_of_categories(method, tmp_path):
    frame = table()
    run = credo.tables.fit(frame, "y", method=method, steps=1500, network="mlp:16:tanh", out=tmp_path / "run", seed=1)
    assert isinstance(run.fit.model.network, Embedded)
    truth = frame["y"].to_numpy()
    assert np.mean((run.predict(frame)["mean"] - truth) ** 2) ** 0.5 < 0.6 * truth.std()
    rows = frame.head(3).assign(town=["town 01", "nowhere", None])
    found = run.predict(rows)
    pd.testing.assert_frame_equal(credo.tables.load(tmp_path / "run").predict(rows), found)
    assert np.isfinite(found.to_numpy()).all()
    if method == "map":
        assert (found["epistemic_std"].iloc[1:] > 0.3).all()
        effects = run.effects()
        assert dict(zip(effects.names, effects.strength.ravel()))["town"] > 0.5


def test_methods_without_vectors_get_features():
    run = credo.tables.fit(table(120), "y", method="gibbs", network="shallow:2", steps=20, settings={"warmup": 20})
    assert run.encoder.codes == ()
    assert sum(name.startswith("town=") for name in run.encoder.feature_names) > TOWNS - 3


def test_estimators_take_codes_and_comparisons_do():
    frame = table(120)
    model = BayesianRegressor("map", network=[8], steps=200, random_state=0).fit(frame[["x", "town"]], frame["y"])
    assert isinstance(model.fit_.model.network, Embedded)
    assert np.isfinite(model.predict(frame[["x", "town"]].head(2).assign(town="nowhere"))).all()
    found = credo.compare(frame, "y", methods="map", baselines="linear", folds=2, steps=50)
    assert "map" in str(found)
    assert "linear" in str(found)


@pytest.mark.parametrize("missing", ["auto", "impute"])
@pytest.mark.parametrize("gaps", [False, True])
def test_cells_without_pandas_have_the_same_codes(missing, gaps):
    frame = table(missing=gaps)
    encoder = learned(frame, missing)
    rows = frame.head(60).assign(town=[None, "nowhere", *frame["town"][2:60]])
    same_without_pandas(encoder, rows)


@pytest.mark.parametrize("spread", [None, 0.1])
def test_exported_numbers_are_those_of_the_library(spread):
    frame = table(40 + TOWNS)
    encoder = learned(frame)
    inputs = encoder.inputs(frame)[:40]
    network = table_model(encoder, "mlp:5").network
    fit = drawn(inputs=inputs, network=network, draws=7, spread=spread)
    subject = Subject(fit, KEY, encoder=encoder.to_config(), num_samples=7)
    described, arrays = numbers(subject, None)
    document = json.loads(json.dumps(subject.plain() | described | {"form": "numpy"}))
    predictor = Predictor(document, arrays)
    rows = frame.head(12).copy()
    same(predictor.predict(rows), credo.predict(KEY, fit, inputs[:12], num_samples=7), np.zeros(12))
    rows.loc[3, "town"] = "nowhere"
    with pytest.warns(UserWarning, match="categories"):
        new = predictor.predict(rows)
    wanted = predict_unseen(
        lambda x: credo.predict(KEY, fit, x, num_samples=7), encoder, encoder.inputs(rows, unseen="zeros")
    )
    same(new, wanted, np.zeros(12))


def test_exported_numbers_of_a_linearised_posterior_are_too():
    frame = table(40 + TOWNS)
    encoder = learned(frame)
    data = encoder.arrays(frame)[:2]
    model = table_model(encoder, "mlp:3:tanh", {"noise": 0.3}, "laplace")
    fit = credo.fit(jax.random.key(0), model, data, "laplace", steps=200)
    subject = Subject(fit, KEY, encoder=encoder.to_config(), num_samples=9)
    described, arrays = numbers(subject, None)
    predictor = Predictor(json.loads(json.dumps(subject.plain() | described | {"form": "numpy"})), arrays)
    wanted = credo.predict(KEY, fit, data[0][:9], num_samples=9)
    found = predictor.predict(frame.head(9))
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-4)
    np.testing.assert_allclose(found.epistemic, wanted.epistemic, rtol=1e-2)


def test_a_compiled_program_has_the_same_codes(tmp_path):
    frame = table(40 + TOWNS)
    encoder = learned(frame)
    inputs = encoder.inputs(frame)[:40]
    fit = drawn(inputs=inputs, network=table_model(encoder, "mlp:3").network, draws=3)
    credo.export(fit, tmp_path / "out", "stablehlo", num_samples=3, key=KEY)
    found = credo.load_exported(tmp_path / "out").predict(inputs[:9])
    np.testing.assert_allclose(found.mean, credo.predict(KEY, fit, inputs[:9], num_samples=3).mean, rtol=1e-5)


def test_auto_counts_vectors_and_has_no_process_for_codes():
    plain, vectors = (count("mlp:8", "regression", 3, levels=levels) for levels in ((), (999,)))
    assert vectors == count("mlp:8", "regression", 5) + 3 * 1000 // 8 > plain
    assert choose("regression", 5_000, 5, device="cpu", levels=(300,)).method == "ensemble_chains"
    assert choose("regression", 5_000, 5, device="cpu", levels=(1_000_000,)).method == "deep_ensemble"
    for levels, wanted in (((), True), ((300,), False)):
        parts = model_set("regression", 400, 5, levels=levels, device="cpu")
        assert any(part.method == "infinite_width" for part in parts) is wanted
    encoder = learned()
    assert of_table(encoder, encoder.arrays(table())).levels == (TOWNS,)


def test_a_shallow_network_keeps_its_own_prior_beside_vectors(monkeypatch):
    monkeypatch.setattr(pilots, "_scores", lambda *_: pytest.fail("a pilot was run"))
    frame = table()
    encoder = learned(frame)
    resolved = resolve(of_table(encoder, encoder.arrays(frame)), network="shallow:8")
    assert type(resolved.model.prior.priors[1]).__name__ == "NodeHierarchy"
    fit = credo.fit(KEY, resolved.model, encoder.arrays(frame)[:2], "map", steps=20)
    assert fit.outcome == "finished"
