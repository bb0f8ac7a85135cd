"""`credo compare`: a ranked table, a page, and sentences for what cannot be."""

import json

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
