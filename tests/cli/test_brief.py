"""`credo fit` prints at most eight lines on stdout, of any table and with any options; --verbose prints all."""

import numpy as np
import pandas as pd
import pytest

from credo.tables.brief import MOST
from documents import little_work
from small_tables import QUICK, class_frame, regression_frame

BAD_CHAINS = ("--method", "hmc", "--network", "mlp:3", "--steps", "8",
              *(f"--set={s}" for s in ("chains=2", "warmup=0", "step_size=0.001", "num_steps=2")))  # fmt: skip
SELDOM = pytest.mark.full


def messy():
    """Ids, texts, dates of both orders, copies, constants, gaps, names with line breaks, rows twice."""
    frame = regression_frame(90)
    frame.insert(0, "house_id", [f"h{i:03d}" for i in range(90)])
    frame["text"] = [f"a house number {i} with {i % 7} windows" for i in range(90)]
    frame["seen"] = [f"{1 + i % 12:02d}/{1 + i % 11:02d}/2020" for i in range(90)]
    frame["two\nlines"] = frame["size"] * 2 + 1
    frame["value"] = [f"1,{i:03d}" for i in range(90)]
    for i in range(12):
        frame[f"constant {i}"] = i
    frame["empty"] = np.nan
    frame.loc[[3, 50], "price"] = np.nan
    frame.loc[::5, "rooms"] = np.nan
    frame["price"] = frame["price"].round()
    return pd.concat([frame, frame.head(5)])


def counts():
    return regression_frame(80).assign(price=np.random.default_rng(0).poisson(3, 80))


CASES = {
    "numbers": (regression_frame, QUICK),
    "messy": (messy, QUICK),
    "dropped rows": (messy, (*QUICK, "--missing", "drop")),
    "alarms": (regression_frame, BAD_CHAINS),
    "classes": (class_frame, QUICK),
    "two targets": (regression_frame, (*QUICK, "--target", "size")),
    "nothing held out": (regression_frame, (*QUICK, "--holdout", "0")),
    "counts": (counts, (*QUICK, "--task", "count")),
    "auto": (regression_frame, ("--steps", "8")),
    "quick": (regression_frame, ("--effort", "quick")),
    "best": (regression_frame, ("--effort", "best", "--budget", "6s")),
    "budget": (regression_frame, ("--budget", "1s")),
}
SLOW = ("auto", "quick", "best", "budget")


@pytest.mark.parametrize("case", [pytest.param(c, marks=SELDOM if c in SLOW else ()) for c in CASES])
def test_at_most_eight_lines(case, credo, tmp_path):
    make, options = CASES[case]
    make().to_csv(tmp_path / "t.csv", index=False)
    with little_work():
        result = credo("fit", tmp_path / "t.csv", "--target", "price", *options, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert 4 <= len(lines) <= MOST
    assert lines[0].startswith("Learned to predict price")
    assert lines[1].startswith("Chosen: " if "--method" not in options else "Method: ")
    assert f"Saved in {tmp_path / 'run'}. Next: credo " in lines[-1]
    assert not [line for line in result.stderr.splitlines() if line.startswith(("Column ", "The target "))]
    if case == "messy":
        assert "Left out: 3 of 95 rows (no 'price')," in result.stdout
        assert r"two\nlines (copy of another)" in result.stdout
        assert "constant 0, constant 1, constant 2 and 9 more (always the same)" in result.stdout
    if case == "alarms":
        assert "Careful: the answer was still moving when the fit ended" in result.stdout


def test_verbose_prints_scores_notes_and_alarms(credo, tmp_path):
    messy().to_csv(tmp_path / "t.csv", index=False)
    command = ("fit", tmp_path / "t.csv", "--target", "price", *QUICK, "--out", tmp_path / "run", "--verbose")
    result = credo(*command)
    for words in ("learned price (regression)", "It took", "log likelihood", "CRPS", "Run: "):
        assert words in result.stdout
    for words in ("so this is regression", "Column 'house_id'", "with the month first", "are copies of another"):
        assert words in result.stderr
