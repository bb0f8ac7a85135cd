"""`python -m benchmarks tables`: what `credo fit` does with nothing said."""

import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.linear_model import LinearRegression

from benchmarks import front_door, tables
from benchmarks.records import Records
from benchmarks.tables import TABLES
from credo.tables import auto


@pytest.fixture
def quick(monkeypatch):
    def choose(task, *_, **facts):
        options = {"likelihood": "heteroscedastic_t:0.05"} if task == "regression" else {}
        return auto.Choice("map", "mlp:3", options, 30, 16, "map, because this is a test")

    monkeypatch.setattr("credo.tables.auto.choice.choose", choose)
    monkeypatch.setattr(front_door, "FOLDS", 2)
    monkeypatch.setattr(front_door, "BASELINES", ("linear", "forest"))


def test_a_page_and_its_records(benchmark, quick, tmp_path, monkeypatch):
    command = ("tables", "--tables", "small", "--rows", "40", "--out", tmp_path)
    page = benchmark(*command)
    assert page.exit_code == 0, page.output
    text = (tmp_path / "tables.md").read_text()
    assert "map, because this is a test" in text
    assert "| small | 40 |" in text
    assert "of 1 tables" in text
    found = Records(tmp_path / "records").all("tables")
    assert len(found) == 2 * 3
    monkeypatch.setattr(front_door, "cell", None)  # everything is on record
    assert benchmark(*command).exit_code == 0
    shutil.rmtree(tmp_path / "records")  # the page has its numbers beside it
    assert benchmark(*command).exit_code == 0
    assert (tmp_path / "tables.md").read_text() == text
    monkeypatch.setattr("credo.tables.auto.choice.SHARE", 0.1)  # by other rules `auto` has to be measured again
    with pytest.raises(TypeError, match="not callable"):
        benchmark(*command)


def test_intervals_of_counts_are_held_to_what_is_attainable():
    line = {"table": "counts", "rows": 9, "auto": -1.0, "best": -2.0, "taken": ["gp"], "why": "", "machine": ""}
    line |= {
        "error": None,
        "seconds": 1.0,
        "others": {},
        "coverage": 0.957,
        "attainable": tables.attainable("counts", 0.9),
    }
    assert "95.7 % (truth 95.6 %)" in (text := front_door.markdown([line], ""))
    assert "all within 4 points" in text
    assert "not within 4 points of what the true distribution's cover: counts" in front_door.markdown(
        [line | {"coverage": 0.9}], ""
    )


def test_the_best_baseline_is_chosen_without_held_out_rows():
    own = {"rows": 10, "seconds": 1.0, "seed": 0}
    auto_cell = {"model": "auto", "log_likelihood": -9.0, "coverage_90": 9.0, "why": "because", "machine": "here"}
    linear = {"model": "linear", "log_likelihood": -20.0, "validation": -1.0}
    forest = {"model": "forest", "log_likelihood": -5.0, "validation": -2.0}  # better on held-out rows alone
    cells = [{"table": "small", "fold": 0} | own | cell for cell in (auto_cell, linear, forest)]
    gp = {"table": "small", "fold": 0, "model": "gp", "refused": "too many rows"}
    (line,) = front_door.summary([*cells, gp])
    assert line["taken"] == ["linear"]
    assert (line["auto"], line["best"], line["coverage"]) == (-0.9, -2.0, 0.9)
    page = front_door.markdown([line], "python -m benchmarks tables")
    assert "on 1 of 1 tables, and as every single one of them, were the best known beforehand, on 0" in page
    assert front_door.summary([*cells[1:], {"table": "small", "fold": 0, "model": "auto", "refused": "why"}]) == []


def test_records_of_other_studies_in_the_folder_are_not_shown():
    cells = [
        {
            "table": "small", "model": model, "fold": 0, "asked": rows,
            "fingerprint": front_door.mark(model, "regression", 0, 0, rows),
        }
        for model in ("auto", "linear", "boosting") for rows in (None, 200)
    ]  # fmt: skip
    assert [cell["asked"] for cell in front_door.current(cells, 0, 200)] == [200, 200, 200]
    assert front_door.current(cells, 1, None) == []


def test_a_baseline_has_the_scores_of_scikit_learn():
    example = TABLES["small"](0)
    train, held = np.arange(300), np.arange(300, 442)
    found = front_door.fitted("linear", example, train, held, 0)
    x = pd.get_dummies(example.frame.drop(columns="progression")).to_numpy(float)
    y = example.frame["progression"].to_numpy(float)
    model = LinearRegression().fit(x[train], y[train])
    error = y[held] - model.predict(x[held])
    assert found["rows"] == 142
    assert found["squared_error"] / 142 == pytest.approx((error**2).mean(), rel=0.05)
    spread = (y[train] - model.predict(x[train])).std()
    assert found["log_likelihood"] / 142 == pytest.approx(scipy.stats.norm.logpdf(error, 0, spread).mean(), abs=0.05)
