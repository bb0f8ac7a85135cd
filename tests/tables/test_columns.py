"""Encoders of single columns: what they write, what they refuse, and that they are plain data."""

import json

import numpy as np
import pandas as pd
import pytest

from credo.errors import ArtifactError, InputError
from credo.tables.encode import categories, columns
from credo.tables.encode.columns import (
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    NumericColumn,
    column_from_config,
    learn_column,
)
from credo.tables.encode.config import to_plain


def encode(column, values, unseen="error"):
    series = pd.Series(values, name=column.name)
    out = np.full((len(series), len(column.names)), np.nan, np.float32)
    column.encode(series, out, unseen=unseen)
    return out


def learn(kind, values, impute=False, weights=None, form=None):
    return learn_column(kind, pd.Series(values, name="x"), weights, "impute" if impute else "error", form)


def test_numbers_are_standardised_by_the_training_rows():
    column = learn("numeric", [1.0, 2.0, 3.0])
    np.testing.assert_allclose(encode(column, [2.0, 5.0])[:, 0], [0.0, 3.0 / np.sqrt(2 / 3)], rtol=1e-6)


def test_large_offset_keeps_its_digits():
    values = 1e6 + np.random.default_rng(0).normal(size=1000)
    encoded = encode(learn("numeric", values), values)[:, 0].astype(np.float64)
    np.testing.assert_allclose(encoded, (values - values.mean()) / values.std(), atol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_crowded_numbers_are_spread_by_logarithms(sign):
    """Log-normal rows are no longer skewed; the encoding rises with the number, below the training rows too."""
    values = sign * np.exp(np.random.default_rng(0).normal(size=2000))
    column = learn("numeric", values)
    encoded = encode(column, values)[:, 0].astype(np.float64)
    assert abs((encoded**3).mean()) < columns.SKEWED < 3 < abs((((values - values.mean()) / values.std()) ** 3).mean())
    np.testing.assert_allclose([encoded.mean(), encoded.std()], [0, 1], atol=1e-5)
    new = np.linspace(-1000, 1000, 4001)
    assert (np.diff(encode(column, new)[:, 0]) > 0).all()
    slopes = np.diff(encode(column, column.end + np.array([-1e-3, 0.0, 1e-3]))[:, 0])
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-2)


def test_even_numbers_stay_as_they_are():
    assert learn("numeric", np.linspace(0, 1, 100)).width is None
    assert learn("numeric", [0.0, 0.0, 1.0, 1.0, 1.0]).width is None


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_extreme_numbers_are_standardised(unit):
    column = learn("numeric", np.array([1.0, 2.0, 3.0]) * unit)
    np.testing.assert_allclose(encode(column, [3.0 * unit])[0, 0], np.sqrt(1.5), rtol=1e-6)


