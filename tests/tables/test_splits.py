"""Hold-outs: random, balanced over classes, by group and by time; the same seed gives the same rows."""

import numpy as np
import pandas as pd
import pytest

from credo.errors import InputError
from credo.tables.rows.splits import split_rows


def table(rows=200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.normal(size=rows),
            "patient": [f"p{i // 8}" for i in range(rows)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(rows), unit="D"),
            "y": rng.choice(["a", "b", "c"], rows, p=[0.8, 0.15, 0.05]),
        }
    )


def is_partition(train, test, rows):
    return sorted([*train, *test]) == list(range(rows))


@pytest.mark.parametrize("options", [{}, {"split_by": "patient"}, {"time": "day"}, {"stratify": "y"}])
def test_every_row_is_on_one_side_and_seeds_decide(options):
    frame = table()
    train, test = split_rows(frame, 0.2, 3, **options)
    assert is_partition(train, test, 200)
    assert len(test) == 40
    again = split_rows(frame, 0.2, 3, **options)
    assert again[1].tolist() == test.tolist()
    differs = split_rows(frame, 0.2, 4, **options)[1].tolist() != test.tolist()
    assert differs == ("time" not in options)


def test_rising_order():
    train, test = split_rows(table(), 0.3)
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()


def test_share_is_rounded_but_never_to_none():
    assert len(split_rows(table(5), 0.1)[1]) == 1
    assert len(split_rows(table(26), 0.1)[1]) == 3
    train, test = split_rows(table(5), 0.0)
    assert (len(train), len(test)) == (5, 0)


def test_classes_keep_their_shares():
    frame = pd.DataFrame({"y": ["a"] * 160 + ["b"] * 30 + ["c"] * 10})
    for stratify in ("y", frame["y"].to_numpy()):
        _, test = split_rows(frame, 0.1, stratify=stratify)
        assert frame["y"].iloc[test].value_counts().to_dict() == {"a": 16, "b": 3, "c": 1}


@pytest.mark.parametrize("seed", range(20))
def test_rare_classes_stay_in_training(seed):
    frame = pd.DataFrame({"y": ["a"] * 30 + ["b"] * 2 + ["c"] * 3 + ["d"]})
    train, test = split_rows(frame, 0.5, seed, stratify="y")
    counts = frame["y"].iloc[train].value_counts()
    assert counts["b"] == 2
    assert counts["c"] >= 2
    assert counts["d"] == 1
    assert len(test) == 18


def test_classes_too_small_to_hold_out():
    frame = pd.DataFrame({"y": ["a", "b", "c"] * 2})
    with pytest.raises(InputError, match="No class has more than two rows, so none can be held out"):
        split_rows(frame, 0.3, stratify="y")


def test_groups_are_held_out_whole():
    frame = table()
    train, test = split_rows(frame, 0.2, split_by="patient")
    assert set(frame["patient"].iloc[train]).isdisjoint(frame["patient"].iloc[test])


def test_groups_do_not_depend_on_the_order_of_rows():
    frame = table()
    shuffled = frame.sample(frac=1.0, random_state=1)
    held = [set(part["patient"].iloc[split_rows(part, 0.2, split_by="patient")[1]]) for part in (frame, shuffled)]
    assert held[0] == held[1]


def test_groups_larger_than_the_share():
    frame = pd.DataFrame({"g": [1] * 10 + [2] * 6 + [3] * 8})
    _, test = split_rows(frame, 0.1, split_by="g")
    assert set(frame["g"].iloc[test]) == {2}


@pytest.mark.parametrize("form", ["datetime", "text", "number", "day.month"])
def test_the_latest_rows_are_held_out(form):
    frame = table()
    expected = np.sort(np.argsort(frame["day"].to_numpy())[-20:])
    if form == "text":
        frame["day"] = frame["day"].dt.strftime("%Y-%m-%d")
    elif form == "day.month":
        frame["day"] = frame["day"].dt.strftime("%d.%m.%Y")
    elif form == "number":
        frame["day"] = frame["day"].dt.day_of_year
    assert split_rows(frame, 0.1, time="day")[1].tolist() == expected.tolist()


def test_rows_of_one_time_stay_together():
    frame = pd.DataFrame({"t": [1] * 10 + [2] * 5 + [3] * 5})
    for holdout in (0.1, 0.2, 0.3, 0.45):
        train, test = split_rows(frame, holdout, time="t")
        assert frame["t"].iloc[train].max() < frame["t"].iloc[test].min()
    assert len(split_rows(frame, 0.3, time="t")[1]) == 5
    assert len(split_rows(frame, 0.45, time="t")[1]) == 10


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"holdout": 1.0},
            r"The hold-out share is 1\.0 but must be at least 0 and below 1; try --holdout 0\.1",
        ),
        ({"holdout": -0.1}, r"The hold-out share is -0\.1 but must be"),
        ({"holdout": float("nan")}, r"The hold-out share is nan but must be"),
        ({"holdout": "0.1"}, r"The hold-out share is 0\.1 but must be"),
        (
            {"holdout": 0.999},
            r"Holding out 0\.999 of 200 rows leaves fewer than two to learn from; use a smaller",
        ),
        ({"split_by": "patiant"}, r"no column 'patiant' for --split-by; did you mean 'patient'"),
        (
            {"split_by": "one"},
            r"Column 'one' has one group \('same'\), and --split-by holds out whole groups; choose",
        ),
        (
            {"split_by": "gap"},
            r"Column 'gap' is missing in 1 row\(s\), the first of them row 3, .* --split-by; fill",
        ),
        ({"time": "dya"}, r"no column 'dya' for --time; did you mean 'day'"),
        ({"time": "words"}, r"Column 'words' should hold dates but has 'later' in row 1; correct it"),
        ({"time": "one"}, r"Column 'one' should hold dates but has 'same' in row 1"),
        (
            {"time": "still"},
            r"Column 'still' has too few different times to hold out the latest rows; choose",
        ),
        ({"time": "gap"}, r"Column 'gap' is missing in 1 row\(s\)"),
        (
            {"time": "flag"},
            r"Column 'flag' should hold dates or numbers for --time but holds bool values",
        ),
        ({"time": "day", "split_by": "patient"}, r"use --split-by or --time, not both"),
        ({"stratify": "gap"}, r"Column 'gap' is missing in 1 row\(s\)"),
        ({"stratify": ["a", "b"]}, r"The classes have the shape \(2,\) for 200 rows; give one per row"),
    ],
)
def test_bad_options(options, sentence):
    frame = table().assign(one="same", still=7, words="later", gap=1.0, flag=[True, False] * 100)
    frame.loc[2, "gap"] = np.nan
    with pytest.raises(InputError, match=sentence):
        split_rows(frame, **options)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows(rows):
    with pytest.raises(InputError, match=rf"The table has {rows} rows?, which is too few to learn from"):
        split_rows(table(4).iloc[:rows])
    with pytest.raises(InputError, match=r"Holding out 0\.1 of 2 rows leaves fewer than two"):
        split_rows(table(2))
