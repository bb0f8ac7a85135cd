"""`credo.tables`: the library and the command line are one, whoever writes the run and whatever holds the table."""

import json

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import credo
from credo.cli.main import app
from credo.errors import ArtifactError, InputError
from credo.report import load_run_data, run_data

OPTIONS = {"method": "deep_ensemble", "network": "mlp:4", "steps": 60, "settings": {"size": 3}, "seed": 5}
WORDS = ["--method", "deep_ensemble", "--network", "mlp:4", "--steps", "60", "--set", "size=3", "--seed", "5"]
MESSY = {"missing": "impute", "drop": ["id"]}
MESSY_WORDS = ["--missing", "impute", "--drop", "id"]


@pytest.fixture(scope="module")
def messy():
    """Numbers with gaps, categories with gaps, dates, truth values, and a column that numbers the rows."""
    rng, rows = np.random.default_rng(0), 90
    x = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "id": np.arange(rows), "x": x, "town": rng.choice(["Bath", "Hull", "York"], rows),
            "sold": pd.date_range("2024-01-01", periods=rows), "garden": rng.random(rows) < 0.5,
            "price": 100 + 10 * x + rng.normal(size=rows),
        }
    )  # fmt: skip
    frame.loc[[3, 50], "x"] = np.nan
    frame.loc[[7, 60], "town"] = None
    return frame


@pytest.fixture(scope="module")
def folder(messy, tmp_path_factory):
    place = tmp_path_factory.mktemp("messy")
    messy.to_csv(place / "houses.csv", index=False)
    return place


