"""What a column is taken for, and the note or sentence where it cannot be an input."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from credo.errors import InputError
from credo.tables.columns.kinds import find_kind
from credo.tables.encode.encoder import TableEncoder


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "numeric"),
        ([1.5, None, 3.0], "numeric"),
        (pd.array([1, None], "Int64"), "numeric"),
        (pd.to_timedelta([1, 2], unit="s"), "numeric"),
        ([Decimal("1.5"), Decimal("2")], "numeric"),
        (["1", "2.5", None], "numeric"),
        ([True, False], "boolean"),
        ([True, None, False], "boolean"),
        (pd.array([True, None], "boolean"), "boolean"),
        (["a", "b", None], "category"),
        (["1", "2", "A"], "category"),
        (pd.Categorical([1, 2, 1]), "category"),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "date"),
        (pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Berlin"), "date"),
        ([datetime.date(2024, 1, 1), None], "date"),
        (["2024-01-01", "2024-02-01"], "date"),
        (["2024-01-01 10:00", None, "2024-02-01"], "date"),
        ([None, None], "none"),
        ([np.nan, np.nan], "none"),
        ([[1], [2, 3]], "none"),
        ([1j, 2j], "none"),
    ],
)
def test_kind(values, kind):
    assert find_kind(pd.Series(values, name="x")).kind == kind


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["31.01.2024", "01.02.2024"], "%d.%m.%Y"),
        (["31/01/2024", "01/02/2024"], "%d/%m/%Y"),
        (["01/31/2024", "01/02/2024"], "%m/%d/%Y"),
        (["5 Jan 2024", "17 Feb 2024"], "%d %b %Y"),
    ],
)
def test_date_format_is_found_without_a_note(values, form):
    kind = find_kind(pd.Series(values, name="x"))
    assert (kind.kind, kind.form, kind.note) == ("date", form, "")


def test_ambiguous_dates_are_noted():
    kind = find_kind(pd.Series(["01/02/2024", "03/04/2024"], name="x"))
    assert kind.form == "%m/%d/%Y"
    assert "month first" in kind.note


def test_ids_and_free_text_are_left_out_with_a_note():
    kind = find_kind(pd.Series([f"customer {i}" for i in range(300)], name="who"))
    assert kind.kind == "none"
    assert kind.note == ("Column 'who' looks like an id or free text (300 distinct texts in 300 rows) and is left out.")


def test_many_categories_with_many_rows_each_are_kept():
    assert find_kind(pd.Series([f"city {i % 150}" for i in range(600)], name="x")).kind == "category"


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "id", "ID", "__index_level_0__"])
def test_row_numbers_are_left_out_with_a_note(name):
    kind = find_kind(pd.Series(range(10), name=name))
    assert kind.kind == "none"
    assert kind.note == f"Column '{name}' numbers the rows and is left out."


def test_ids_may_be_wanted():
    assert find_kind(pd.Series(range(10), name="id"), ids=False).kind == "numeric"
    assert find_kind(pd.Series([f"c{i}" for i in range(300)]), ids=False).kind == "category"


def test_distinct_whole_numbers_with_a_meaning_are_kept():
    assert find_kind(pd.Series(range(10), name="dose")).kind == "numeric"
    assert find_kind(pd.Series([1, 1, 2], name="id")).kind == "numeric"


def test_numbers_with_a_few_words_are_refused():
    values = [str(i / 7) for i in range(99)] + ["unknown"]
    sentence = r"Column 'x' holds numbers but also text such as 'unknown' in row 100; replace the text by numbers"
    with pytest.raises(InputError, match=sentence):
        find_kind(pd.Series(values, name="x"))


def test_one_word_among_few_numbers_is_a_mistake_not_a_category():
    frame = pd.DataFrame({"a": ["1", "x", "3", "4", "5", "6"], "y": [2.5, 3, 4, 5, 1, 2]})
    with pytest.raises(InputError, match="'a' holds numbers but also text such as 'x' in row 2"):
        TableEncoder.learn(frame, "y")
    grades = pd.DataFrame({"a": ["1", "2", "3", "4+"] * 5, "y": range(20)})
    assert len(TableEncoder.learn(grades, "y", "regression").feature_names) == 4
