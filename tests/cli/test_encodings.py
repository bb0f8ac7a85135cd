"""Terminals of any encoding: nothing that a command says ends in a traceback, and reports stay UTF-8."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from credo.cli.main import app
from small_tables import QUICK

CITIES = ["Zürich", "東京", "Łódź", "San José"]


@pytest.fixture(scope="module")
def table(tmp_path_factory, tables):
    """A table of names that no small encoding has."""
    frame = pd.read_csv(tables / "houses.csv")
    frame["größe ²"] = [CITIES[i % 4] for i in range(len(frame))]
    place = tmp_path_factory.mktemp("encodings") / "häuser.csv"
    frame.to_csv(place, index=False)
    return place


@pytest.fixture(scope="module")
def run(credo, table):
    """A run on it."""
    out = table.parent / "ergebnis"
    assert credo("fit", table, "--target", "price", *QUICK, "--out", out).exit_code == 0
    return out


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.full) for name in ("cp1252", "latin1"))]
)
def test_no_encoding_is_too_small(encoding, run, table):
    runner = CliRunner(charset=encoding)
    commands = [
        ("methods",), ("fit", table, "--target", "price", *QUICK, "--out", run),
        ("predict", run, table), ("evaluate", run, table), ("report", run), ("effects", run),
        ("fit", "nö.csv", "--target", "ö"), ("--help",),
    ]  # fmt: skip
    for command in commands:
        result = runner.invoke(app, [str(word) for word in command])
        assert result.exception is None or isinstance(result.exception, SystemExit), (command, result.exception)
        assert result.exit_code == (2 if "nö.csv" in command else 0), (command, result.stderr)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "größe ²" in page
    assert "Zürich" in page or "東京" in page


def test_a_process_in_a_poor_locale(run):
    """Output, names of files and the default of `open` are all ASCII."""
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    environment = os.environ | poor
    done = subprocess.run(
        [sys.executable, "-c", "from credo.cli.main import main; main()", "report", str(run)],
        env=environment, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert "größe ²" in (run / "report.html").read_text(encoding="utf-8")
