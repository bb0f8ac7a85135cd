"""A run on a table whose fit is a stack: everything that follows from a run follows from it, too."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import credo
from credo.cli.main import app
from credo.errors import Refusal
from credo.report import run_data

RNG = np.random.default_rng(0)
ROWS = 90
X = RNG.normal(size=ROWS)
TOWN = RNG.choice(["Bath", "Hull", "York"], ROWS)
FRAME = pd.DataFrame({"x": X, "z": RNG.normal(size=ROWS), "town": TOWN})
PRICE = FRAME.assign(price=100 + 10 * np.sin(X) + 3 * (TOWN == "Hull") + RNG.normal(size=ROWS))
SOLD = FRAME.assign(sold=np.where(X + 0.7 * RNG.normal(size=ROWS) > 0, "yes", "no"))
ENSEMBLE = {"method": "deep_ensemble", "network": "mlp:5", "steps": 60}


def stacked_run(frame, target, words, weights):
    """The run of the first words with the stack of all fits in place of its own."""
    runs = [credo.tables.fit(frame, target, seed=3, holdout=0.3, **own) for own in words]
    return dataclasses.replace(runs[0], fit=credo.stacked([run.fit for run in runs], weights)), runs


@pytest.fixture(scope="module")
def prices():
    linear = {"method": "map", "network": "mlp:", "steps": 60, "settings": {"likelihood": "gaussian"}}
    noisy = ENSEMBLE | {"settings": {"size": 3, "likelihood": "heteroscedastic_t"}}
    return stacked_run(PRICE, "price", [linear, noisy, {"method": "infinite_width"}], [0.2, 0.5, 0.3])


@pytest.fixture(scope="module")
def sales():
    ensemble = ENSEMBLE | {"settings": {"size": 3}}
    return stacked_run(SOLD, "sold", [{"method": "laplace", "network": "mlp:5", "steps": 60}, ensemble], [0.5, 0.5])


def test_predictions_and_scores_lie_between_those_of_the_parts(prices):
    run, runs = prices
    means = np.stack([part.predict(PRICE)["mean"] for part in runs])
    mean = run.predict(PRICE)["mean"].to_numpy()
    assert (mean >= means.min(0) - 0.3).all()
    assert (mean <= means.max(0) + 0.3).all()
    scores = run.score(PRICE)
    assert np.isfinite([scores[name] for name in ("rmse", "crps")]).all()
    far = FRAME.head(5).assign(town="Leeds")  # a category that training did not have
    assert np.isfinite(run.predict(far).to_numpy(float)).all()


@pytest.mark.parametrize("which", ["prices", pytest.param("sales", marks=pytest.mark.full)])
def test_saved_and_loaded_runs_say_the_same(which, request, tmp_path):
    run, _ = request.getfixturevalue(which)
    saved = run.save(tmp_path / "run")
    loaded = credo.tables.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(FRAME), run.predict(FRAME))
    assert loaded.fit.summary() == run.fit.summary()
    page = saved.report()
    assert "stacked" in page.read_text(encoding="utf-8")
    assert "stacked" in run_data(loaded).fit.config["method"]


def test_effects_of_a_stack(prices, sales):
    """Curves are the weighted mean of those of the parts, up to the draws that a process gives."""
    for (run, runs), weights in ((prices, (0.2, 0.5, 0.3)), (sales, (0.5, 0.5))):
        found, parts = run.effects(), [part.effects() for part in runs]
        mean = sum(w * np.asarray(p.curves["x"].mean) for w, p in zip(weights, parts))
        size = np.ptp(mean)
        np.testing.assert_allclose(np.asarray(found.curves["x"].mean), mean, atol=0.05 * size)
        assert sorted(found.order) == ["town", "x", "z"]


def test_decisions_suggestions_and_detection(prices, sales):
    run, _ = prices
    stock = run.decide(FRAME, credo.applications.decisions.newsvendor(3.0, 1.0)).amounts
    low, high = (run.predictive(FRAME).quantile(level) for level in (0.7, 0.8))
    assert ((stock >= low - 0.1) & (stock <= high + 0.1)).all()
    assert len(run.suggest(FRAME, 4)) == 4
    assert set(run.detect(FRAME, score="variance")) >= {"score", "flagged"}
    run, _ = sales
    worth = pd.DataFrame({"action": ["visit", "stay"], "no": [-1.0, 0.0], "yes": [3.0, 0.0]})
    chosen = run.decide(FRAME, worth)
    share = run.predict(FRAME)["p_yes"].to_numpy()
    sure = np.abs(share - 0.25) > 1e-3
    np.testing.assert_array_equal((np.asarray(chosen.action) == "visit")[sure], (share > 0.25)[sure])
    assert len(run.suggest(FRAME, 4, acquisition="bald")) == 4
    assert np.isfinite(run.detect(FRAME)["score"]).all()


def test_exports_of_a_run(prices, sales, tmp_path):
    run, _ = sales
    found = credo.load_exported(run.export(tmp_path / "sales")).predict(FRAME)
    np.testing.assert_allclose(found.probs[:, 1], run.predict(FRAME)["p_yes"], atol=1e-5)
    with pytest.raises(Refusal, match="The part infinite_width of this stack cannot be exported"):
        prices[0].export(tmp_path / "prices")


def test_commands_on_a_stacked_run(sales, tmp_path):
    """What a person asks of a run on the command line."""
    run, _ = sales
    run.save(tmp_path / "run")
    SOLD.to_csv(tmp_path / "new.csv", index=False)
    commands = [
        ["predict", tmp_path / "run", tmp_path / "new.csv", "--out", tmp_path / "p.csv"],
        ["evaluate", tmp_path / "run", tmp_path / "new.csv"], ["effects", tmp_path / "run"],
        ["report", tmp_path / "run"], ["detect", tmp_path / "run", "--suspect", tmp_path / "new.csv"],
        ["suggest", tmp_path / "run", tmp_path / "new.csv", "--rows", "3"],
    ]  # fmt: skip
    for words in commands:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, (words, result.stderr)


def test_model_choice_asks_the_parts(prices):
    run, _ = prices
    inputs, targets = run.inputs(), run.heldout["targets"]
    with pytest.raises(Refusal, match="a stack has several: ask each of the fits"):
        credo.diagnostics.loo(run.fit, (inputs, targets))


def test_weights_from_held_out_rows(prices):
    """The best mixture of what the parts say of rows that none of them has seen is no worse than any of them,
    up to the draws that a process gives."""
    run, runs = prices
    key, inputs, targets = jax.random.key(0), run.inputs(), run.heldout["targets"]
    density = np.stack([credo.predict(key, part.fit, inputs).log_prob(targets) for part in runs])
    weights = credo.diagnostics.best_mixture(density)
    stack = credo.stacked([part.fit for part in runs], weights)
    assert credo.predict(key, stack, inputs).log_prob(targets).mean() >= density.mean(1).max() - 0.05
