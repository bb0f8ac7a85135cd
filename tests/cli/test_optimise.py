"""`credo optimise`: a user's own function, a record that goes on, sentences for what is wrong (H1)."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import math, os, sys

def bowl(x, n):
    if n == 3:
        raise ValueError("three is right out")
    return (x - 0.3) ** 2 + n

def as_dict(point):
    return -(point["x"] - 0.3) ** 2 - point["n"]

def word(x, n):
    return "low"

def loud(x, n):
    print("from Python")
    os.system("echo from a child")
    return x + n

class Mute(BaseException):
    def __str__(self):
        raise RuntimeError("not even this")
    __repr__ = __str__

def leaves(x, n):
    if n == 0:
        sys.exit(3)
    if n == 1:
        raise Mute
    if n == 2:
        return 10**400
    return x

fixed = 3
print("while the script is read")
"""
FINITE = '[k]\ntype = "int"\nlow = 0\nhigh = 2\n[c]\nchoices = ["a", "b"]\n'
SPACE = '[x]\ntype = "float"\nlow = 0\nhigh = 1\n[n]\ntype = "int"\nlow = 0\nhigh = 3\n'


@pytest.fixture
def files(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT)
    (tmp_path / "space.toml").write_text(SPACE)
    return tmp_path


@pytest.fixture
def call(credo, files):
    def one(function, *more, out="out"):
        return credo(
            "optimise", f"{files / 'mine.py'}:{function}", "--space", files / "space.toml", "--out", files / out, *more
        )

    return one


def test_the_best_point_is_printed_and_the_search_goes_on(call, files):
    first = call("bowl", "--evaluations", "7")
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["best"] == pytest.approx((found["point"]["x"] - 0.3) ** 2 + found["point"]["n"])
    assert "━━━━━━━━━━ 7/7  " in first.stderr
    assert "━━━━━━━─── 5/7  " in first.stderr
    record = json.loads((files / "out" / "optimise.json").read_text())
    assert len(record["history"]) == 7
    more = call("bowl", "--evaluations", "9")
    assert "Going on after 7 evaluations." in more.stderr
    assert json.loads((files / "out" / "optimise.json").read_text())["history"][:7] == record["history"]
    assert (files / "out" / "optimise.png").stat().st_size > 5000
    other = call("bowl", "--seed", "3")
    assert other.exit_code == 2
    assert "other settings (seed)" in other.stderr


def test_what_the_function_raises_is_recorded(call, files):
    result = call("bowl", "--evaluations", "12", "--surrogate", "random")
    assert result.exit_code == 0
    assert "failed (ValueError: three is right out)" in result.stderr
    history = json.loads((files / "out" / "optimise.json").read_text())["history"]
    assert all((e["value"] is None) == (e["point"]["n"] == 3) for e in history)


def test_a_dictionary_and_the_largest_value(call):
    result = call("as_dict", "--evaluations", "6", "--maximise", "--surrogate", "random")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["best"] <= 0


@pytest.mark.parametrize(
    ("function", "more", "words"),
    [
        ("none", (), "has no function 'none'; it has bowl, as_dict, word, loud, leaves"),
        ("fixed", (), "has no function 'fixed'"),
        ("word", ("--evaluations", "2"), "the objective gave 'low', which is not a number"),
        ("bowl", ("--acquisition", "pi"), "Unknown acquisition 'pi'"),
        ("bowl", ("--surrogate", "gpp"), "Unknown surrogate 'gpp'"),
        ("bowl", ("--evaluations", "0"), "--evaluations"),
    ],
)
def test_bad_requests_get_a_sentence(function, more, words, call):
    result = call(function, *more)
    assert result.exit_code == 2
    assert words in result.stderr


def test_bad_scripts_get_a_sentence(credo, files):
    (files / "broken.py").write_text("1 / 0")
    for text, words in [
        ("mine.py", "written script.py:function"),
        (f"{files / 'other.py'}:f", "There is no script"),
        (f"{files / 'broken.py'}:f", "cannot be run: ZeroDivisionError"),
        (f"{files / 'space.toml'}:f", "not a Python script"),
    ]:
        result = credo("optimise", text, "--space", files / "space.toml", "--out", files / "out")
        assert result.exit_code == 2
        assert words in result.stderr


def test_stdout_is_the_answer_alone(call, capfd):
    result = call("loud", "--evaluations", "3", "--surrogate", "random")
    assert json.loads(result.stdout)["best"] >= 0
    assert "from Python" in result.stderr
    assert "while the script is read" in result.stderr
    out, err = capfd.readouterr()  # of child processes, which know nothing of Python's streams
    assert "from a child" in err
    assert "child" not in out


def test_what_a_script_prints_at_its_exit_is_no_part_of_the_answer(files):
    """In a process of its own, through Python's stream and below it."""
    script = (
        SCRIPT
        + """
import atexit
atexit.register(print, "goodbye from Python")
atexit.register(os.system, "echo goodbye from a child")
"""
    )
    (files / "mine.py").write_text(script)
    space, out = files / "space.toml", files / "out"
    command = [
        sys.executable,
        "-c",
        "from credo.cli.main import main; main()",
        "optimise",
        f"{files / 'mine.py'}:loud",
        "--space",
        space,
        "--out",
        out,
    ]
    done = subprocess.run(
        [*command, "--evaluations", "2", "--surrogate", "random"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["best"] >= 0
    for words in ("goodbye from Python", "goodbye from a child"):
        assert words in done.stderr


def test_whatever_the_function_raises_is_a_failed_evaluation(call, files):
    result = call("leaves", "--evaluations", "12", "--surrogate", "random")
    assert result.exit_code == 0, result.stderr
    history = json.loads((files / "out" / "optimise.json").read_text())["history"]
    told = {e["point"]["n"]: e["message"] for e in history}
    assert told == {0: "SystemExit: 3", 1: "Mute, which cannot be printed", 2: "", 3: ""}
    assert all((e["value"] is None) == (e["point"]["n"] < 3) for e in history)


def test_ctrl_c_in_the_function_is_the_users(call, files):
    (files / "mine.py").write_text("def stop(x, n):\n    raise KeyboardInterrupt\n")
    assert call("stop").exit_code == 130


def test_a_script_that_leaves_is_a_sentence(credo, files):
    (files / "main.py").write_text("import sys\ndef f(x, n):\n    return x\nsys.exit(1)\n")
    result = credo("optimise", f"{files / 'main.py'}:f", "--space", files / "space.toml", "--out", files / "out")
    assert result.exit_code == 2
    assert "cannot be run: SystemExit: 1" in result.stderr


@pytest.mark.parametrize("more", [("--surrogate", "random"), ("--batch", "4")])
def test_a_finite_space_ends_with_its_best(credo, files, more):
    (files / "space.toml").write_text(FINITE)
    (files / "mine.py").write_text("def f(k, c):\n    return -k + (c == 'a')\n")
    for _ in range(2):  # and the same command again, when nothing is left to do
        result = credo(
            "optimise", f"{files / 'mine.py'}:f", "--space", files / "space.toml", "--out", files / "out",
            "--evaluations", "20", *more,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout) == {"best": -2.0, "point": {"k": 2, "c": "b"}}
        assert "All 6 points of the space" in result.stderr
