"""`credo decide`: a table of decisions, a picture and what came true, for classes and numbers."""

import io

import numpy as np
import pandas as pd
import pytest

from small_tables import class_frame, regression_frame

CLASSES = "action,cheap,dear,fair\nbuy,5,-20,1\nleave,0,0,0\n"
STEPS = "action,threshold,utility_below,utility_above\nbuy,3200,2,-5\nleave,3200,0,0\n"


@pytest.fixture
def worth(tmp_path):
    """A file of utilities with this text."""

    def make(text, name="utility.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


def test_classes(credo, runs, tables, worth, tmp_path):
    out = tmp_path / "decisions.csv"
    run, table = runs["labels"][0], tables / "labels.csv"
    result = credo("decide", run, table, "--utility", worth(CLASSES), "--out", out, "--abstain", "0.5")
    assert result.exit_code == 0, result.stderr
    assert "60 decisions by expected utility" in result.stdout
    assert "the point prediction" in result.stdout
    frame = pd.read_csv(out)
    assert len(frame) == 60
    assert set(frame["action"]) <= {"buy", "leave", "abstain"}
    assert (frame["loss_of_second"] >= 0).all()
    np.testing.assert_allclose(frame["utility leave"], 0, atol=1e-9)
    assert not (frame["action"] == "abstain").any()  # to leave is free
    assert (tmp_path / "decisions.png").read_bytes()[:4] == b"\x89PNG"
    predicted = pd.read_csv(io.StringIO(credo("predict", run, table).stdout))
    expected = 5 * predicted["p_cheap"] - 20 * predicted["p_dear"] + predicted["p_fair"]
    np.testing.assert_allclose(frame["utility buy"], expected, atol=1e-4)


def test_numbers_by_steps_without_the_target(credo, runs, worth, tmp_path):
    table = tmp_path / "new.csv"
    regression_frame().drop(columns="price").to_csv(table, index=False)
    options = ("--utility", worth(STEPS), "--risk", "cvar:0.2", "--over", "parameters")
    result = credo("decide", runs["houses"][0], table, *options)
    assert result.exit_code == 0, result.stderr
    frame = pd.read_csv(io.StringIO(result.stdout))
    assert len(frame) == 60
    assert "worst 20 %, over parameters" in result.stderr
    assert "point prediction" not in result.stderr


def test_amounts_are_quantiles(credo, runs, tables, tmp_path):
    out = tmp_path / "orders.csv"
    run, table = runs["houses"][0], tables / "houses.csv"
    result = credo("decide", run, table, "--newsvendor", "9,1", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "gain" in result.stdout
    predicted = pd.read_csv(io.StringIO(credo("predict", run, table, "--interval", "0.8").stdout))
    np.testing.assert_allclose(pd.read_csv(out)["amount"], predicted["upper"], rtol=1e-3)


def test_rows_without_targets_are_not_scored(credo, runs, worth, tmp_path):
    frame = class_frame()
    frame["price"] = frame["price"].astype(object)
    frame.loc[3, "price"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = credo("decide", runs["labels"][0], tmp_path / "t.csv", "--utility", worth(CLASSES))
    assert result.exit_code == 0, result.stderr
    assert "1 of 60 rows have no target" in result.stderr


BAD_FILES = {
    "missing class": ("action,cheap,fair\nbuy,1,2\n", "no column for the class 'dear'"),
    "unknown class": ("action,cheap,dear,fair,dull\nbuy,1,2,3,4\n", "no class of this run"),
    "text": ("action,cheap,dear,fair\nbuy,1,lots,3\n", "'lots'"),
    "NaN": ("action,cheap,dear,fair\nbuy,1,NaN,3\n", "give a number"),
    "empty cell": ("action,cheap,dear,fair\nbuy,1,,3\nleave,0,0,0\n", "give a number"),
    "infinite": ("action,cheap,dear,fair\nbuy,1,inf,3\n", "infinite"),
    "empty file": ("", "is empty"),
    "no rows": ("action,cheap,dear,fair\n", "no rows"),
    "no name": ("action,cheap,dear,fair\n,1,2,3\nbuy,1,2,3\n", "no name"),
    "twice": ("action,cheap,dear,fair\nbuy,1,2,3\nbuy,1,2,3\n", "twice"),
    "thresholds": (STEPS, "predicts classes"),
    "only actions": ("action\nbuy\n", "no column for the class"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files(case, credo, runs, tables, worth, tmp_path):
    text, words = BAD_FILES[case]
    out = tmp_path / "d.csv"
    check(credo("decide", runs["labels"][0], tables / "labels.csv", "--utility", worth(text), "--out", out), words)
    assert not out.exists()


def test_bad_steps(credo, runs, tables, worth):
    run, table = runs["houses"][0], tables / "houses.csv"
    check(credo("decide", run, table, "--utility", worth(CLASSES)), "threshold")
    check(credo("decide", run, table, "--utility", worth(STEPS.replace("-5", "dear"))), "dear")


def test_bad_options(credo, runs, tables, worth, tmp_path):
    run, table, file = runs["labels"][0], tables / "labels.csv", worth(CLASSES)
    both = ("--utility", file)
    check(credo("decide", run, table), "--newsvendor")
    check(credo("decide", run, table, *both, "--newsvendor", "1,2"), "one of")
    check(credo("decide", run, table, "--newsvendor", "1,2"), "predicts classes")
    check(credo("decide", runs["houses"][0], tables / "houses.csv", "--newsvendor", "1"), "two numbers")
    check(credo("decide", runs["houses"][0], tables / "houses.csv", "--newsvendor", "1,-2"), "positive")
    check(credo("decide", run, table, *both, "--risk", "var:1"), "cvar:0.1")
    check(credo("decide", run, table, *both, "--risk", "cvar:3"), "share")
    check(credo("decide", run, table, *both, "--over", "draws"), "--over")
    check(credo("decide", run, table, *both, "--abstain", "cheap"), "--abstain")
    check(credo("decide", run, table, *both, "--abstain", "nan"), "finite")
    check(credo("decide", run, table, *both, "--out", tmp_path / "no" / "d.csv"), "no folder")
    check(credo("decide", run, table, "--utility", tmp_path / "none.csv"), "There is no file")
    strange = class_frame()
    strange.loc[2, "price"] = "priceless"
    strange.to_csv(tmp_path / "t.csv", index=False)
    check(credo("decide", run, tmp_path / "t.csv", *both), "priceless")


def check(result, words):
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert errors[0].endswith((".", "?"))
    assert "Traceback" not in result.stderr