def test_value_beyond_float32_is_refused():
    with pytest.raises(InputError, match=r"Column 'x' has 1e\+300 in row 2, too far from its training rows"):
        encode(learn("numeric", [1.0, 2.0, 3.0]), [1.0, 1e300])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", [0.1] * 7),
        ("boolean", [True, True]),
        ("category", ["a", "a"]),
        ("date", ["2024-01-01"] * 2),
    ],
)
def test_what_does_not_vary_is_no_column(kind, values):
    assert learn(kind, values) is None


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("numeric", [5.0, 5.0, None]),
        ("boolean", [True, True, None]),
        ("category", ["a", "a", None]),
        ("date", ["2024-01-01", "2024-01-01", None]),
    ],
)
def test_constant_with_gaps_keeps_its_indicator(kind, values):
    column = learn(kind, values, impute=True)
    assert column.names[-1] == "x:missing"
    encoded = encode(column, values)
    assert encoded[:, -1].tolist() == [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(encoded[0, :-1], encoded[2, :-1])


def test_missing_is_an_error_that_names_the_option():
    sentence = r"Column 'x' is missing in 2 rows \(first: row 2\); fill the cells, or fit with --missing auto"
    with pytest.raises(InputError, match=sentence):
        learn("numeric", [1.0, None, None, 2.0])
    with pytest.raises(InputError, match=r"missing in 1 row \(row 1\).*--missing drop"):
        encode(learn("category", ["a", "b"]), ["", "a"])


def test_impute_fills_the_training_median_and_marks_it():
    column = learn("numeric", [1.0, 2.0, 9.0, None], impute=True)
    encoded = encode(column, [None, 2.0])
    assert encoded[0, 0] == encoded[1, 0]
    assert encoded[:, 1].tolist() == [1.0, 0.0]


def test_impute_without_gaps_in_training_has_no_indicator():
    column = learn("numeric", [1.0, 2.0, 9.0], impute=True)
    assert column.names == ("x",)
    assert encode(column, [None])[0, 0] == encode(column, [2.0])[0, 0]


def test_impute_fills_the_most_common_category():
    column = learn("category", ["b", "a", "b", None], impute=True)
    assert column.names == ("x=a", "x=b", "x:missing")
    assert encode(column, [None, "a"]).tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinities_are_refused_even_when_imputing(bad):
    with pytest.raises(InputError, match=r"Column 'x' has 1 infinite value\(s\), the first in row 3; replace"):
        learn("numeric", [1.0, 2.0, bad], impute=True)


def test_text_in_a_numeric_column_names_value_and_row():
    column = learn("numeric", [1.0, 2.0])
    sentence = r"Column 'x' should hold numbers but has 'abc' in row 2; correct it or leave the cell empty\."
    with pytest.raises(InputError, match=sentence):
        encode(column, ["1.0", "abc"])
    with pytest.raises(InputError, match="Column 'x' should hold numbers but holds dates"):
        encode(column, pd.to_datetime(["2024-01-01"]))


def test_numbers_written_as_text_are_numbers():
    column = learn("numeric", [1.0, 2.0])
    np.testing.assert_array_equal(encode(column, ["1", " 2.0"]), encode(column, [1.0, 2.0]))


def test_booleans_in_every_spelling():
    column = learn("boolean", [True, False])
    assert encode(column, [True, False]).ravel().tolist() == [1.0, -1.0]
    assert encode(column, [1, 0]).ravel().tolist() == [1.0, -1.0]
    assert encode(column, ["true", "FALSE"]).ravel().tolist() == [1.0, -1.0]
    with pytest.raises(InputError, match=r"Column 'x' should hold true or false but has 'maybe' in row 2"):
        encode(column, ["true", "maybe"])


def test_categories_are_one_hot_in_sorted_order():
    column = learn("category", ["red", "blue", "red"])
    assert column.names == ("x=blue", "x=red")
    assert encode(column, ["red", "blue"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_category_codes_agree_across_number_types():
    column = learn("category", pd.Categorical([1, 2, 1]))
    for values in ([2, 1], [2.0, 1.0], ["2", "1"]):
        assert encode(column, values).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_spelling_lost_in_a_file_of_numbers_is_found_again():
    zips = learn("category", ["007", "12", "B4"])
    assert encode(zips, [7, 12])[:, :2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    answers = learn("category", ["true", "false", "maybe"])
    assert encode(answers, [True, False]).argmax(1).tolist() == [2, 0]
    ambiguous = learn("category", ["01", "001", "x"])
    with pytest.raises(InputError, match="the category '1' in row 1"):
        encode(ambiguous, [1])
    with pytest.raises(InputError, match="the category '1' in row 1"):
        encode(ambiguous, ["1"])


@pytest.mark.parametrize("kind", ["numeric", "boolean", "category", "date"])
@pytest.mark.parametrize("empty", [[None, None], [np.nan, np.nan], ["", ""]])
def test_a_column_without_any_value_is_imputed(kind, empty):
    values = {
        "numeric": [1.0, 2.0, 4.0],
        "boolean": [True, False, True],
        "category": ["b", "a", "b"],
        "date": ["2024-01-01", "2024-01-03", "2024-01-09"],
    }[kind]
    column = learn(kind, values, impute=True)
    fill = {"numeric": 2.0, "boolean": True, "category": "b", "date": "2024-01-03"}[kind]
    np.testing.assert_array_equal(encode(column, empty), encode(column, [fill, fill]))


def test_unseen_category_names_column_value_row_and_choices():
    column = learn("category", ["red", "blue"])
    sentence = (
        r"Column 'x' has the category 'green' in row 2, which no training row had; "
        r"change it to one of 'blue', 'red', fit again with rows that have it, or encode with unseen='zeros'\."
    )
    with pytest.raises(InputError, match=sentence):
        encode(column, ["red", "green"])
    assert encode(column, ["red", "green"], unseen="zeros").tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_very_many_categories_share_a_feature():
    values = [f"c{i % 150:03d}" for i in range(600)] + ["c149"] * 5
    column = learn("category", values)
    assert len(column.names) == categories.MOST_CATEGORIES
    assert column.names[-1] == "x:other"
    encoded = encode(column, ["c149", "c000", "c140", "never seen"])
    assert encoded.sum(axis=1).tolist() == [1.0] * 4
    assert encoded[:, -1].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_daily_dates_have_elapsed_time_week_and_year_but_no_hour():
    days = pd.date_range("2023-01-02", periods=400, freq="D")
    column = learn("date", days)
    waves = [f"x:{part}_{wave}" for part in ("day_of_year", "day_of_week") for wave in ("sin", "cos")]
    assert column.names == ("x:elapsed", *waves)
    encoded = encode(column, days).astype(np.float64)
    assert encoded[:, 0].mean() == pytest.approx(0.0, abs=1e-6)
    assert encoded[:, 0].std() == pytest.approx(1.0, abs=1e-6)
    angle = 2 * np.pi * (days.day_of_year.to_numpy() - 1) / 365.2425
    np.testing.assert_allclose(encoded[:, 1], np.sin(angle), atol=1e-6)
    week = 2 * np.pi * days.day_of_week.to_numpy() / 7
    np.testing.assert_allclose(encoded[:, 3:5], np.stack([np.sin(week), np.cos(week)], 1), atol=1e-6)


def test_hours_within_one_day_have_only_the_hour():
    times = pd.date_range("2024-05-01 00:00", periods=24, freq="h")
    column = learn("date", times)
    assert column.parts == ("hour_of_day",)
    hour = 2 * np.pi * np.arange(24) / 24
    np.testing.assert_allclose(encode(column, times)[:, 1:], np.stack([np.sin(hour), np.cos(hour)], 1), atol=1e-6)


def test_same_hour_every_week_has_neither_week_nor_hour():
    column = learn("date", pd.date_range("1931-05-01 13:20:07", periods=30, freq="7D"))
    assert column.parts == ("day_of_year",)


def test_dates_read_the_same_from_text_and_zones():
    column = learn("date", pd.date_range("2024-01-01", periods=50, freq="5h"))
    plain = encode(column, pd.to_datetime(["2024-01-02 03:00"]))
    np.testing.assert_array_equal(encode(column, ["2024-01-02 03:00"]), plain)
    np.testing.assert_array_equal(encode(column, pd.to_datetime(["2024-01-02 05:00+02:00"])), plain)


def test_dates_in_a_learned_format():
    column = learn("date", ["31.01.2024", "01.02.2024"], form="%d.%m.%Y")
    np.testing.assert_array_equal(encode(column, ["01.02.2024"]), encode(column, ["2024-02-01"]))
    with pytest.raises(InputError, match=r"Column 'x' should hold dates like %d.%m.%Y but has 'soon' in row 1"):
        encode(column, ["soon"])


@pytest.mark.parametrize("values", [[20240101, 20240102], ["2024-01-01", "yesterday"]])
def test_what_is_no_date_is_refused(values):
    column = learn("date", ["2024-01-01", "2024-01-02"])
    with pytest.raises(InputError, match="Column 'x' should hold dates but has '"):
        encode(column, values)


def test_a_weight_of_two_counts_as_two_rows():
    values, weights = [3.0, 1.0, None, 80.0], np.array([1.0, 8.0, 1.0, 2.0])
    repeated = [3.0, *[1.0] * 8, None, 80.0, 80.0]
    a, b = learn("numeric", values, True, weights), learn("numeric", repeated, True)
    assert a.width == b.width == 39.5
    assert (a.fill, a.indicator) == (b.fill, b.indicator)
    assert (a.shift, a.scale) == pytest.approx((b.shift, b.scale), rel=1e-12)
    assert learn("category", ["a", "b", "b"], True, np.array([5.0, 1.0, 1.0])).fill == "a"
    assert learn("boolean", [True, False, False], True, np.array([5.0, 1.0, 1.0])).fill == 1.0


EXAMPLES = [
    NumericColumn("x", 1.5, 2.0, fill=1.0, indicator=True),
    BooleanColumn("x"),
    CategoryColumn("x", ("a", "b"), fill="b"),
    DateColumn("x", 1.0, 2.0, parts=("day_of_week",), form="%d.%m.%Y"),
    NumericColumn("x", 1.5, 2.0, end=1.0, width=-2.0),
]


@pytest.mark.parametrize("column", EXAMPLES, ids=lambda column: column.kind)
def test_settings_survive_json(column):
    assert column_from_config(json.loads(json.dumps(to_plain(column)))) == column


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "numerical"}, "a column has the unknown kind 'numerical'"),
        ({"kind": ["numeric"]}, "unknown kind"),
        ({"scale": 0.0}, "numeric has a scale that is not positive"),
        ({"width": 0.0}, "numeric has a width of 0"),
        ({"scale": "2"}, "numeric setting 'scale' is '2'"),
        ({"shift": float("nan")}, "numeric setting 'shift' is nan"),
        ({"shift": True}, "numeric setting 'shift' is True"),
        ({"indicator": 1}, "numeric setting 'indicator' is 1"),
        ({"name": None}, "numeric setting 'name' is None"),
        ({"extra": 1}, "numeric has the unknown setting 'extra'"),
    ],
)
def test_damaged_settings_are_refused(change, sentence):
    plain = {**to_plain(EXAMPLES[0]), **change}
    with pytest.raises(ArtifactError, match=f"The saved encoder is damaged: .*{sentence}.*; fit again"):
        column_from_config(plain)


def test_lacking_and_inconsistent_settings_are_refused():
    plain = to_plain(EXAMPLES[0])
    del plain["shift"]
    with pytest.raises(ArtifactError, match="numeric lacks setting 'shift'"):
        column_from_config(plain)
    with pytest.raises(ArtifactError, match="category fills in an unknown category"):
        column_from_config({**to_plain(EXAMPLES[2]), "fill": "c"})
    with pytest.raises(ArtifactError, match="category needs distinct categories"):
        column_from_config({**to_plain(EXAMPLES[2]), "categories": ["a", "b", "b"]})
    with pytest.raises(ArtifactError, match="date has an unknown part"):
        column_from_config({**to_plain(EXAMPLES[3]), "parts": ["minute"]})
