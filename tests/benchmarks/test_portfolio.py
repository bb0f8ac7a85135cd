"""`python -m benchmarks portfolio`: sets, processes, scores, ranks and the page, without the peers' environment."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from benchmarks.portfolio import board, page, rivals, run, scores
from benchmarks.portfolio.peers import split as peers_split
from benchmarks.portfolio.sets import GENERATED, SETS, load
from benchmarks.records import Records
from credo.errors import InputError


def test_a_page_and_its_records(benchmark, data_dir, tmp_path, monkeypatch):
    """scikit-learn is here, so its models can stand for the peers."""
    monkeypatch.setitem(rivals.CREDO, "auto", {"method": "map", "steps": 30})
    command = ("portfolio", "--data-dir", data_dir, "--sets", "yacht,iris", "--models", "auto,forest,gp")
    command += ("--splits", "0", "--peers", sys.executable, "--out", tmp_path)
    done = benchmark(*command)
    assert done.exit_code == 0, done.output
    found = {(r["set"], r["model"]): r for r in Records(tmp_path / "records").all("portfolio")}
    assert len(found) == 6
    assert found["iris", "gp"]["refused"] == "gp is not run on classification"
    for place in (("yacht", "auto"), ("yacht", "forest"), ("yacht", "gp"), ("iris", "auto"), ("iris", "forest")):
        record = found[place]
        assert record["refused"] is None, record["refused"]
        assert np.isfinite(record["log_likelihood"])
        assert 0 < record["work"] < record["seconds"]
        assert record["peak_mb"] > 50
    assert found["iris", "forest"]["test_rows"] == 30
    assert found["iris", "forest"]["accuracy"] > 0.8
    text = (tmp_path / "portfolio.md").read_text(encoding="utf-8")
    assert "## Numbers" in text
    assert "## Classes" in text
    assert "`auto` against the best rival" in text
    assert str(data_dir) not in text
    assert (tmp_path / "portfolio.png").stat().st_size > 5_000
    monkeypatch.setattr(run, "cell", None)  # everything is on record
    assert benchmark(*command).exit_code == 0
    assert (tmp_path / "portfolio.md").read_text(encoding="utf-8") == text


def test_without_an_interpreter_rivals_are_skipped(benchmark, data_dir, tmp_path):
    command = ("portfolio", "--data-dir", data_dir, "--sets", "yacht", "--models", "gp", "--out", tmp_path)
    done = benchmark(*command)
    assert done.exit_code == 0
    assert "Rivals are skipped" in done.stderr
    assert not (tmp_path / "portfolio.md").exists()


def test_what_fails_is_a_sentence_on_record(data_dir, monkeypatch):
    data = load("yacht", data_dir)
    found = run.cell("tabm", data, 0, sys.executable, 60.0)  # pytabkit is not in this environment
    assert found["refused"].startswith("tabm failed: ModuleNotFoundError")
    late = run.cell("forest", data, 0, sys.executable, 0.01)
    assert late["refused"] == "forest took longer than it may"
    assert not run._done(late, 1.0)  # with more time it is tried again
    assert run._done(late, 0.01)
    assert run._done(found, 60.0)
    monkeypatch.setattr(run, "_process", lambda *_: (0.0, ""))
    assert run.cell("forest", data, 0, sys.executable, 60.0) is None


@pytest.mark.parametrize("name", [name for name in GENERATED if name not in ("large", "genes")])
def test_made_sets_are_cut_without_overlap(name):
    data = load(name, None)
    assert len(data.splits) == (2 if len(data.frame) > 10_000 else 5)
    for train, new in data.splits:
        assert sorted([*train, *new]) == list(range(len(data.frame)))
    first = np.random.default_rng(0).permutation(len(data.frame))
    assert (data.splits[0][0] == first[: len(data.splits[0][0])]).all()
    assert load(name, None).frame.equals(data.frame)  # seeded


def test_a_fifth_of_the_cells_is_missing_and_levels_are_many():
    for name in ("missing_random", "missing_told"):
        inputs = load(name, None).frame.drop(columns="y")
        assert inputs.isna().mean().mean() == pytest.approx(0.2, abs=0.01)
    told = load("missing_told", None).frame[[f"x{i}" for i in range(8)]]
    kept = (1 / 2 - 0.4 / 3) / 0.8  # the mean of those that are there: large numbers are missing more often
    assert abs(np.nanmean(told) - kept) < 5 * 0.27 / (0.8 * told.size) ** 0.5  # false alarms: 6e-7
    many = load("categories_300", None).frame
    assert many["shop"].nunique() <= 300
    assert many["y"].std() > 1


def test_a_set_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="--data-dir"):
        load("airfoil", tmp_path)
    with pytest.raises(InputError, match="--data-dir"):
        load("glass", None)


def test_published_splits_are_kept(data_dir):
    with np.load(data_dir / "uci_regression" / "yacht.npz") as file:
        data = load("yacht", data_dir)
        assert (data.splits[1][1] == file["test_idx"][1]).all()
        assert np.allclose(data.frame["y"], file["y"])


def test_normal_scores_are_those_of_scipy():
    rng = np.random.default_rng(0)
    mean, std, y = 1000 + rng.normal(size=50), rng.uniform(0.01, 0.1, 50), 1000 + rng.normal(size=50)
    mean = y + std * rng.normal(size=50)
    rows = scores.of_normals(mean, std, y, y)
    assert np.allclose(rows["log_likelihood"], scipy.stats.norm.logpdf(y, mean, std), atol=2e-2)
    z = (y - mean) / std
    exact = std * (z * (2 * scipy.stats.norm.cdf(z) - 1) + 2 * scipy.stats.norm.pdf(z) - np.pi**-0.5)
    assert np.allclose(rows["crps"], exact, rtol=2e-2, atol=1e-4)
    assert np.array_equal(rows["coverage_90"] == 1, np.abs(z) < scipy.stats.norm.ppf(0.95))


def small_split(task="regression"):
    rng = np.random.default_rng(1)
    x = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v", "w"], 40)})
    x.loc[3, "a"] = np.nan
    y = rng.normal(size=40) if task == "regression" else np.array([0] * 19 + [1] * 20 + [2])
    return peers_split.Split(x, y, x.head(5).assign(b="new"), task, 0)


def test_what_rivals_see():
    given = small_split()
    x, new = peers_split.numbers(given)
    assert x.shape == (40, 5)  # the number, whether it is missing, three levels
    assert np.isfinite(x).all()
    assert (new[:, 2:] == 0).all()  # a level that training has not
    assert (peers_split.numbers(given, codes=True)[1][:, 2] == -1).all()
    levels, new_levels = peers_split.with_levels(given)
    assert list(levels["b"].cat.categories) == ["u", "v", "w"]
    assert new_levels["b"].isna().all()
    for task in ("regression", "classification"):
        one = small_split(task)
        rows, held = peers_split.halves(one)
        assert sorted([*rows, *held]) == list(range(40))
        assert len(held) == 4
    assert 2 in one.y[rows]  # a class of one row is never held out


def made(name, model, split, value, **more):
    record = {
        "set": name, "model": model, "split": split, "task": "regression", "refused": None, "log_likelihood": value,
        "crps": -value, "rmse": -value, "coverage_90": 0.9, "test_rows": 100, "seconds": 2.0, "rows": 100,
        "columns": 3, "fingerprint": f"{model}{split}", "machine": "here",
    }  # fmt: skip
    return record | more


def test_ranks_are_those_of_models_that_ran():
    found = [
        made(name, model, split, value + 0.1 * split)
        for name in ("yacht", "boston", "energy", "concrete")
        for model, value in (("auto", -1.0), ("lightgbm", -2.0), ("catboost", -1.5))
        for split in range(3)
    ]
    found += [made("yacht", "gp", split, -0.5) for split in range(2)]
    one = board.gather(found, "regression")
    assert board.ranks(one, "log_likelihood")["yacht"] == {"auto": 2, "lightgbm": 4, "catboost": 3, "gp": 1}
    assert board.ranks(one, "rmse")["boston"] == {"auto": 1, "lightgbm": 3, "catboost": 2}
    assert len(board.values(one["yacht"], "crps")["auto"]) == 2  # the splits that all have
    test = board.compared(one, "log_likelihood")
    assert (test.sets, set(test.ranks)) == (4, {"auto", "lightgbm", "catboost"})
    assert test.critical == pytest.approx(2.343 * (3 * 4 / 24) ** 0.5, abs=0.01)  # Demšar's table: q = 2.343
    gaps = board.gaps(one, "auto")
    assert gaps["boston"].rival == "catboost"
    assert gaps["boston"].mean == pytest.approx(0.5)
    assert gaps["boston"].half == pytest.approx(0, abs=1e-9)
    assert gaps["yacht"].rival == "gp"
    assert board.seconds([one])["auto"][0] == (2.0, 1.0)
    text = page.markdown(found, "command")
    assert "`auto` is ahead of the best rival of a set, chosen afterwards, on 3 of 4 sets" in text


def test_coverage_is_held_to_its_bound():
    found = [made("yacht", "auto", s, 0.0, coverage_90=0.80, test_rows=150) for s in range(2)]
    (one,) = board.coverage(board.gather(found, "regression"), "auto").values()
    assert (one.rows, one.within_bound) == (300, False)
    assert one.bound == pytest.approx(0.02 + 2.6 * (0.09 / 300) ** 0.5)
    assert board.Coverage(0.84, 300).within_bound


def test_every_set_and_model_has_a_name_of_its_own():
    assert len(SETS) == 49
    assert set(rivals.RIVALS) & set(rivals.CREDO) == set()
    with pytest.raises(KeyError):
        rivals.credo_options("forest")
