"""The encoder of a whole table: learned on training rows only, saved as JSON, one sentence per bad input."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import credo.tables
from credo.errors import ArtifactError, InputError
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.targets import choose_task
from credo.tables.read.files import read_table

BUNDLED = Path(credo.tables.__file__).parent / "bundled" / "diabetes.csv"


def table(rows=60, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(10, 3, rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "new": rng.random(rows) < 0.5,
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5000, rows), unit="h"),
            "weight": rng.integers(1, 4, rows),
            "second": rng.normal(size=rows),
            "kind": rng.choice(["cat", "dog"], rows),
            "events": rng.poisson(3.0, rows),
            "price": 1e6 + rng.normal(size=rows),
        }
    )


def round_trip(encoder: TableEncoder) -> TableEncoder:
    return TableEncoder.from_config(json.loads(json.dumps(encoder.to_config(), allow_nan=False)))


def gappy() -> pd.DataFrame:
    frame = table()
    frame.loc[[1, 4], "size"] = np.nan
    frame.loc[[4, 7, 9], "colour"] = None
    frame.loc[[11], "sold"] = pd.NaT
    return frame


@pytest.mark.parametrize("target", ["price", ["price", "second"], "kind", "events"])
@pytest.mark.parametrize("missing", ["error", "drop", "impute"])
def test_saved_encoder_gives_identical_arrays(target, missing):
    frame = table() if missing == "error" else gappy()
    task = "count" if target == "events" else "auto"
    encoder = TableEncoder.learn(frame, target, task, missing=missing, weights="weight")
    again = round_trip(encoder)
    assert again == encoder
    for ours, theirs in zip(encoder.arrays(frame), again.arrays(frame)):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_shapes_names_and_types():
    frame = table()
    encoder = TableEncoder.learn(frame, "price", ignore=["kind", "events"], weights="weight")
    waves = [f"sold:{part}_{wave}" for part in ("day_of_year", "day_of_week", "hour_of_day") for wave in ("sin", "cos")]
    assert encoder.feature_names == (
        *("size", "colour=blue", "colour=green", "colour=red", "new", "sold:elapsed"),
        *waves,
        "second",
    )
    arrays = encoder.arrays(frame)
    assert arrays.inputs.shape == (60, len(encoder.feature_names))
    assert {array.dtype for array in arrays[:3]} == {np.dtype(np.float32)}
    assert arrays.targets.shape == (60,)
    assert np.isfinite(arrays.inputs).all()


def test_large_offset_target_is_right_in_both_directions():
    frame = table(2000)
    encoder = TableEncoder.learn(frame, "price")
    y = frame["price"].to_numpy()
    standardised = encoder.targets(frame).astype(np.float64)
    np.testing.assert_allclose(standardised, (y - y.mean()) / y.std(), atol=1e-6)
    np.testing.assert_allclose(standardised * encoder.target_scale + encoder.target_shift, y, rtol=0, atol=1e-6)
    assert encoder.target_scale.dtype == np.float64
    assert encoder.target_scale.shape == ()


def test_several_targets():
    frame = table()
    encoder = TableEncoder.learn(frame, ["price", "second"])
    assert encoder.target == ["price", "second"]
    assert encoder.targets(frame).shape == (60, 2)
    back = encoder.targets(frame) * encoder.target_scale + encoder.target_shift
    np.testing.assert_allclose(back, frame[["price", "second"]], atol=1e-6)
    with pytest.raises(InputError, match="Several targets need --task regression, not classification"):
        TableEncoder.learn(frame, ["price", "second"], task="classification")


def test_test_rows_do_not_change_what_is_learned():
    train, test = table(), table(seed=1)
    encoder = TableEncoder.learn(train, "price")
    before, expected = encoder.to_config(), encoder.inputs(train)
    test["size"] += 1e3
    test["colour"] = "red"
    encoder.arrays(test)
    assert encoder.to_config() == before
    np.testing.assert_array_equal(encoder.inputs(train), expected)
    # Whatever is appended, a row is encoded as it is alone.
    both = pd.concat([train, test], ignore_index=True)
    np.testing.assert_array_equal(encoder.inputs(both)[:60], expected)
    assert TableEncoder.learn(both, "price").to_config() != before


def test_the_frame_is_left_as_it_was():
    frame = gappy()
    copied = frame.copy(deep=True)
    TableEncoder.learn(frame, "price", missing="impute").arrays(frame)
    pd.testing.assert_frame_equal(frame, copied)


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes"] * 20, "binary", ("no", "yes")),
        (["b", "a", "c"] * 20, "multiclass", ("a", "b", "c")),
        ([True, False] * 20, "binary", (False, True)),
        ([0, 1] * 20, "binary", (0, 1)),
        ([1.0, 2.0] * 20, "binary", (1, 2)),
        ([-1, 1] * 20, "binary", (-1, 1)),
        ([0, 1, 2] * 20, "multiclass", (0, 1, 2)),
        (list(range(1, 11)) * 20, "multiclass", tuple(range(1, 11))),
        (list(range(11)) * 20, "regression", None),
        ([3, 4, 5] * 20, "regression", None),
        ([0, 1, 2, 4] * 20, "regression", None),
        ([0, 1, 2] * 3, "regression", None),
        ([0] * 60 + [1] * 40 + [2] * 20 + [3] * 4, "regression", None),
        ([0.5, 1.5] * 20, "regression", None),
    ],
)
def test_task_is_chosen_by_the_documented_rule(values, task, classes):
    frame = pd.DataFrame({"x": np.arange(len(values)) % 7, "y": values})
    encoder = TableEncoder.learn(frame, "y")
    assert encoder.task == task
    assert encoder.classes == classes
    assert encoder.notes[0].startswith("The target 'y' holds ")
    assert "use --task" in encoder.notes[0]


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        ([0, 1] * 30, "classification", "holds two whole numbers, 0 and 1, so this is classification"),
        ([1, 2, 3, 4, 5] * 12, "classification", "holds the whole numbers 1 to 5, none of them rare, so this is"),
        ([1, 2, 3, 4, 5] * 6, "regression", "5 distinct whole numbers on 30 rows, fewer than 10 rows for each, so"),
        ([1, 2, 3, 4, 6] * 12, "regression", "which do not run without a gap from 0 or 1, so this is regression"),
        ([0, 1] * 60 + [2], "regression", "of which 2 has fewer than a tenth of the rows of 0, so this is regression"),
        (list(range(11)) * 12, "regression", "11 distinct whole numbers, more than 10, so this is regression"),
        ([0.5, 1.0, 2.0] * 20, "regression", "3 distinct numbers, not all of them whole, so this is regression"),
    ],
)
def test_the_note_says_which_condition_decides(values, task, words):
    chosen, note = choose_task(pd.DataFrame({"y": values}), "y")
    assert chosen == task
    assert words in note


def test_task_can_be_set():
    frame = pd.DataFrame({"x": np.arange(40) % 7, "y": [0, 1] * 20})
    assert TableEncoder.learn(frame, "y", task="regression").task == "regression"
    assert TableEncoder.learn(frame, "y", task="count").task == "count"
    assert TableEncoder.learn(frame, "y", task="binary").task == "binary"
    assert TableEncoder.learn(frame, "y", task="regression").notes == []
    with pytest.raises(InputError, match="has 2 classes, so the task is not multiclass"):
        TableEncoder.learn(frame, "y", task="multiclass")
    with pytest.raises(InputError, match=r"Unknown task 'regresion'; did you mean 'regression'"):
        TableEncoder.learn(frame, "y", task="regresion")
    with pytest.raises(InputError, match=r"Unknown task '17'; use auto, regression, classification or count"):
        TableEncoder.learn(frame, "y", task="17")


def test_labels_come_back_as_they_were():
    frame = pd.DataFrame({"x": np.arange(40), "text": ["no", "yes"] * 20, "code": [7, 3] * 20})
    text = TableEncoder.learn(frame, "text")
    assert text.targets(frame).dtype == np.int32
    assert round_trip(text).labels(text.targets(frame)).tolist() == frame["text"].tolist()
    code = TableEncoder.learn(frame, "code")
    assert code.labels(code.targets(frame)).tolist() == frame["code"].tolist()
    assert code.targets(frame.astype({"code": float})).tolist() == code.targets(frame).tolist()
    with pytest.raises(InputError, match="There are no class labels in a regression task"):
        TableEncoder.learn(frame, "x").labels(np.array([0]))


def test_counts_are_kept():
    frame = table()
    encoder = TableEncoder.learn(frame, "events", task="count")
    assert encoder.targets(frame).dtype == np.float32
    assert encoder.targets(frame).tolist() == frame["events"].tolist()
    assert (float(encoder.target_shift), float(encoder.target_scale)) == (0.0, 1.0)


def bad_target(values, task="auto"):
    frame = pd.DataFrame({"x": np.arange(len(values)) % 7, "y": values})
    TableEncoder.learn(frame, "y", task=task)


@pytest.mark.parametrize(
    ("values", "task", "sentence"),
    [
        (
            [3.5] * 9,
            "auto",
            r"The target 'y' is 3\.5 in every training row, so there is nothing to learn; choose",
        ),
        (["a"] * 9, "auto", r"The target 'y' is a in every training row"),
        ([2] * 9, "count", r"The target 'y' is 2 in every training row"),
        ([1.5], "auto", r"The training table has 1 row\(s\), which is too few to learn from; add rows\."),
        ([], "auto", r"The training table has 0 row\(s\)"),
        (
            ["a"] * 5 + ["b"],
            "auto",
            r"Class 'b' of the target 'y' has only one training row; add rows of it, merge",
        ),
        (
            [1.5, 2.5, np.nan],
            "auto",
            r"The target 'y' is missing in 1 row\(s\), the first of them row 3; fill it in",
        ),
        (["a", "a", None, "b", "b"], "auto", r"The target 'y' is missing in 1 row\(s\).*--missing auto"),
        ([1.5, 2.5, np.inf], "auto", r"Column 'y' has 1 infinite value\(s\), the first in row 3; replace"),
        (
            [1.0, 2.0, 1.0, 2.0, np.inf, np.inf],
            "classification",
            r"The target has an infinite value; replace",
        ),
        (
            [1, 2, "x"],
            "regression",
            r"numbers, being the target, but has 'x' in row 3; correct it or use --task classification",
        ),
        (
            ["a", "b"] * 5,
            "count",
            r"Column 'y' should hold numbers, being the target, but has 'a' in row 1; correct it",
        ),
        (
            [0, 1, 2.5],
            "count",
            r"The target 'y' has 2\.5 in row 3, but counts are whole numbers .* --task regression",
        ),
        ([0, 1, -2], "count", r"The target 'y' has -2 in row 3, but counts are whole numbers"),
        ([0, 1, 2**25], "count", r"in row 3, but counts are whole numbers from 0 to 16777216"),
        (
            pd.date_range("2024", periods=5),
            "auto",
            r"The target 'y' holds dates; turn it into a number first",
        ),
        (
            pd.date_range("2024", periods=5),
            "regression",
            r"Column 'y' should hold numbers, .* but holds dates",
        ),
    ],
)
def test_bad_targets(values, task, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        bad_target(values, task)
    assert "\n" not in str(caught.value)


def test_unknown_columns_get_a_suggestion():
    frame = table()
    with pytest.raises(InputError, match=r"no column 'prise' for the target; did you mean 'price'"):
        TableEncoder.learn(frame, "prise")
    with pytest.raises(InputError, match=r"no column 'PRICE' for the target; did you mean 'price'"):
        TableEncoder.learn(frame, "PRICE")
    with pytest.raises(InputError, match=r"no column 'zzz' for the target; it has 'size', .* and 3 more"):
        TableEncoder.learn(frame, "zzz")
    with pytest.raises(InputError, match=r"no column 'wieght' for the weights; did you mean 'weight'"):
        TableEncoder.learn(frame, "price", weights="wieght")
    with pytest.raises(InputError, match=r"no column 'colur' for being ignored; did you mean 'colour'"):
        TableEncoder.learn(frame, "price", ignore=["colur"])
    encoder = TableEncoder.learn(frame, "price")
    with pytest.raises(InputError, match=r"no column 'size' for an input of the model; did you mean 'Size'"):
        encoder.inputs(frame.rename(columns={"size": "Size"}))


def test_columns_have_one_role():
    frame = table()
    with pytest.raises(InputError, match="'price' is both target and weights"):
        TableEncoder.learn(frame, "price", weights="price")
    with pytest.raises(InputError, match="'price' is the target and cannot be ignored"):
        TableEncoder.learn(frame, "price", ignore=["price"])
    with pytest.raises(InputError, match="name each once"):
        TableEncoder.learn(frame, ["price", "price"])
    with pytest.raises(InputError, match=r"No column is left to predict 'price' from"):
        TableEncoder.learn(frame[["price"]], "price")
    with pytest.raises(InputError, match="Unknown choice 'skip' for --missing; use auto, error, drop or impute"):
        TableEncoder.learn(frame, "price", missing="skip")
    with pytest.raises(InputError, match="Expected a pandas DataFrame but got list"):
        TableEncoder.learn([[1, 2]], "price")


def test_what_is_left_out_is_noted_and_not_needed_later():
    frame = table()
    frame["name"] = [f"person {i}" for i in range(60)]
    frame["same"] = 4
    frame["empty"] = np.nan
    frame["id"] = range(60)
    encoder = TableEncoder.learn(frame, "price")
    for name in ["name", "same", "empty", "id"]:
        assert sum(f"Column '{name}' " in note and note.endswith("is left out.") for note in encoder.notes) == 1
    np.testing.assert_array_equal(
        encoder.inputs(frame), encoder.inputs(frame.drop(columns=["name", "same", "empty", "id", "price"]))
    )


def test_missing_cells_by_policy():
    frame = gappy()
    with pytest.raises(InputError, match=r"Column 'size' is missing in 2 rows \(first: row 2\).*--missing auto"):
        TableEncoder.learn(frame, "price")

    dropped = TableEncoder.learn(frame, "price", missing="drop")
    complete = [i for i in range(60) if i not in (1, 4, 7, 9, 11)]
    assert dropped.arrays(frame).rows.tolist() == complete
    assert "5 of 60 training rows have missing cells and are left out." in dropped.notes
    clean = TableEncoder.learn(frame.iloc[complete], "price")
    np.testing.assert_array_equal(dropped.arrays(frame).inputs, clean.inputs(frame.iloc[complete]))
    with pytest.raises(InputError, match="Column 'size' is missing in 2 rows"):
        dropped.inputs(frame)

    imputed = TableEncoder.learn(frame, "price", missing="impute")
    inputs = imputed.inputs(frame)
    marks = [i for i, name in enumerate(imputed.feature_names) if name.endswith(":missing")]
    assert [imputed.feature_names[i] for i in marks] == ["size:missing", "colour:missing", "sold:missing"]
    assert [np.flatnonzero(inputs[:, i]).tolist() for i in marks] == [[1, 4], [4, 7, 9], [11]]
    assert inputs.shape[0] == 60
    assert np.isfinite(inputs).all()


@pytest.mark.parametrize("missing", ["drop", "impute"])
def test_rows_without_a_target_are_left_out_where_cells_may_be_missing(missing):
    frame = table()
    frame.loc[3, "price"] = np.nan
    with pytest.raises(InputError, match="target 'price' is missing"):
        TableEncoder.learn(frame, "price")
    encoder = TableEncoder.learn(frame, "price", missing=missing)
    assert encoder.columns == TableEncoder.learn(frame.drop(index=3), "price", missing=missing).columns
    assert 3 not in encoder.keep(frame)
    assert 3 in encoder.keep(frame, target=False)
    assert encoder.keep(frame.drop(columns="price"), target=False).tolist() == list(range(60))


def test_dropping_everything_is_an_error():
    frame = pd.DataFrame({"a": [1.0, np.nan] * 3, "b": [np.nan, 1.0] * 3, "y": np.arange(6.0)})
    with pytest.raises(InputError, match=r"Only 0 of 6 training rows can be used .*--missing auto"):
        TableEncoder.learn(frame, "y", missing="drop")


def test_a_weight_counts_as_that_many_rows_and_zero_as_none():
    frame = gappy().drop(columns=["kind", "events"])
    frame["weight"] = np.arange(60) % 4
    repeated = frame.loc[frame.index.repeat(frame["weight"])].assign(weight=1)
    weighted = TableEncoder.learn(frame, "price", missing="impute", weights="weight").to_config()
    plain = TableEncoder.learn(repeated, "price", missing="impute", weights="weight").to_config()
    for ours, theirs in zip([*weighted["columns"], weighted["target"]], [*plain["columns"], plain["target"]]):
        for name, value in ours.items():
            if name in ("shift", "scale"):
                value = pytest.approx(value, rel=1e-9)
            assert theirs[name] == value


def test_zero_weight_rows_are_not_looked_at():
    frame = table()
    frame["weight"] = 1
    spoiled = frame.copy()
    spoiled.loc[5, ["size", "price", "weight"]] = [1e9, -1e9, 0]
    spoiled.loc[5, "colour"] = "never"
    encoder = TableEncoder.learn(spoiled, "price", weights="weight")
    assert encoder == TableEncoder.learn(frame.drop(index=5), "price", weights="weight")
    arrays = encoder.arrays(spoiled)
    assert arrays.rows.tolist() == [i for i in range(60) if i != 5]
    assert (arrays.weights > 0).all()


def test_weights_are_as_given_and_ones_without_a_column():
    frame = table()
    assert TableEncoder.learn(frame, "price", weights="weight").weights(frame).tolist() == frame["weight"].tolist()
    assert TableEncoder.learn(frame, "price").weights(frame).tolist() == [1.0] * 60


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (-1.0, r"Column 'w' has the weight -1 in row 3; weights must be 0 or more"),
        (np.nan, r"Column 'w' has a missing weight in row 3; weights must be 0 or more"),
        (np.inf, r"Column 'w' has 1 infinite value\(s\), the first in row 3"),
        ("heavy", r"Column 'w' should hold weights but has 'heavy' in row 3"),
    ],
)
def test_bad_weights(value, sentence):
    frame = table().assign(w=[1.0, 1.0, value] + [1.0] * 57)
    with pytest.raises(InputError, match=sentence):
        TableEncoder.learn(frame, "price", weights="w")


def test_all_weights_zero():
    with pytest.raises(InputError, match=r"Only 0 of 60 training rows can be used once .*zero weights"):
        TableEncoder.learn(table().assign(w=0.0), "price", weights="w")


def test_rows_are_named_as_in_the_file_after_a_split():
    frame = table()
    encoder = TableEncoder.learn(frame, "price")
    later = frame.iloc[30:].copy()
    later.loc[42, "colour"] = "pink"
    with pytest.raises(InputError, match="the category 'pink' in row 43"):
        encoder.inputs(later)
    assert encoder.inputs(later, unseen="zeros")[12, 1:4].tolist() == [0.0, 0.0, 0.0]


def test_unseen_class():
    frame = table()
    encoder = TableEncoder.learn(frame, "kind")
    frame.loc[8, "kind"] = "cow"
    with pytest.raises(InputError, match=r"has the class 'cow' in row 9, which no training row had; .*'cat', 'dog'"):
        encoder.targets(frame)


def test_names_that_are_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)))
    encoder = TableEncoder.learn(frame, "2")
    assert encoder.feature_names == ("0", "1")
    assert encoder.inputs(frame).shape == (20, 2)


def test_empty_table_to_predict_has_no_rows():
    encoder = TableEncoder.learn(table(), "price")
    assert encoder.inputs(table().iloc[:0]).shape == (0, len(encoder.feature_names))


def test_bundled_table():
    frame = read_table(BUNDLED)
    encoder = TableEncoder.learn(frame, "progression")
    assert encoder.task == "regression"
    assert encoder.feature_names[:4] == ("age", "sex=A", "sex=B", "bmi")
    inputs = encoder.inputs(frame).astype(np.float64)
    numeric = [i for i, name in enumerate(encoder.feature_names) if "=" not in name]
    np.testing.assert_allclose(inputs[:, numeric].mean(0), 0.0, atol=1e-6)
    np.testing.assert_allclose(inputs[:, numeric].std(0), 1.0, atol=1e-6)


def damaged(path, value):
    config = copy.deepcopy(TableEncoder.learn(table(), "price").to_config())
    *parents, last = path
    place = config
    for step in parents:
        place = place[step]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (["format"], "other", "not the saved encoder of a credo run"),
        (["version"], 2, "has format version 2 but this credo reads version 1"),
        (["missing"], "skip", "no columns or no policy"),
        (["missing"], 3, "setting 'missing' is 3"),
        (["columns"], [], "no columns or no policy"),
        (["columns"], KeyError, "the table encoder lacks setting 'columns'"),
        (["columns", 0], "x", "a column has the unknown kind None"),
        (["columns", 0, "scale"], -1.0, "numeric has a scale that is not positive"),
        (["target"], None, "the target has the unknown kind None"),
        (["target", "shift"], [1.0, 2.0], "regression has settings of unequal lengths"),
        (["target", "shift"], 1.0, r"regression setting 'shift' is 1\.0"),
        (["weight_column"], 5, "setting 'weight_column' is 5"),
        (["notes"], [1], "setting 'notes' is 1"),
        (["extra"], 1, "the table encoder has the unknown setting 'extra'"),
    ],
)
def test_damaged_config_is_refused(path, value, sentence):
    with pytest.raises(ArtifactError, match=sentence):
        TableEncoder.from_config(damaged(path, value))


@pytest.mark.parametrize("config", [None, [], "text", {}])
def test_foreign_config_is_refused(config):
    with pytest.raises(ArtifactError, match="This is not the saved encoder of a credo run"):
        TableEncoder.from_config(config)
