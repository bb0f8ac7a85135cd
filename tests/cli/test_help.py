"""Help is quick, complete and needs no JAX."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app as benchmarks
from credo.cli.main import app
from credo.registry import METHODS

COMMANDS = [
    "demo", "fit", "compare", "predict", "evaluate", "effects", "decide", "suggest", "detect", "optimise", "report",
    "resume", "export", "methods", "audit",
]  # fmt: skip
BENCHMARKS = ["uci", "airfoil", "images", "speed", "tables", "budgets", "portfolio"]


def test_help_imports_neither_jax_nor_pandas():
    code = (
        "import sys\n"
        "from credo.cli.main import main\n"
        "sys.argv = ['credo', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'jax', 'pandas', 'numpy', 'sklearn', 'matplotlib', 'pyarrow', 'orbax'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b[" not in done.stdout
    for name in COMMANDS:
        assert name in done.stdout


@pytest.mark.parametrize("program", [app, benchmarks], ids=["credo", "benchmarks"])
def test_every_command_and_option_is_documented(program):
    from typer.main import get_command

    for name, command in get_command(program).commands.items():
        assert CliRunner().invoke(program, [name, "--help"]).exit_code == 0
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name} {parameter.name}"


def test_benchmarks_are_outside_the_package(credo):
    result = credo("benchmark", "uci", "--sets", "yacht")
    assert result.exit_code == 2
    assert "python -m benchmarks" in result.stderr


def test_the_commands_are_these():
    from typer.main import get_command

    commands = get_command(app).commands
    assert [name for name, command in commands.items() if not command.hidden] == COMMANDS
    assert list(get_command(benchmarks).commands) == BENCHMARKS


def test_the_options_of_fit_are_there():
    from typer.main import get_command

    names = {name for parameter in get_command(app).commands["fit"].params for name in parameter.opts}
    wanted = "target task method network set steps budget batch-size seed holdout out missing weights split-by time"
    assert {f"--{name}" for name in wanted.split()} <= names


def test_methods(credo):
    import json

    table = credo("methods").stdout
    assert all(name in table for name in METHODS)
    assert [row["name"] for row in json.loads(credo("methods", "--json").stdout)] == list(METHODS)


def test_version_and_no_arguments(credo):
    from credo import __version__

    assert credo("--version").stdout.strip() == __version__
    assert "Commands" in credo().stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fti"], "Did you mean 'fit'"),
        (["fit", "x.csv", "--stesp", "3"], "Did you mean '--steps'"),
        (["fit", "x.csv"], "Missing option"),
        (["fit"], "Missing argument"),
        (["fit", "x.csv", "--target", "y", "--out", "r", "--steps", "many"], "--steps"),
        (["fit", "x.csv", "--target", "y", "--out", "r", "--steps", "0"], "--steps"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(args, words, credo):
    result = credo(*args)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert "--help" in result.stderr


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("methods", "nuts "),
        ("likelihoods", "student_t "),
        ("priors", "(horseshoe:0.1)"),
        ("networks", "(mlp:50,50:tanh)"),
        ("metrics", "crps "),
    ],
)
def test_every_table_is_listed(kind, line):
    result = CliRunner().invoke(app, ["methods", kind])
    assert result.exit_code == 0
    assert line in result.stdout
    assert {"name", "summary"} <= set(json.loads(CliRunner().invoke(app, ["methods", kind, "--json"]).stdout)[0])
