"""`credo compare`: a ranked table, a page, and sentences for what cannot be."""

import json

import numpy as np
import pytest

from credo.report import load_run_data
from credo.report.compare import ranking
from credo.report.write import with_distinct_names
from credo.storage.run_directory.read import open_run
from credo.tables import fitting
from small_tables import QUICK as FIT
from small_tables import regression_frame

QUICK = ("--methods", "map", "--baselines", "linear", "--folds", "2", "--steps", "40")


def test_it_ranks_writes_a_page_and_goes_on(credo, tables, tmp_path):
    how = (tables / "houses.csv", "--target", "price", *QUICK, "--folder", tmp_path / "cells")
    first = credo("compare", *how, "--out", tmp_path / "page.html")
    assert first.exit_code == 0, first.stderr
    assert "has the largest log-likelihood" in first.stdout
    assert "fold 2: linear" in first.stderr
    assert "<svg" in (tmp_path / "page.html").read_text()
    again = credo("compare", *how, "--json")
    assert "fold" not in again.stderr  # nothing was left to do
    assert {row["model"] for row in json.loads(again.stdout)["table"]} == {"map", "linear"}


def test_wrong_words_are_a_sentence(credo, tables):
    for words, sentence in {
        ("--target", "prise"): "prise",
        ("--target", "price", "--methods", "mapp"): "Did you mean 'map'",
        ("--target", "price", "--baselines", "none", "--methods", "map"): "two models",
        ("--target", "price", "--budget", "soon"): "60s",
    }.items():
        result = credo("compare", tables / "houses.csv", *words)
        assert result.exit_code == 2
        assert sentence in result.stderr


def test_where_nothing_runs_it_fails(credo, tables):
    how = ("--methods", "gp,infinite_width", "--baselines", "none", "--folds", "2", "--network", "shallow:3")
    result = credo("compare", tables / "labels.csv", "--target", "price", *how)
    assert result.exit_code == 1
    assert "No model could be run.\ngp: An exact" in result.stdout


@pytest.fixture(scope="module")
def grouped(credo, tmp_path_factory):
    """A table of 12 sites, and two runs that held out half of them."""
    folder = tmp_path_factory.mktemp("grouped")
    frame = regression_frame()
    frame.assign(site=[f"s{i % 12}" for i in range(len(frame))]).to_csv(folder / "sites.csv", index=False)
    how = ("--target", "price", *FIT, "--split-by", "site", "--holdout", "0.5")
    for name, setting in {"a": "prior=normal:1.0", "b": "prior=normal:0.1"}.items():
        result = credo("fit", folder / "sites.csv", *how, "--set", setting, "--out", folder / name)
        assert result.exit_code == 0, result.stderr
    return folder


def test_a_run_keeps_the_groups_of_its_held_out_rows(credo, grouped):
    held = open_run(grouped / "a").heldout
    assert np.array_equal(held["groups"], held["rows"] % 12)  # sites are numbered as they come
    found = ranking([load_run_data(grouped / name) for name in "ab"])
    assert found.split_by == "site"
    assert np.isfinite(found.table[1]["behind_low"])
    result = credo("report", grouped / "a", grouped / "b", "--out", grouped / "page.html")
    assert result.exit_code == 0, result.stderr
    assert "bootstrap over whole groups of" in (grouped / "page.html").read_text()
    new = load_run_data(grouped / "a", grouped / "sites.csv")
    assert np.array_equal(new.groups, np.arange(60) % 12)


def test_a_run_of_before_groups_were_kept_still_loads(credo, grouped, tmp_path, monkeypatch):
    arrays_of = fitting._held_out_arrays
    monkeypatch.setattr(
        fitting, "_held_out_arrays", lambda prepared: {k: v for k, v in arrays_of(prepared).items() if k != "groups"}
    )
    how = ("--target", "price", *FIT, "--split-by", "site", "--holdout", "0.5")
    assert credo("fit", grouped / "sites.csv", *how, "--out", tmp_path / "old").exit_code == 0
    old = load_run_data(tmp_path / "old")
    assert old.groups is None
    found = ranking(with_distinct_names([old, old]))
    assert np.isnan(found.table[1]["behind_low"]) or found.table[1]["behind"] == 0
    assert "did not keep which" in found.notes[0]


def test_marks_are_explained(credo, tables):
    how = ("--target", "price", "--methods", "linear,gp", "--baselines", "none", "--folds", "2", "--budget", "0.001s")
    result = credo("compare", tables / "houses.csv", *how)
    assert result.exit_code == 0, result.stderr
    assert " †" in result.stdout
    assert "† took more than 1.5 times the budget of 0.001 s" in result.stdout
    said = json.loads(credo("compare", tables / "houses.csv", *how, "--json").stdout)
    assert said["warnings"][-1].startswith("†")