def command(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def ours(messy, folder):
    """A run that the library made from a data frame and wrote."""
    told = []
    run = credo.tables.fit(messy, "price", **OPTIONS, **MESSY, out=folder / "ours", tell=told.append)
    assert any("price" in sentence for sentence in told)
    return run


@pytest.fixture(scope="module")
def theirs(folder):
    """The run that the command line made from the file."""
    table = folder / "houses.csv"
    command("fit", table, "--target", "price", *WORDS, *MESSY_WORDS, "--out", folder / "theirs")
    return credo.tables.load(folder / "theirs")


def test_library_and_command_line_give_the_same_bits(ours, theirs, messy, folder):
    pd.testing.assert_frame_equal(ours.predict(messy), theirs.predict(messy), check_exact=True)
    pd.testing.assert_frame_equal(ours.predict(messy), theirs.predict(folder / "houses.csv"), check_exact=True)
    for run in ("ours", "theirs"):
        command("predict", folder / run, folder / "houses.csv", "--out", folder / f"{run}.parquet")
        written = pd.read_parquet(folder / f"{run}.parquet").drop(columns="id")
        pd.testing.assert_frame_equal(written, ours.predict(messy), check_exact=True)
    files = ("posterior.safetensors", "encoder.json", "heldout.safetensors", "model.json")
    assert all((folder / "ours" / name).read_bytes() == (folder / "theirs" / name).read_bytes() for name in files)
    timeless = lambda metrics: {k: v for k, v in metrics.items() if "seconds" not in k}  # noqa: E731
    assert timeless(ours.metrics) == timeless(theirs.metrics)


def test_a_run_in_memory_is_the_one_on_disk(ours, messy, folder):
    run = credo.tables.fit(messy, "price", **OPTIONS, **MESSY)
    assert run.folder is None
    pd.testing.assert_frame_equal(run.predict(messy), ours.predict(messy), check_exact=True)
    saved = run.save(folder / "later")
    assert saved.folder == folder / "later"
    assert saved.summary().splitlines()[0].startswith("deep_ensemble learned price (regression) from 81 rows")
    read = credo.tables.load(folder / "later")
    pd.testing.assert_frame_equal(read.predict(messy), ours.predict(messy), check_exact=True)
    assert read.summary() == saved.summary()
    assert "deep_ensemble on price" in repr(read)
    with pytest.raises(InputError, match="has no folder"):
        run.report()


def test_members_on_several_devices_predict_as_they_do_from_disk(messy, tmp_path):
    """Quantiles by bisection show the last digit, in which a program that is spread over devices may differ."""
    options = OPTIONS | {"settings": {"size": 4, "likelihood": "heteroscedastic_t:5"}}
    run = credo.tables.fit(messy, "price", **options, **MESSY, out=tmp_path / "run")
    assert {len(x.sharding.device_set) for x in jax.tree.leaves(run.fit.posterior)} == {1}
    read = credo.tables.load(tmp_path / "run")
    pd.testing.assert_frame_equal(run.predict(messy), read.predict(messy), check_exact=True)
    assert held_out_log_likelihood(run) == held_out_log_likelihood(read)
    assert run.metrics["test_log_likelihood"] == pytest.approx(held_out_log_likelihood(read), rel=1e-12)


def held_out_log_likelihood(run):
    held = run_data(run)
    return float(held.predictive.log_prob(held.targets).mean())


class Polars:
    """What polars and others show of a table: a stream of Arrow."""

    def __init__(self, frame):
        self.table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Exchanged:
    """A table that knows the interchange protocol alone."""

    def __init__(self, frame):
        self.table = pa.Table.from_pandas(frame, preserve_index=False)

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self.table.__dataframe__(nan_as_null, allow_copy)


@pytest.mark.parametrize("wrapped", [Polars, Exchanged, lambda frame: Polars(frame).table, "polars"])
def test_tables_of_every_kind(wrapped, ours, messy):
    if wrapped == "polars":
        wrapped = pytest.importorskip("polars", reason="polars is not installed").from_pandas
    given = wrapped(messy)
    for _ in range(2):  # the first reading leaves the table whole
        pd.testing.assert_frame_equal(ours.predict(given), ours.predict(messy), check_exact=True)
    assert ours.score(given) == ours.score(messy)


def test_predictions_have_the_index_of_the_frame(ours, messy):
    shuffled = messy.set_index("id", drop=False).sample(frac=1, random_state=0)
    found = ours.predict(shuffled, interval=0.5)
    assert list(found.index) == list(shuffled.index)
    assert list(found.columns) == ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper"]
    np.testing.assert_allclose(found["mean"].sort_index(), ours.predict(messy)["mean"], rtol=1e-5)
    predictive = ours.predictive(shuffled)
    np.testing.assert_array_equal(predictive.mean, found["mean"])
    np.testing.assert_array_equal(predictive.std, found["std"])


def test_rows_that_cannot_be_predicted_are_empty(messy):
    options = OPTIONS | {"method": "map", "settings": {}, "steps": 20}
    run = credo.tables.fit(messy, "price", **options, missing="drop", drop=["id"], holdout=0)
    told = []
    found = run.predict(messy.set_index("id"), tell=told.append)
    assert list(found.index[found["mean"].isna()]) == [3, 7, 50, 60]
    assert "4 of 90 rows have missing cells; their predictions are left empty." in told
    assert len(run.predictive(messy).mean) == 86


def test_report_predict_and_metrics_are_of_the_same_draws(ours, theirs):
    held, read = run_data(ours), load_run_data(theirs.folder)
    np.testing.assert_array_equal(held.predictive.mean, read.predictive.mean)
    np.testing.assert_array_equal(held.predictive.mean, ours.predictive(ours.inputs()).mean)
    log_likelihood = held.predictive.log_prob(held.targets).mean()
    assert log_likelihood == pytest.approx(ours.metrics["test_log_likelihood"], abs=1e-6)


def test_what_follows_from_a_run(ours, messy, folder):
    assert ours.status.ok
    assert ours.why == ""
    as_printed = json.loads(command("evaluate", folder / "ours", folder / "houses.csv", "--json").stdout)
    assert json.loads(json.dumps(ours.score(messy))) == as_printed
    assert "x" in ours.effects(messy).names
    prices = {"sell": lambda y: y - 100, "keep": lambda y: 0.0 * y}
    assert len(ours.decide(messy, prices).action) == 90
    costs = pd.DataFrame(
        {"action": ["sell", "keep"], "threshold": [100, 100], "utility_below": [-1, 0], "utility_above": [1, 0]}
    )
    assert set(ours.decide(messy, costs).action) <= {"sell", "keep"}
    assert list(ours.suggest(messy, 3).columns[:3]) == ["rank", "row", "value"]
    strange = ours.detect(messy, clean=messy, fpr=0.1)
    assert list(strange.columns[:4]) == ["row", "score", "threshold", "flagged"]
    assert strange["flagged"].sum() == 9
    assert ours.report(folder / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    exported = credo.load_exported(ours.export(folder / "exported"))
    np.testing.assert_allclose(exported.predict(messy.iloc[:5]).mean, ours.predictive(messy).mean[:5], rtol=1e-5)


def test_a_run_on_a_frame_goes_on_with_its_frame(ours, messy, folder, monkeypatch):
    def stop(*_, **how):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("credo.tables.auto.resolution.Resolved.fit", stop)
        with pytest.raises(KeyboardInterrupt, match="credo resume"):
            credo.tables.fit(messy, "price", **OPTIONS, **MESSY, out=folder / "stopped")
    with pytest.raises(InputError, match="in no file; pass it"):
        credo.tables.resume(folder / "stopped")
    with pytest.raises(InputError, match="has changed"):
        credo.tables.resume(folder / "stopped", messy.assign(x=1.0))
    run = credo.tables.resume(folder / "stopped", messy)
    pd.testing.assert_frame_equal(run.predict(messy), ours.predict(messy), check_exact=True)
    told = []
    again = credo.tables.resume(folder / "stopped", tell=told.append)
    assert "nothing to resume" in told[0]
    assert again.metrics.keys() == run.metrics.keys()


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ([[1.0, 2.0]], {}, "A table is a path to a file or a data frame of pandas, polars or Arrow, got list"),
        ("nowhere.csv", {}, "There is no file"),
        (pd.DataFrame({"y": []}), {}, "The table has no rows"),
        (pd.DataFrame({"x": [1.0] * 9, "z": [2.0] * 9}), {}, "no column 'y'"),
        (pd.DataFrame({"x": range(9), "y": range(9)}), {"steps": 3, "budget": "5s"}, "not both"),
        (pd.DataFrame({"x": range(9), "y": range(9)}), {"method": "nutz"}, "nuts"),
    ],
)
def test_bad_input_ends_in_a_sentence(table, options, words):
    with pytest.raises(InputError, match=words):
        credo.tables.fit(table, "y", **options)


def test_a_run_of_arrays_is_no_run_of_a_table(tmp_path):
    x = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    model = credo.Model(credo.networks.mlp([2]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    credo.fit(credo_key(), model, (x, x[:, 0]), "map", steps=5).save(tmp_path / "run")
    with pytest.raises(ArtifactError, match="was made from arrays"):
        credo.tables.load(tmp_path / "run")


def credo_key():
    import jax

    return jax.random.key(0)
