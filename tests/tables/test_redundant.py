"""Columns that number the rows or repeat another column are left out, each with a sentence."""

import numpy as np
import pandas as pd
import pytest

from credo.tables.columns.redundant import numbers_rows
from credo.tables.encode.encoder import TableEncoder

ROWS = 300


def learned(frame, **options):
    encoder = TableEncoder.learn(frame, "y", missing="auto", **options)
    return [column.name for column in encoder.columns], encoder.notes


def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    return pd.DataFrame({"x": x, "town": rng.choice(list("abc"), ROWS), "y": x + rng.normal(0, 0.1, ROWS)})


def test_row_numbers_are_left_out_by_what_they_are():
    frame = table().assign(customer=np.random.default_rng(1).permutation(ROWS) + 70_000)
    names, notes = learned(frame)
    assert names == ["x", "town"]
    assert any(
        note == "Column 'customer' numbers the rows (whole numbers without gaps, on which the target does not depend) "
        "and is left out."
        for note in notes
    )


@pytest.mark.parametrize("held", [0.0, 0.4])
def test_false_alarms_of_numbers_that_the_target_does_not_follow(held):
    """An id is kept with probability below 2 · 10⁻³ (two statistics beyond 4 standard errors): 200 of 200 are found."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        ids = rng.permutation(200)[: int(200 * (1 - held))]
        assert numbers_rows(pd.Series(ids), [rng.normal(size=len(ids))])


def test_a_time_index_is_an_input():
    steps = np.arange(ROWS)
    trend = table().assign(day=steps)
    trend["y"] += 0.02 * steps
    wave = table().assign(day=steps)
    wave["y"] += 3 * np.sin(steps / 10)
    for frame in (trend, wave):
        assert learned(frame)[0] == ["x", "town", "day"]
    rising = table().assign(day=steps)
    rising["y"] = np.where(steps > ROWS / 2, "late", "early")
    assert "day" in learned(rising)[0]


def test_counts_and_the_only_column_are_inputs():
    assert "rooms" in learned(table().assign(rooms=np.arange(ROWS) % 50))[0]
    only = pd.DataFrame({"id_of": np.arange(ROWS), "y": np.random.default_rng(3).normal(size=ROWS)})
    assert learned(only)[0] == ["id_of"]


@pytest.mark.parametrize(
    ("copy", "of"),
    [
        (lambda frame: frame["x"].to_numpy(), "x"),
        (lambda frame: 1000.0 * frame["x"] + 7, "x"),
        (lambda frame: -2.5 * frame["x"], "x"),
        (lambda frame: frame["town"].map({"a": "Aachen", "b": "Bonn", "c": "Celle"}), "town"),
    ],
)
def test_copies_are_left_out(copy, of):
    frame = table()
    frame["again"] = copy(frame)
    names, notes = learned(frame)
    assert names == ["x", "town"]
    assert f"Column 'again' says the same as '{of}' and is left out." in notes


def test_what_is_nearly_a_copy_stays():
    frame = table()
    frame["near"] = frame["x"] + np.random.default_rng(4).normal(0, 1e-3, ROWS)
    frame["gappy"] = frame["x"].where(frame.index > 5)
    frame["almost"] = frame["town"].where(frame.index != 7, "b")
    frame.loc[7, "town"] = "a"
    assert learned(frame)[0] == ["x", "town", "near", "gappy", "almost"]


def test_copies_in_a_long_table_are_compared_in_all_rows():
    rng = np.random.default_rng(5)
    x = rng.normal(size=50_001)
    other = x.copy()
    other[3] += 1.0  # not among the rows of the sample
    frame = pd.DataFrame({"x": x, "other": other, "same": 3 * x, "y": x + rng.normal(size=len(x))})
    assert learned(frame)[0] == ["x", "other"]


def test_constants_are_left_out():
    names, notes = learned(table().assign(unit="kg", zero=0.0))
    assert names == ["x", "town"]
    assert sum("has one value in all training rows" in note for note in notes) == 2
