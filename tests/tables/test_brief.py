"""What came of a fit in a few lines: never more than eight, whatever the run has to say."""

import random
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import credo
from credo.evaluation.diagnostics.alarms import Alarm
from credo.tables.brief import ALARMS, MOST, brief_lines, number
from credo.tables.columns.kinds import MONTH_FIRST
from credo.tables.columns.unused import REASONS, left_out
from credo.tables.doubts import LOG_LOSS, WARNING
from credo.training.loop import BUDGET_SPENT
from credo.training.status import Status

SCORES = {"train_rows": 178, "test_rows": 44, "seconds_wall": 27.3}
ERRORS = {"price": {"rmse": 58.07, "guess": 77.25}}
NUMBERS = SCORES | {"test_errors": ERRORS, "test_coverage_90": 0.909}
CLASSES = SCORES | {
    "test_accuracy": 0.95, "test_majority_accuracy": 0.8, "test_recall": 1.0, "test_precision": 2 / 3,
}  # fmt: skip


def made(metrics=NUMBERS, *, target="price", classes=None, method="map", why="", outcome="finished", fit_notes=(),
         alarms=(), notes=(), folder=Path("runs/houses"), parts=None, task="regression"):  # fmt: skip
    alarms = tuple(Alarm(word, "seen", "do") for word in alarms)
    return SimpleNamespace(
        metrics=metrics, notes=notes, folder=folder, why=why, table={"table": "/data/houses.csv"},
        encoder=SimpleNamespace(target=target, classes=classes, task=task, columns=(1, 2)),
        fit=SimpleNamespace(alarms=alarms, config={"method": method} | ({"parts": parts} if parts else {})),
        status=Status.of(outcome, fit_notes, lambda: tuple(str(alarm) for alarm in alarms)),
    )  # fmt: skip


def test_a_fit_on_numbers():
    notes = [left_out("id", "numbers the rows")]
    run = made(method="deep_ensemble", why="because", notes=notes, alarms=("unconverged", "low_ess"))
    assert brief_lines(run) == [
        "Learned to predict price (a number) from 178 rows and 2 columns of houses.csv.",
        "Chosen: deep_ensemble (several networks that learned apart and answer together); it took 27 s.",
        "On 44 rows held out, its typical error is 58.1 (guessing the mean: 77.2).",
        "Ranges that should hold 90 % of new rows held 91 % of these.",
        "Left out: id (row numbers).",
        "Careful: the answer was still moving when the fit ended; give it more time, such as --budget 5m. "
        "(1 more with --verbose and in the report.)",
        "Saved in runs/houses. Next: credo predict runs/houses NEW.csv, and for details: credo report runs/houses",
    ]


def test_a_fit_on_classes():
    lines = brief_lines(made(CLASSES, classes=("no", "yes"), task="binary"))
    assert lines[0] == "Learned to predict price (one of 2 classes: no, yes) from 178 rows and 2 columns of houses.csv."
    assert lines[2] == "On 44 rows held out, it names the right class for 95 % (always naming the commonest: 80 %)."
    assert lines[3] == "It finds 100 % of the 'yes' rows, and 67 % of those it picks are 'yes'."
    nobody = brief_lines(made(CLASSES | {"test_recall": float("nan")}, classes=("no", "yes"), task="binary"))
    assert nobody == [line for line in lines if "It finds" not in line]


def test_several_targets_and_a_mixture():
    errors = {name: {"rmse": 1.0, "guess": 2.0} for name in "abcde"}
    parts = [{"name": "linear model", "weight": 0.25}, {"name": "ensemble", "weight": 0.75}]
    lines = brief_lines(made(NUMBERS | {"test_errors": errors}, target=list("abcde"), why="so", parts=parts))
    assert "a, b, c and 2 more (numbers)" in lines[0]
    assert lines[1].startswith("Chosen: a mix of 2 models (ensemble 75 %, linear model 25 %)")
    assert "a 1 (2), b 1 (2), c 1 (2) and 2 more." in lines[2]


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("THE FIT FAILED: do not use it. It blew up.", made(outcome="failed", fit_notes=("It blew up.",))),
        ("was interrupted before its end", made(outcome="interrupted")),
        ("do not trust them", made(fit_notes=(f"{WARNING} 90 % intervals hold 50 %.",))),
        ("worse than the plain shares", made(fit_notes=(f"{LOG_LOSS} is 0.7.",))),
        ("a larger --budget", made(fit_notes=(f"{BUDGET_SPENT} of 1 s was spent.",))),
        ("no better than guessing", made(NUMBERS | {"test_errors": {"price": {"rmse": 3.0, "guess": 2.9}}})),
        (MONTH_FIRST, made(notes=(f"The dates of column 'sold' {MONTH_FIRST} (%m/%d/%Y); write them otherwise.",))),
    ],
)  # fmt: skip
def test_every_worry_is_said(words, run):
    (line,) = [line for line in brief_lines(run) if line.startswith("Careful: ")]
    assert words in line
    assert "more with" not in line


