"""Several runs on one page: ranked on the rows that all of them held out."""

import dataclasses
import html
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from credo.evaluation.comparison.result import rank_models
from credo.evaluation.diagnostics.alarms import Alarm
from credo.report import Section, page
from credo.report.compare import LEVEL, comparison, ranking, shared_rows
from credo.report.run import RunData
from credo.report.write import with_distinct_names
from credo.tables.score import predictive_at

from .test_page import check


def part(run: RunData, name: str, rows: np.ndarray, shift: float = 0.0) -> RunData:
    """The run on some of its rows, with predictions that are off by `shift`."""
    predictive = predictive_at(run.fit, run.encoder, run.inputs[rows], num_samples=50)
    predictive = predictive.rescaled(shift, 1.0) if shift else predictive
    numbers = {"row_numbers": rows + 100, "source": "table"}
    return RunData.from_predictions(
        name, run.fit, predictive, run.targets[rows], encoder=run.encoder, metrics={"steps": 1}, **numbers
    )


@pytest.fixture(scope="module")
def three(regression) -> list[RunData]:
    """All rows; the first 40, backwards; and rows from 10 on, with a prediction that is off by ten."""
    rows = np.arange(60)
    return [
        part(regression, "all", rows),
        part(regression, "some", rows[:40][::-1]),
        part(regression, "off", rows[10:], 10.0),
    ]


def test_runs_are_ranked_on_the_rows_that_all_have(three) -> None:
    places = shared_rows(three)
    assert [len(p) for p in places] == [30, 30, 30]
    for run, here in zip(three, places):
        assert np.array_equal(run.row_numbers[here], np.arange(110, 140))
    found = ranking(three)
    assert found.rows == 30
    first, second, last = found.table
    assert last["model"] == "off"
    assert last["behind_low"] > 0
    gap = found.rowwise[first["model"]]["log_likelihood"] - found.rowwise["off"]["log_likelihood"]
    assert last["behind"] == pytest.approx(gap.mean())
    assert second["behind_low"] <= 0 <= second["behind_high"]


def test_the_page_shows_ranks_differences_and_the_figure(three) -> None:
    section = comparison(three, "abc")
    text = section.body
    check(page("page", [section, *(Section(name, "", anchor=name) for name in "abc")]))
    assert "means over the 30 rows that every run held out" in text
    assert "Clearly behind: off." in text
    assert "Behind the first, per row" in text


def test_intervals_are_over_the_groups_that_were_held_out(three) -> None:
    groups = np.arange(60) // 5
    own = [dataclasses.replace(run, split_by="site", groups=groups[run.row_numbers - 100]) for run in three]
    found, plain = ranking(own), ranking(three)
    assert found.split_by == "site"
    cells = {
        name: [{"rows": scores | {"place": np.arange(30)}, "seconds": 1.0, "ok": True}]
        for name, scores in plain.rowwise.items()
    }
    by_group, _ = rank_models(cells, LEVEL, 0, groups[10:40])
    for row, same in zip(found.table[1:], by_group[1:]):
        assert (row["behind_low"], row["behind_high"]) == (same["behind_low"], same["behind_high"])
    assert found.table[-1]["behind_low"] != plain.table[-1]["behind_low"]
    assert "bootstrap over whole groups of 'site'" in html.unescape(comparison(own, "abc").body)
    known = [dataclasses.replace(run, groups=None) for run in own[1:]]  # groups are the rows', whoever kept them
    again = ranking([own[0], *known])
    assert [row["behind_high"] for row in again.table] == [row["behind_high"] for row in found.table]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split_by": "site"}, "did not keep which"),
        ({"split_by": "site", "groups": np.arange(60) // 30}, "2 groups of 'site', too few"),
        ({}, "the same --split-by"),
    ],
)
def test_where_groups_were_held_out_there_is_no_interval_over_rows(three, changes, said) -> None:
    first = dataclasses.replace(three[0], split_by="site", groups=np.arange(60) // 5)
    runs = [dataclasses.replace(run, **changes) for run in three]
    runs[0] = first if not changes else runs[0]
    text = html.unescape(comparison(runs, "abc").body)
    assert said in text
    assert "bootstrap" not in text
    assert "Clearly behind" not in text
    row = ranking(runs).table[-1]
    assert row["behind"] > 0
    assert np.isnan(row["behind_low"])


def test_alarms_of_runs_are_told(three) -> None:
    alarm = Alarm("divergences", "31 of 40 transitions diverged", "lower step_size")
    fit = dataclasses.replace(three[0].fit, known=SimpleNamespace(alarms=[alarm]))
    runs = [dataclasses.replace(three[0], fit=fit), *three[1:]]
    assert [row["failed"] for row in ranking(runs).table if row["model"] == "all"] == [1]
    assert "* all has an alarm: 31 of 40 transitions diverged; lower step_size." in comparison(runs, "abc").body


def test_rows_of_different_tables_are_not_ranked(three) -> None:
    all_, some, _ = three
    other = dataclasses.replace(some, source="another")
    assert shared_rows([all_, other]) is None
    assert "scored on different rows" in comparison([all_, other], "ab").body


def test_rows_without_numbers_are_known_by_their_targets(regression) -> None:
    bare = [dataclasses.replace(regression, name=name, row_numbers=None) for name in "ab"]
    assert [len(p) for p in shared_rows(bare)] == [60, 60]
    moved = dataclasses.replace(bare[1], targets=bare[1].targets[::-1])
    assert shared_rows([bare[0], moved]) is None


def test_classes_in_another_order_are_not_the_same_targets(classification) -> None:
    encoder: Any = SimpleNamespace(classes=classification.encoder.classes[::-1])
    assert shared_rows([classification, dataclasses.replace(classification, encoder=encoder)]) is None


def test_runs_of_one_name_and_runs_without_scores(regression) -> None:
    bare = RunData("bare", regression.fit, {"steps": 3})
    one, two, last = with_distinct_names([regression, regression, bare])
    assert [one.name, two.name, last.name] == ["numbers (1)", "numbers (2)", "bare"]
    assert "Without scored rows, and so not ranked: bare." in comparison([one, two, bare], "abc").body
    assert "nothing to rank" in comparison([one, bare], "ab").body


def test_intervals_of_every_command_have_one_level():
    """Defaults by name, of commands, functions and estimators; and those of reports."""
    import inspect

    from credo.applications import partial_dependence
    from credo.applications.detection.detect import detect
    from credo.applications.effects import effects
    from credo.cli import effects as effects_command
    from credo.cli import predict as predict_command
    from credo.core.predictive import Predictive
    from credo.estimators import BayesianRegressor
    from credo.evaluation.comparison import cell, compare
    from credo.evaluation.metrics.bootstrap import difference, with_interval
    from credo.evaluation.metrics.scores import summarise_with_intervals
    from credo.report.views import COVERAGE
    from credo.tables.effects import table_effects

    asked = {
        Predictive.interval: "coverage", Predictive.to_pandas: "interval",
        BayesianRegressor.predict_interval: "coverage",
        compare: "level", effects: "level", partial_dependence: "level", table_effects: "level",
        with_interval: "level", difference: "level", summarise_with_intervals: "level",
        effects_command.effects: "level", predict_command.predict: "interval", detect: "level",
    }  # fmt: skip
    for function, name in asked.items():
        assert inspect.signature(function).parameters[name].default == COVERAGE, function
    assert LEVEL == cell.LEVEL == COVERAGE == 0.9
