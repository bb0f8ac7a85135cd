"""Copies of rows stay on one side of every split, and the user is told (D10)."""

import numpy as np
import pandas as pd
import pytest

from credo.evaluation.comparison.folds import find_folds
from credo.evaluation.comparison.plan import Plan
from credo.tables.rows.copies import copies_note, copies_of, merged, unit_codes
from credo.tables.rows.splits import split_rows


def repeated(times=4, rows=60):
    """A table whose rows are there several times, shuffled."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=rows), "town": rng.choice(["a", "b"], rows)})
    frame["y"], frame["label"] = rng.normal(size=rows), np.where(np.arange(rows) % 3 == 0, "no", "yes")
    return frame.iloc[rng.permutation(np.tile(np.arange(rows), times))].reset_index(drop=True)


def shared(frame, one, other):
    return set(frame["x"].iloc[one]) & set(frame["x"].iloc[other])


@pytest.mark.parametrize("stratify", [None, "label"])
@pytest.mark.parametrize("named", [False, True])
def test_no_copy_is_held_out_while_another_is_learned_from(stratify, named):
    frame = repeated()
    if named:
        frame["id"] = np.arange(len(frame))  # a number of the row does not make it another row
    train, held = split_rows(frame, 0.2, 1, stratify=stratify)
    assert not shared(frame, train, held)
    assert sorted([*train, *held]) == list(range(240))
    assert len(held) == 48


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_folds_keep_copies_together(task):
    frame = repeated()
    found = find_folds(frame, "y" if task == "regression" else "label", task, 5, 0, None)
    assert sorted(np.concatenate([held for _, held in found])) == list(range(240))
    assert not any(shared(frame, *fold) for fold in found)


def test_a_table_without_copies_is_split_as_ever():
    frame = repeated(1)
    order = np.random.default_rng(3).permutation(60)[:12]
    assert sorted(order) == split_rows(frame, 0.2, 3)[1].tolist()


def test_rows_of_few_kinds_are_no_copies():
    rng = np.random.default_rng(0)
    assert copies_of(pd.DataFrame(rng.integers(2, size=(200, 4)), columns=list("abcd"))) is None
    assert unit_codes([np.append(np.arange(40.0), np.zeros(200))]) is None  # one row makes up most of the table
    assert unit_codes([np.array([0.0, -0.0, *range(1, 30)])][:1])[1] == 0  # −0 is 0


def test_missing_cells_are_equal():
    frame = pd.DataFrame({"x": [*np.arange(30.0), 3.0, np.nan, np.nan], "s": [*("ab" * 15), "b", None, None]})
    assert copies_of(frame)[-3:].tolist() == [3, 31, 31]


def test_the_user_is_told():
    codes = unit_codes([np.append(np.arange(30.0), [3.0])])
    assert copies_note(codes).startswith("1 of 31 rows is a copy of another")
    assert "180 of 240 rows are copies" in copies_note(copies_of(repeated()))
    plan = Plan(repeated(), "y", "map", ["linear"], "auto", "error", 3, 0, None, None, 5, None, None)
    assert any("180 of 240 rows are copies" in note for note in plan.notes)
    assert copies_note(None) == ""


def test_units_cut_neither_copies_nor_groups():
    codes, groups = np.array([0, 1, 0, 3, 4, 4]), np.array(["a", "a", "b", "c", "c", "d"])
    units = merged(codes, groups)
    assert len(set(units[:3])) == 1
    assert len(set(units[3:])) == 1
    assert units[0] != units[3]
    assert merged(None, groups) is groups
    assert merged(codes, None) is codes