def test_the_worst_comes_first_and_nothing_is_said_for_nothing():
    worst = made(outcome="failed", fit_notes=(f"{WARNING} narrow", "It blew up."), alarms=ALARMS)
    (line,) = [line for line in brief_lines(worst) if line.startswith("Careful: ")]
    assert "THE FIT FAILED" in line
    assert f"({len(ALARMS) + 1} more" in line
    corrected = made(fit_notes=("On 313 rows outside of training, 90 % intervals held 77 %.",))
    assert not [line for line in brief_lines(corrected) if line.startswith("Careful: ")]


def test_a_run_that_was_stopped_is_resumed_next():
    assert brief_lines(made(outcome="interrupted"))[-1].endswith("Next: credo resume runs/houses")


def test_every_alarm_has_plain_words():
    folder = Path(credo.__file__).parent / "evaluation" / "diagnostics"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    rung = set(re.findall(r'(?<!print\(named\()\bAlarm\(\s*"(\w+)"', text))
    assert len(rung) > 10
    assert rung == set(ALARMS)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (-3.14159, "-3.14"), (999.6, "1,000"), (12345.6, "12,300"), (1e-7, "1e-07"), (2.5e13, "2.5e+13"),
     (float("nan"), "unknown"), (float("inf"), "unknown"), (None, "unknown"), (100.0, "100")],
)  # fmt: skip
def test_numbers(value, words):
    assert number(value) == words


def test_never_more_than_eight_lines():
    rng = random.Random(0)
    names = ["price", "two\nlines", "\x1b[31mred", "東京", "n" * 5000, "it's", ""]
    figures = [0.0, 1e-9, 3.3, 1e30, float("nan"), float("inf")]
    longest = 0
    for _ in range(2000):
        targets = rng.choices(names, k=rng.randint(1, 9))
        errors = {name: {"rmse": rng.choice(figures), "guess": rng.choice(figures)} for name in targets}
        kind = rng.choice([NUMBERS | {"test_errors": errors}, CLASSES, SCORES | {"test_rows": 0}, NUMBERS])
        odd = [key for key, value in kind.items() if isinstance(value, float) and rng.random() < 0.2]
        metrics = kind | {key: rng.choice(figures) for key in odd}
        labels = rng.choices(names, k=rng.randint(2, 300)) if kind is CLASSES else None
        told = [left_out(rng.choice(names), reason) for reason in rng.choices(list(REASONS), k=rng.randint(0, 40))]
        told += rng.sample(["3 of 9 rows have no 'x' and are left out.", f"Dates {MONTH_FIRST}.", "Anything."], 2)
        spoken = rng.sample([f"{WARNING} narrow", LOG_LOSS, BUDGET_SPENT, "A\nnote."], rng.randint(0, 4))
        lines = brief_lines(
            made(metrics, target=targets[0] if len(targets) == 1 else targets, classes=labels, notes=told,
                 alarms=rng.sample(list(ALARMS), rng.randint(0, 5)), fit_notes=spoken, why=rng.choice(["", "so"]),
                 outcome=rng.choice(["finished", "failed", "interrupted", "stopped by the disk"]),
                 folder=rng.choice([None, Path("runs/a b"), Path("two\nlines")]),
                 method=rng.choice(["map", "deep_ensemble", "nuts"]))
        )  # fmt: skip
        longest = max(longest, len(lines))
        assert all(line and line.isprintable() for line in lines), lines
        assert max(map(len, lines)) < 1000
    assert longest <= MOST == 8
    assert longest >= 7
