"""Folds that can all be fitted, or one sentence before the first fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import credo
from credo.errors import InputError
from credo.evaluation.comparison import run
from credo.evaluation.comparison.plan import find_folds

HOW = {"methods": ["linear", "forest"], "baselines": False}


def labelled(**sizes: int) -> pd.DataFrame:
    """Two inputs, and so many rows of each class, in random order."""
    rng = np.random.default_rng(0)
    kinds = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
    x = rng.normal(size=(len(kinds), 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "group": np.arange(len(kinds)) % 10, "kind": kinds})


@pytest.fixture
def unfitted(monkeypatch):
    """Nothing may be fitted."""
    monkeypatch.setattr(run, "run_cell", lambda *_: pytest.fail("a fit was run"))


def test_a_class_that_is_missing_is_a_sentence(unfitted):
    frame = labelled(red=30, blue=20)
    frame.loc[3, "kind"] = None
    with pytest.raises(InputError, match=r"'kind', the target, is missing in 1 row\(s\), the first of them row 4"):
        credo.compare(frame.drop(columns="group"), "kind", missing="error", **HOW)


def test_a_group_that_is_missing_is_a_sentence(unfitted):
    frame = labelled(red=30, blue=20).astype({"group": object})
    frame.loc[[5, 9], "group"] = [None, ""]
    with pytest.raises(InputError, match=r"'group', --split-by, is missing in 2 row\(s\), the first of them row 6"):
        credo.compare(frame, "kind", split_by="group", missing="drop", **HOW)


def test_a_class_that_is_too_rare_is_a_sentence_before_the_first_fit(unfitted):
    with pytest.raises(
        InputError, match=r"Class 'green' .* has 2 rows, of which fold . of 5 leaves 1 .* merge it"
    ) as error:
        credo.compare(labelled(red=30, blue=20, green=2).drop(columns="group"), "kind", **HOW)
    assert "number of folds" not in str(error.value)
    with pytest.raises(InputError, match=r"'green' .* has 3 rows, of which fold . of 2 leaves 1 .* number of folds"):
        credo.compare(labelled(red=30, blue=20, green=3).drop(columns="group"), "kind", folds=2, **HOW)


def test_rows_with_missing_cells_do_not_count_for_a_class(unfitted):
    frame = labelled(red=30, blue=20, green=5).drop(columns="group")
    frame.loc[frame.index[frame["kind"] == "green"][:3], "a"] = np.nan
    with pytest.raises(InputError, match=r"Class 'green' .* has 2 rows"):
        credo.compare(frame, "kind", missing="drop", **HOW)


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_class_is_spread_over_the_folds(seed):
    frame = labelled(red=40, blue=30, green=3)
    for train, _ in find_folds(frame, "kind", "classification", 5, seed, None):
        assert (frame["kind"].iloc[train] == "green").sum() >= 2


def test_ordinary_tables_keep_their_folds():
    frame = labelled(red=30, blue=20)
    cuts = {
        "classification": StratifiedKFold(5, shuffle=True, random_state=3).split(frame, frame["kind"]),
        "regression": KFold(5, shuffle=True, random_state=3).split(frame),
    }
    for task, cut in cuts.items():
        for (train, held), (same_train, same_held) in zip(find_folds(frame, "kind", task, 5, 3, None), cut):
            assert np.array_equal(train, same_train)
            assert np.array_equal(held, same_held)


def test_classes_that_are_all_rare_still_have_folds():
    frame = labelled(red=4, blue=4, green=4)
    assert len(find_folds(frame, "kind", "classification", 5, 0, None)) == 5


def test_a_target_that_is_constant_without_a_fold_is_a_sentence(unfitted):
    frame = labelled(red=50).assign(number=0)
    frame.loc[frame["group"] == 4, "number"] = [1, 2, 3, 1, 2]
    with pytest.raises(InputError, match=r"Fold . of 5 cannot be fitted .*'number' is 0 in every training row"):
        credo.compare(frame.drop(columns="kind"), "number", task="count", split_by="group", **HOW)


def test_a_fold_without_a_whole_row_is_a_sentence(unfitted):
    frame = labelled(red=25, blue=25)
    frame.loc[frame["group"].isin([2, 3]), "a"] = np.nan
    frame["group"] = frame["group"] // 2
    with pytest.raises(InputError, match=r"Every row that fold . of 5 holds out has a missing cell"):
        credo.compare(frame, "kind", split_by="group", missing="drop", **HOW)


def test_columns_have_one_role(unfitted):
    frame = labelled(red=30, blue=20)
    with pytest.raises(InputError, match="'kind' is the target; choose another column for --split-by"):
        credo.compare(frame, "kind", split_by="kind", **HOW)
    with pytest.raises(InputError, match="Several targets need --task regression"):
        credo.compare(frame, ["kind", "group"], task="classification", **HOW)
