"""Same folds, same rows, honest intervals; and a comparison that was stopped goes on."""

import html
import json
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import ArtifactError, InputError, Refusal
from credo.evaluation.comparison import cell, run
from credo.evaluation.comparison.plan import find_folds, find_models
from credo.evaluation.comparison.result import Comparison, rank_models
from credo.evaluation.diagnostics.alarms import Alarm
from credo.report.comparison import comparison_page, rows_of
from credo.tables.auto import Choice
from credo.training import fit as training
from fake_clock import FakeClock


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
    from credo.evaluation.baselines import fit_baseline
    from credo.tables.encode.encoder import TableEncoder

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
        table, _ = rank_models(cells, 0.9, trial)
        low, high = table[1]["behind_low"], table[1]["behind_high"]
        held += low <= (0.1 if table[0]["model"] == "a" else -0.1) <= high
    assert held >= 160


def told(values, places=None):
    """The only cell of a model, with these log-likelihoods."""
    rows = {"log_likelihood": np.asarray(values), "place": np.arange(len(values)) if places is None else places}
    return [{"rows": rows, "seconds": 1.0, "ok": True}]


def test_the_interval_of_a_gap_between_groups_covers_its_truth():
    # 200 pairs of models whose gap, 0.1, differs from group to group: 40 groups of 10 rows. 90 % intervals over groups
    # hold it about 177 times, with a standard deviation of 4.5, below 160 with a probability of 10⁻⁴; intervals over
    # rows are a third as wide and hold it about 80 times.
    rng, held = np.random.default_rng(0), 0
    for trial in range(200):
        groups = rng.permutation(np.repeat(np.arange(40), 10))
        gap = 0.1 + rng.normal(size=40)[groups] + 0.1 * rng.normal(size=400)
        table, _ = rank_models({"a": told(np.zeros(400)), "b": told(-gap)}, 0.9, trial, groups)
        low, high = table[1]["behind_low"], table[1]["behind_high"]
        held += low <= (0.1 if table[0]["model"] == "a" else -0.1) <= high
    assert held >= 160


def test_groups_are_those_of_the_rows_that_were_scored():
    groups, places = np.array([7, 7, 3, 3, 5, 5]), np.array([4, 1, 0, 5])
    table, _ = rank_models({"a": told(np.zeros(4), places), "b": told([-1.0, -3, -3, -1], places)}, 0.9, 0, groups)
    assert (table[1]["behind_low"], table[1]["behind_high"]) == (1.0, 3.0)  # all of group 5, all of group 7


def test_a_score_that_is_not_finite_has_a_sentence():
    values = {
        "a": np.zeros(9),
        "b": np.r_[np.nan, np.zeros(8)],
        "c": np.full(9, -1.0),
        "d": np.r_[-np.inf, np.zeros(8)],
    }
    table, rowwise = rank_models({name: told(own) for name, own in values.items()}, 0.9, 0)
    found = Comparison(table, {}, 0.9, "regression", "y", 9, 1, [], rowwise)
    assert found.best == "a"
    assert "Clearly behind: c." in found.sentences()
    (said,) = [s for s in found.sentences() if "finite" in s]
    assert said.endswith("probability: b, d.")
    assert [line[2] for line in rows_of(found)[1]][2:] == ["–", "–"]
    assert said in comparison_page(found, "table.csv")
    table, rowwise = rank_models({name: told(values[name]) for name in "bd"}, 0.9, 0)
    assert not any("largest" in s for s in Comparison(table, {}, 0.9, "", "y", 9, 1, [], rowwise).sentences())


def test_rows_are_those_that_were_scored(frame):
    table = frame.drop(columns="group")
    table.loc[:19, "a"] = np.nan
    found = credo.compare(table, "y", methods=["linear", "gp"], baselines=False, folds=3, missing="drop")
    assert found.rows == 70
    assert "means over all 70 rows" in comparison_page(found, "table.csv")


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
    with pytest.raises(InputError, match=r"other settings \(seed, table\)"):
        credo.compare(table, "y", **(how | {"seed": 1}))
    cell = tmp_path / "cmp" / "cells" / "linear-0.record"
    for torn in (b"torn", cell.read_bytes()[:-40], b""):
        cell.write_bytes(torn)
        calls.clear()
        mended = credo.compare(table, "y", **how, callback=lambda *a: calls.append(a[:2]))
        assert calls == [("linear", 0)]
        assert any("damaged" in note and "linear" in note for note in mended.notes)
        assert np.allclose(mended.rowwise["linear"]["log_likelihood"], whole.rowwise["linear"]["log_likelihood"])
    (tmp_path / "cmp" / "comparison.json").write_bytes(b"{")
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


def test_groups_reach_the_folds_and_the_intervals(frame, monkeypatch):
    seen = []

    def stack(case, parts, words, budget, seed, groups, *_):
        seen.append((len(case.data[1]), len(set(groups))))
        raise Refusal("enough")

    monkeypatch.setattr("credo.tables.auto.resolution._stack", stack)
    how = {"methods": ["auto", "linear", "gp"], "baselines": False, "folds": 3}
    whole = credo.compare(frame, "y", **how, split_by="group")
    assert seen == [(60, 6)] * 3
    assert "bootstrap over whole groups of 'group'" in html.unescape(comparison_page(whole, "table.csv"))


def test_groups_reach_the_baselines(frame, monkeypatch):
    seen = []

    def fit_baseline(name, task, x, y, *, num_classes, seed, groups):
        seen.append((len(y), None if groups is None else len(set(groups))))
        raise Refusal("enough")

    monkeypatch.setattr(cell, "fit_baseline", fit_baseline)
    how = {"methods": ["linear", "gp"], "baselines": False, "folds": 3}
    credo.compare(frame, "y", **how, split_by="group")
    credo.compare(frame, "y", **how)
    assert seen == [(60, 6)] * 6 + [(60, None)] * 6


