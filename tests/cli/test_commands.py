"""From a table to a run, predictions and scores."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import credo as library
from credo.storage.run_directory.read import open_run
from credo.training import warn
from documents import little_work
from small_tables import QUICK, class_frame, regression_frame

RUN_FILES = {
    "config.json", "metrics.json", "status.json", "diagnostics.json", "model.json", "posterior.safetensors",
    "trace.safetensors", "encoder.json", "heldout.safetensors", "versions.json",
}  # fmt: skip


def predictions(credo, run, table, *more):
    result = credo("predict", run, table, *more)
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout))


def test_a_run_is_complete(runs):
    for name, scores in (("houses", ("rmse", "coverage_90")), ("labels", ("accuracy", "brier", "ece"))):
        out, summary = runs[name]
        assert {path.name for path in out.iterdir()} == RUN_FILES
        metrics = json.loads((out / "metrics.json").read_text())
        assert metrics == summary["metrics"]
        for score in ("log_likelihood", *scores):
            assert np.isfinite(metrics[f"test_{score}"])
        assert metrics["steps"] == 20
        assert metrics["seconds_fit"] >= metrics["seconds_compile"] > 0
        assert (metrics["train_rows"], metrics["test_rows"]) == (54, 6)
        assert summary["ok"]


def test_regression_columns_and_the_original_scale(credo, runs, tables):
    found = predictions(credo, runs["houses"][0], tables / "houses.csv")
    assert list(found) == ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper"]
    assert len(found) == 60
    price = regression_frame()["price"]
    assert abs(found["mean"].mean() - price.mean()) < price.std()
    assert np.allclose(found["std"] ** 2, found["aleatoric_std"] ** 2 + found["epistemic_std"] ** 2, rtol=1e-4)
    assert (found["lower"] < found["mean"]).all()
    narrow = predictions(credo, runs["houses"][0], tables / "houses.csv", "--interval", "0.5")
    assert ((narrow["upper"] - narrow["lower"]) < (found["upper"] - found["lower"])).all()


def test_class_columns(credo, runs, tables, tmp_path):
    out, summary = runs["labels"]
    found = predictions(credo, out, tables / "labels.csv")
    names = ["label", "p_cheap", "p_dear", "p_fair", "entropy", "aleatoric_entropy", "mutual_information"]
    assert list(found) == names
    probs = found[["p_cheap", "p_dear", "p_fair"]]
    assert np.allclose(probs.sum(axis=1), 1)
    assert (found["label"] == probs.idxmax(axis=1).str.removeprefix("p_")).all()
    assert np.allclose(found["entropy"], found["aleatoric_entropy"] + found["mutual_information"], atol=1e-5)
    result = credo("predict", out, tables / "labels.csv", "--out", tmp_path / "p.parquet")
    assert result.stdout == ""
    assert np.allclose(pd.read_parquet(tmp_path / "p.parquet")["p_fair"], found["p_fair"])
    assert summary["task"] == "multiclass"


@pytest.mark.parametrize("name", ["houses", "labels"])
def test_evaluate_repeats_the_held_out_scores(name, credo, runs, tables, tmp_path):
    out, summary = runs[name]
    held = open_run(out).heldout["rows"]
    pd.read_csv(tables / f"{name}.csv").iloc[held].to_csv(tmp_path / "held.csv", index=False)
    scores = json.loads(credo("evaluate", out, tmp_path / "held.csv", "--json").stdout)
    assert scores.pop("rows") == 6
    if name == "labels":
        assert scores.pop("confusion") == summary["metrics"]["test_confusion"]
        assert scores.pop("classes") == summary["classes"] == ["cheap", "dear", "fair"]
    ends = scores.pop("intervals")
    assert all(low <= scores[score] <= high for score, (low, high) in ends.items() if score != "ece")
    for score, value in scores.items():
        assert value == pytest.approx(summary["metrics"][f"test_{score}"], rel=1e-5)
    words = credo("evaluate", out, tables / f"{name}.csv").stdout
    assert "log likelihood" in words
    assert "60 rows" in words


def test_two_classes_are_told_what_people_need(credo, tables, tmp_path):
    frame = regression_frame()
    frame["dear"] = np.where(frame["price"] > frame["price"].quantile(0.8), "yes", "no")
    frame.drop(columns="price").to_csv(tmp_path / "dear.csv", index=False)
    out = tmp_path / "run"
    told = credo("fit", tmp_path / "dear.csv", "--target", "dear", "--method", "map", "--steps", "50", "--out", out,
                 "--holdout", "0.4", "--verbose").stdout  # fmt: skip
    for words in ("majority class", "ROC", "recall", "precision", "lift", "are those of 'yes'", "true \\ named"):
        assert words in told, words
    metrics = json.loads((out / "metrics.json").read_text())
    table = np.array(metrics["test_confusion"])
    assert table.sum() == 24
    assert metrics["test_accuracy"] == pytest.approx(np.trace(table) / 24)
    assert metrics["test_majority_accuracy"] == pytest.approx(table.sum(1).max() / 24)


def test_load_gives_the_same_fit(runs):
    import jax

    opened = open_run(runs["houses"][0])
    fit = library.load(runs["houses"][0])
    inputs = opened.heldout["inputs"]
    one, two = (library.predict(jax.random.key(3), f, inputs).mean for f in (opened.fit, fit))
    assert np.array_equal(one, two)
    assert opened.table["target"] == ["price"]
    assert "test_rmse" in opened.metrics


def test_data_on_stdout_and_messages_on_stderr(credo, tables, tmp_path):
    result = credo("fit", tables / "houses.csv", "--target", "price", *QUICK, "--out", tmp_path / "run", "--verbose")
    assert "Run: " in result.stdout
    assert "RMSE" in result.stdout
    assert "so this is regression" in result.stderr
    again = credo("fit", tables / "houses.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    assert again.exit_code == 0  # a finished run is replaced


@pytest.mark.full
def test_settings_several_targets_weights_and_groups(credo, tables, tmp_path):
    out = tmp_path / "run"
    options = ("--set", "prior=normal:0.5", "--set", "learning_rate=0.02", "--set", "likelihood=heteroscedastic")
    result = credo(
        "fit", tables / "houses.csv", "--target", "price", "--target", "size", *QUICK, *options, "--weights", "weight",
        "--split-by", "town", "--holdout", "0.4", "--seed", "3", "--batch-size", "16", "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    opened = open_run(out)
    assert opened.fit.model.prior.scale == 0.5
    assert type(opened.fit.model.likelihood).__name__ == "Heteroscedastic"
    assert opened.fit.config["batch_size"] == 16
    assert not any(name.startswith(("town", "weight")) for name in opened.encoder.feature_names)
    held = regression_frame()["town"].iloc[opened.heldout["rows"]]
    train = regression_frame()["town"].drop(opened.heldout["rows"])
    assert not set(held) & set(train)
    found = predictions(credo, out, tables / "houses.csv")
    assert list(found)[:6] == [
        f"price_{name}" for name in ("mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper")
    ]
    assert list(found)[6] == "size_mean"
    assert abs(found["price_mean"].mean() - 3300) < 1500
    assert abs(found["size_mean"].mean() - 50) < 20


def test_time_holds_out_the_latest(credo, tables, tmp_path):
    result = credo(
        "fit", tables / "houses.csv", "--target", "price", *QUICK, "--time", "sold", "--out", tmp_path / "run"
    )
    assert result.exit_code == 0, result.stderr
    assert open_run(tmp_path / "run").heldout["rows"].tolist() == list(range(54, 60))


def test_missing_cells(credo, tmp_path):
    frame = regression_frame()
    frame.loc[[3, 7, 50], "size"] = np.nan
    frame.loc[[9], "price"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    common = ("fit", tmp_path / "gaps.csv", "--target", "price", *QUICK)
    refused = credo(*common, "--missing", "error", "--out", tmp_path / "a")
    assert refused.exit_code == 2
    assert "--missing" in refused.stderr
    dropped = credo(*common, "--missing", "drop", "--out", tmp_path / "drop")
    assert dropped.exit_code == 0, dropped.stderr
    found = predictions(credo, tmp_path / "drop", tmp_path / "gaps.csv")
    assert len(found) == 60
    assert found["mean"].isna().to_numpy().nonzero()[0].tolist() == [3, 7, 50]
    usual = credo(*common, "--out", tmp_path / "usual")
    assert usual.exit_code == 0, usual.stderr
    assert "Left out: 1 of 60 rows (no 'price')." in usual.stdout
    assert predictions(credo, tmp_path / "usual", tmp_path / "gaps.csv").notna().all(axis=None)
    frame.loc[[9], "price"] = 3000.0
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    filled = credo(*common, "--missing", "impute", "--out", tmp_path / "impute")
    assert filled.exit_code == 0, filled.stderr
    assert "size:missing" in open_run(tmp_path / "impute").encoder.feature_names
    assert predictions(credo, tmp_path / "impute", tmp_path / "gaps.csv").notna().all(axis=None)


@pytest.mark.full
def test_binary_counts_and_no_holdout(credo, tmp_path):
    frame = class_frame()
    frame["garden"].to_frame().assign(size=frame["size"]).to_csv(tmp_path / "binary.csv", index=False)
    binary = credo("fit", tmp_path / "binary.csv", "--target", "garden", *QUICK, "--out", tmp_path / "binary")
    assert binary.exit_code == 0, binary.stderr
    found = predictions(credo, tmp_path / "binary", tmp_path / "binary.csv")
    assert list(found)[:3] == ["label", "p_False", "p_True"]
    frame[["size", "rooms"]].to_csv(tmp_path / "count.csv", index=False)
    result = credo(
        "fit", tmp_path / "count.csv", "--target", "rooms", "--task", "count", *QUICK, "--holdout", "0", "--out",
        tmp_path / "count", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    metrics = json.loads(result.stdout)["metrics"]
    assert metrics["test_rows"] == 0
    assert not any(name.startswith("test_log") for name in metrics)
    assert "mean" in predictions(credo, tmp_path / "count", tmp_path / "count.csv")


def test_the_same_seed_gives_the_same_run(credo, tables, tmp_path):
    for name in ("a", "b"):
        credo("fit", tables / "labels.csv", "--target", "price", *QUICK, "--seed", "5", "--out", tmp_path / name)
    for file in ("posterior.safetensors", "trace.safetensors", "heldout.safetensors", "encoder.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_fitting_again_keeps_what_is_the_users(credo, tables, tmp_path):
    how = ("fit", tables / "houses.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    assert "Removed" not in credo(*how).stderr
    (tmp_path / "run" / "report.html").write_text("about the first fit")
    (tmp_path / "run" / "predictions.csv").write_text("mine")
    again = credo(*how, "--seed", "1")
    assert again.exit_code == 0, again.stderr
    assert "the fit that was here before: report.html." in again.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES | {"predictions.csv"}


def test_report(credo, runs, tmp_path):
    result = credo("report", runs["houses"][0], runs["labels"][0], "--out", tmp_path / "both.html")
    assert result.exit_code == 0, result.stderr
    assert "<html" in (tmp_path / "both.html").read_text()


def test_demo(credo, tmp_path):
    with little_work():
        result = credo("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.stderr
    assert {"run", "predictions.csv", "report.html"} <= {path.name for path in (tmp_path / "demo").iterdir()}
    assert "Next:" in result.stdout
    assert len(pd.read_csv(tmp_path / "demo" / "predictions.csv")) == 442


def test_alarms_of_chains_are_said_once(credo, tables, tmp_path, monkeypatch):
    """The status has the sentence: a Python warning of the same would be its second."""
    warned = []
    monkeypatch.setattr(warn.warnings, "warn", lambda text, *_, **__: warned.append(str(text)))
    token = warn._SILENT.set(False)
    settings = [f"--set={s}" for s in ("chains=2", "warmup=0", "step_size=0.001", "num_steps=2")]
    fixed = ("--method", "hmc", "--network", "mlp:3", "--steps", "8", "--out", tmp_path / "run")
    result = credo("fit", tables / "houses.csv", "--target", "price", *fixed, *settings, "--verbose")
    warn._SILENT.reset(token)
    assert (result.stdout + result.stderr).count("The chains have not converged") == 1
    assert not [text for text in warned if "converged" in text]
