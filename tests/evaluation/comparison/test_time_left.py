"""A comparison says how long it takes, by budgets and by what folds took."""

import io
import sys

import numpy as np
import pandas as pd
import pytest

import credo
from credo.evaluation.comparison.time_left import at_first, expected, in_words
from credo.training.progress import Progress, labelled

LEFT = [("map", 1), ("hmc", 1), ("linear", 1)]


def test_times_come_from_the_last_fit_of_each_model():
    took = {("map", 0): 9.0, ("hmc", 0): 100.0, ("linear", 0): 1.0}
    assert expected(LEFT, took, 1) == 110.0
    assert expected(LEFT, took, 2) == 55.0
    assert expected(LEFT, took | {("map", 2): 2.0}, 1) == 103.0
    assert expected(LEFT, {("map", 0): 9.0}, 1) is None
    assert at_first(LEFT, took, None, 1) == (
        "3 fits: 3 models on 1 fold, beside 3 that are kept from before. About 2 min, by what was done before."
    )
    assert "About 2 min, beside compilation" in at_first(LEFT, {}, 60.0, 1)  # a baseline has no budget
    assert "told after the first fold" in at_first(LEFT, {}, None, 1)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (89.4, "89 s"), (95, "2 min"), (5000, "83 min"), (5400, "1 h 30 min")]
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_comparison_announces_its_time_and_what_is_left(tmp_path):
    x = np.random.default_rng(0).normal(size=60)
    how = {"methods": "map", "baselines": "linear", "folds": 3, "steps": 20, "folder": tmp_path}
    said = []
    credo.compare(pd.DataFrame({"x": x, "y": 2 * x + 1}), "y", **how, announce=said.append)
    assert said[0] == "6 fits: 2 models on 3 folds. How long they take is told after the first fold."
    assert len(said) == 3  # after the first two of three folds
    assert all(sentence.startswith("About ") and sentence.endswith(" left.") for sentence in said[1:])
    credo.compare(pd.DataFrame({"x": x, "y": 2 * x + 1}), "y", **how, announce=said.append)
    assert len(said) == 3  # nothing was left to do


def test_bars_of_a_fit_say_which_one_it_is(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with labelled("fold 2, hmc"), Progress(shown=True) as bar:
        bar.phase("adapt", 0, 10)
        assert bar._bar.tasks[0].description == "fold 2, hmc: adapt"
    with Progress(shown=True) as bar:
        bar.phase("adapt", 0, 10)
        assert bar._bar.tasks[0].description == "adapt"
