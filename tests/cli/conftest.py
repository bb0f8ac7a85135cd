"""The command line in this process, and small tables."""

import json

import pytest
from typer.testing import CliRunner

from credo.cli.main import app
from small_tables import QUICK, class_frame, regression_frame


@pytest.fixture(scope="session")
def credo():
    """`credo("fit", …)` gives stdout, stderr and exit code; anything but a clean exit is an error."""

    def call(*args):
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A folder with houses.csv (price is a number) and labels.csv (price is a class)."""
    folder = tmp_path_factory.mktemp("tables")
    regression_frame().to_csv(folder / "houses.csv", index=False)
    class_frame().to_csv(folder / "labels.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def runs(credo, tables, tmp_path_factory):
    """A run on each table: its folder and what `fit --json` printed."""
    made = {}
    for name in ("houses", "labels"):
        out = tmp_path_factory.mktemp("runs") / name
        result = credo("fit", tables / f"{name}.csv", "--target", "price", *QUICK, "--out", out, "--json")
        assert result.exit_code == 0, result.stderr
        made[name] = (out, json.loads(result.stdout))
    return made
