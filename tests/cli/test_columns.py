"""Columns that are left out, carried along or rounded; rows without a target."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from credo.cli.columns import round_numbers
from credo.storage.run_directory.read import open_run
from small_tables import QUICK, regression_frame


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Houses with an id, a column that gives the price away, cells that are missing and prices that are unknown."""
    frame = regression_frame()
    frame.insert(0, "house_id", [f"h{i:03d}" for i in range(60)])
    frame["tax"] = frame["price"] / 10
    frame.loc[[3, 7], "size"] = np.nan
    frame.loc[[9, 11, 40], "price"] = np.nan
    path = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(credo, gaps, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "run"
    options = ("--missing", "impute", "--drop", "tax", "--drop", "sold", "--time", "sold", "--json", "--verbose")
    result = credo("fit", gaps, "--target", "price", *QUICK, *options, "--out", out)
    assert result.exit_code == 0, result.stderr
    return out, json.loads(result.stdout), result.stderr


def test_dropped_columns_are_no_inputs(run):
    opened = open_run(run[0])
    names = [column.name for column in opened.encoder.columns]
    assert names == ["size", "rooms", "town", "garden", "weight"]
    assert opened.table["drop"] == ["tax", "sold"]


def test_rows_without_a_target_are_left_out_while_inputs_are_filled_in(run):
    out, summary, said = run
    assert "3 of 60 rows have no 'price' and are left out." in said
    assert summary["metrics"]["train_rows"] + summary["metrics"]["test_rows"] == 57
    assert "size:missing" in open_run(out).encoder.feature_names


def test_a_column_must_be_there_and_not_be_the_target(credo, tables, tmp_path):
    for command, out in (("fit", ("--out", tmp_path / "run")), ("compare", ())):
        for name, words in (("prise", "did you mean 'price'"), ("price", "is the target and cannot be dropped")):
            result = credo(command, tables / "houses.csv", "--target", "price", "--drop", name, *out)
            assert result.exit_code == 2
            assert words in result.stderr


def test_compare_drops_columns_and_rows(credo, gaps):
    options = ("--methods", "map", "--baselines", "linear", "--steps", "2", "--folds", "2", "--missing", "impute")
    result = credo("compare", gaps, "--target", "price", *options, "--drop", "tax", "--json")
    assert result.exit_code == 0, result.stderr
    assert "3 of 60 rows have no 'price' and are left out." in result.stderr
    rmse = {row["model"]: row["rmse"] for row in json.loads(result.stdout)["table"]}
    assert rmse["linear"] > 20  # with the tax it would be 0


def table(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(io.StringIO(result.stdout))


def test_what_is_carried_along(credo, run, gaps):
    found = table(credo("predict", run[0], gaps))
    assert list(found)[:2] == ["house_id", "mean"]
    assert found["house_id"].tolist() == [f"h{i:03d}" for i in range(60)]
    found = table(credo("predict", run[0], gaps, "--keep", "town", "--keep", "price"))
    assert list(found)[:3] == ["town", "price", "mean"]
    result = credo("predict", run[0], gaps, "--keep", "toun")
    assert result.exit_code == 2
    assert "did you mean 'town'" in result.stderr


def test_text_shows_digits_that_mean_something(credo, run, gaps, tmp_path):
    text = credo("predict", run[0], gaps).stdout
    cells = [cell for line in text.splitlines()[1:] for cell in line.split(",")[1:]]
    assert max(map(len, cells)) <= 12
    assert credo("predict", run[0], gaps, "--out", tmp_path / "p.parquet").exit_code == 0
    whole, shown = pd.read_parquet(tmp_path / "p.parquet"), pd.read_csv(io.StringIO(text))
    for name in ("mean", "lower", "upper"):
        assert (np.abs(whole[name] - shown[name]) <= 1e-3 * whole["std"]).all()


def test_a_small_spread_beside_a_large_mean_keeps_its_digits():
    columns = {"mean": [1234567.8912345, 5e9], "std": [0.0123456, 3e-30]}
    found = round_numbers(pd.DataFrame(columns | {"lower": [np.nan, np.inf], "y_mean": [0.123456789, 0.0]}))
    assert found["mean"].tolist() == [1234567.89123, 5e9]
    assert found["std"].tolist() == [0.0123456, 3e-30]
    assert found["y_mean"].tolist() == [0.123457, 0.0]
    two = pd.DataFrame({"a_mean": [1000.123456], "a_std": [0.00123456], "p_x": [0.000012345678], "label": ["x"]})
    assert round_numbers(two).iloc[0].tolist() == [1000.123456, 0.00123456, 0.0000123457, "x"]
