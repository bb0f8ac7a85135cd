"""Same folds, same rows, honest intervals; and a comparison that was stopped goes on."""

import json

import numpy as np
import pandas as pd
import pytest

import credo
from credo.comparison import run
from credo.comparison.plan import find_folds, find_models
from credo.comparison.result import summarised
from credo.errors import ArtifactError, InputError
from credo.report.comparison import comparison_page, rows_of


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 2))
    y = 2 * x[:, 0] + 0.3 * rng.normal(size=90)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "group": np.arange(90) % 9, "y": y})


@pytest.fixture(scope="module")
def found(frame):
    return credo.compare(
        frame.drop(columns="group"), "y", methods="map,laplace", baselines=["linear"], folds=3, steps=200
    )


def test_every_row_is_scored_once_on_a_fit_that_has_not_seen_it(frame, found):
    assert found.rows == 90
    assert all(len(rows["log_likelihood"]) == 90 for rows in found.rowwise.values())
    folds = find_folds(frame, "y", "regression", 3, 0, None)
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(90))
    assert all(not set(train) & set(held) for train, held in folds)


def test_scores_are_those_of_a_fold_by_hand(frame):
    from credo.baselines import fit_baseline
    from credo.data.encoder import TableEncoder

    table = frame.drop(columns="group")
    own = credo.compare(table, "y", methods=["linear", "gp"], baselines=False, folds=3)
    logs = np.zeros(90)
    for train, held in find_folds(table, "y", "regression", 3, 0, None):
        encoder = TableEncoder.learn(table.iloc[train], "y", "regression")
        given, new = (encoder.arrays(table.iloc[rows]) for rows in (train, held))
        predictive = fit_baseline("linear", "regression", given.inputs, given.targets).predict(new.inputs)
        truth = table["y"].to_numpy()[held]
        logs[held] = predictive.rescaled(encoder.target_shift, encoder.target_scale).log_prob(truth)
    assert np.allclose(own.rowwise["linear"]["log_likelihood"], logs, atol=1e-4)


def test_a_line_wins_on_a_line_and_intervals_hold_the_gap(found):
    assert found.table[0]["log_likelihood"] == max(row["log_likelihood"] for row in found.table)
    line = next(row for row in found.table if row["model"] == "linear")
    assert abs(line["log_likelihood"] - (-0.5 * np.log(2 * np.pi * 0.09) - 0.5)) < 0.25
    for row in found.table[1:]:
        assert row["behind_low"] <= row["behind"] <= row["behind_high"]
        assert np.isclose(row["behind"], found.table[0]["log_likelihood"] - row["log_likelihood"])
    assert next(row for row in found.table if row["model"] == "laplace")["evidence"] is not None
    assert "model" not in found.to_pandas().columns


def test_leave_one_out_and_evidence_are_on_the_scale_of_the_table(frame):
    """A target in other units changes every log density by the logarithm of the units."""
    table, rows = frame.drop(columns="group"), []
    for units in (1, 1000):
        found = credo.compare(
            table.assign(y=units * table["y"]), "y", methods="laplace", baselines="linear", folds=2, network="mlp:"
        )
        rows.append(next(row for row in found.table if row["model"] == "laplace"))
    for name in ("loo", "evidence", "log_likelihood"):
        assert abs(rows[0][name] - rows[1][name] - np.log(1000)) < 1e-2


def test_the_interval_of_a_gap_covers_its_truth():
    # 200 pairs of models with a gap of 0.1 over 200 rows: 90 % intervals hold it 180 times, with a standard deviation
    # of 4.2; below 160 with a probability of 10⁻⁵.
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(200):
        base = rng.normal(size=200)
        cells = {
            name: [{"rows": {"log_likelihood": values, "place": np.arange(200)}, "seconds": 1.0, "ok": True}]
            for name, values in {"a": base, "b": base - 0.1 + 0.5 * rng.normal(size=200)}.items()
        }
        table, _ = summarised(cells, 0.9, trial)
        low, high = table[1]["behind_low"], table[1]["behind_high"]
        held += low <= (0.1 if table[0]["model"] == "a" else -0.1) <= high
    assert held >= 160


def test_it_goes_on_where_it_was_stopped(frame, tmp_path, monkeypatch):
    table, calls = frame.drop(columns="group"), []
    how = {"methods": ["linear", "gp"], "baselines": False, "folds": 2, "folder": tmp_path / "cmp"}

    def stop(model, fold, cell):
        calls.append((model, fold))
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        credo.compare(table, "y", **how, callback=stop)
    again = credo.compare(table, "y", **how, callback=lambda *a: calls.append(a[:2]))
    assert sorted(calls) == [("gp", 0), ("gp", 1), ("linear", 0), ("linear", 1)]
    whole = credo.compare(table, "y", **(how | {"folder": None}))
    for name in ("linear", "gp"):
        assert np.allclose(again.rowwise[name]["log_likelihood"], whole.rowwise[name]["log_likelihood"])
    with pytest.raises(InputError, match="another comparison"):
        credo.compare(table, "y", **(how | {"seed": 1}))
    cell = tmp_path / "cmp" / "cells" / "linear-0.npz"
    cell.write_bytes(b"torn")
    with pytest.raises(ArtifactError, match="remove it"):
        credo.compare(table, "y", **how)


def test_a_refusal_is_a_sentence_and_the_others_run(frame):
    table = frame.drop(columns="group").assign(y=frame["y"] > 0)
    found = credo.compare(table, "y", methods=["linear", "gp"], baselines=False, folds=2)
    assert [row["model"] for row in found.table] == ["linear"]
    assert "normal noise" in found.refused["gp"]
    assert any("gp was not run" in sentence for sentence in found.sentences())
    assert "accuracy" in found.table[0]


def test_groups_stay_whole_and_are_no_input(frame):
    folds = find_folds(frame, "y", "regression", 3, 0, "group")
    for train, held in folds:
        assert not set(frame["group"].iloc[train]) & set(frame["group"].iloc[held])
    plan = run.Plan(frame, "y", ["linear", "forest"], False, "auto", "error", 3, 0, None, None, None, None, "group")
    assert "group" not in plan.frame.columns


def test_wrong_input_is_a_sentence(frame):
    with pytest.raises(InputError, match="Did you mean 'laplace'"):
        find_models("laplce", False)
    with pytest.raises(InputError, match="two models"):
        find_models("map", False)
    with pytest.raises(InputError, match="Folds"):
        credo.compare(frame, "y", folds=1)
    with pytest.raises(InputError, match="not both"):
        credo.compare(frame, "y", steps=3, budget="3s")


def test_the_page_shows_every_model(found):
    head, body = rows_of(found)
    assert len(head) == len(body[0])
    text = comparison_page(found, "table.csv")
    assert all(row["model"] in text for row in found.table)
    assert text.count("<svg") == 1


def test_jobs_side_by_side_give_the_same(frame):
    table = frame.drop(columns="group")
    how = {"methods": ["linear", "gp"], "baselines": False, "folds": 2}
    one, two = credo.compare(table, "y", **how), credo.compare(table, "y", **how, jobs=2)
    assert json.dumps([r["log_likelihood"] for r in one.table]) == json.dumps([r["log_likelihood"] for r in two.table])