def test_alarms_are_counted_and_told(frame, monkeypatch, tmp_path):
    fit, folds = training.fit, iter([31, 30])

    def alarmed(*args, **how):
        made = fit(*args, **how)
        found = Alarm("divergences", f"{next(folds)} of 40 transitions diverged", "lower step_size")
        made.known = SimpleNamespace(alarms=[found])
        return made

    monkeypatch.setattr(training, "fit", alarmed)
    table = frame.drop(columns="group")
    how = {"methods": "map", "baselines": "linear", "folds": 2, "steps": 20, "folder": tmp_path / "cells"}
    for _ in range(2):  # from fits, then from files
        found = credo.compare(table, "y", **how)
        row = next(row for row in found.table if row["model"] == "map")
        assert row["failed"] == 2
        assert "map *" in [line[0] for line in rows_of(found)[1]]
        (said,) = found.warnings()
        assert said == "* map has an alarm in 2 of 2 folds: 31 of 40 transitions diverged; lower step_size."
        assert said in comparison_page(found, "table.csv")
        assert said in str(found)
        assert found.to_pandas()["alarms"].to_dict() == {"map": "divergences", "linear": ""}


def test_a_fit_that_failed_says_so():
    status = SimpleNamespace(ok=False, __str__=None)
    assert list(cell.alarms_of(SimpleNamespace(status=status))) == ["failed"]


@pytest.mark.full
def test_chains_that_diverge_have_a_star(frame):
    found = credo.compare(
        frame.drop(columns="group"), "y", methods="hmc", baselines="linear", folds=2, steps=10, settings={"warmup": 5}
    )
    assert next(row for row in found.table if row["model"] == "hmc")["failed"] == 2
    assert "transitions diverged" in " ".join(found.warnings())


def test_a_pilot_comes_out_of_the_budget(frame, monkeypatch):
    budgets = []

    def chosen(*_):
        time.sleep(0.2)
        return Choice("map", "mlp:3", {}, 20, 64, "because")

    def fit(*_, budget, **how):
        budgets.append(budget)
        raise Refusal("enough")

    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    monkeypatch.setattr("credo.tables.auto.resolution._chosen", chosen)
    monkeypatch.setattr(training, "fit", fit)
    how = {"methods": "auto,map", "baselines": False, "folds": 2}
    for budget in (60, 0.1):
        credo.compare(frame.drop(columns="group"), "y", **how, budget=budget)
    auto, others = budgets[::2], budgets[1::2]
    assert others == [60, 60, 0.1, 0.1]
    assert all(50 < left <= 59.8 for left in auto[:2])
    assert all(0 < left < 0.1 for left in auto[2:])


def test_who_took_far_longer_than_the_budget_is_marked(frame, monkeypatch):
    fit = training.fit

    def slow(*args, **how):
        made = fit(*args, **how)
        time.sleep(0.4)
        return made

    monkeypatch.setattr(training, "fit", slow)
    found = credo.compare(frame.drop(columns="group"), "y", methods="map", baselines="linear", folds=2, budget="0.2s")
    row = next(row for row in found.table if row["model"] == "map")
    assert row["over"] == 2
    assert row["seconds_fit"] > 0.6
    assert {line[0].split()[0]: line[-1].endswith(" †") for line in rows_of(found)[1]}["map"]
    (said,) = [s for s in found.warnings() if s.startswith("†")]
    assert "1.5 times the budget of 0.2 s" in said
    assert f"map ({row['seconds_fit']:.1f} s)" in said
    assert said in comparison_page(found, "table.csv")
    again = credo.compare(frame.drop(columns="group"), "y", methods="map", baselines="linear", folds=2, steps=20)
    assert not any(s.startswith("†") for s in again.warnings())


@pytest.mark.parametrize("compiling", [True, False])
def test_compilation_is_no_overrun(compiling, frame, monkeypatch):
    """Half a second more than the fit's own: of compilation it is not counted, of all else it is."""
    fit, clock = training.fit, FakeClock(monkeypatch, tick=0.02)

    def slower(*args, **how):
        made = fit(*args, **how)
        clock.wait(0.5, compiling=compiling)
        return made

    monkeypatch.setattr(training, "fit", slower)
    found = credo.compare(frame.drop(columns="group"), "y", methods="map", baselines="linear", folds=2, budget="0.6s")
    assert next(row for row in found.table if row["model"] == "map")["over"] == (0 if compiling else 2)


def test_where_no_interval_can_be_had_the_gap_is_told_alone():
    table, rowwise = rank_models({"a": told(np.zeros(9)), "b": told(-np.arange(9.0))}, 0.9, 0, intervals=False)
    found = Comparison(table, {}, 0.9, "regression", "y", 9, 1, [], rowwise)
    assert found.sentences()[1:] == ["Whether chance could explain its lead cannot be told: b."]
    assert [line[2] for line in rows_of(found)[1]] == ["–", "4.000"]
    assert len(found.plot().axes[0].collections) == 1  # the marks, and no lines of intervals


def test_wrong_input_is_a_sentence(frame):
    with pytest.raises(InputError, match="Did you mean 'laplace'"):
        find_models("laplce", False)
    assert find_models("all", False)[0] == "auto"
    assert find_models("auto, map", False) == ["auto", "map"]
    with pytest.raises(InputError, match="two models"):
        find_models("map", False)
    with pytest.raises(InputError, match="Folds"):
        credo.compare(frame, "y", folds=1)
    with pytest.raises(InputError, match="A table is a path to a file or a data frame"):
        credo.compare(None, "y")
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
