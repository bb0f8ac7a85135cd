"""Numbers as people write them: one form for a whole column, learned from training rows and kept."""

import json

import numpy as np
import pandas as pd
import pytest

from credo.errors import InputError
from credo.storage.export.portable.cells import as_columns, encode
from credo.tables.encode.encoder import TableEncoder
from credo.tables.read import number_forms
from credo.tables.read.files import read_table, read_with_notes


@pytest.mark.parametrize(
    ("texts", "form", "values"),
    [
        (["$96,255", "$1.50", "$0"], "dot", [96255, 1.5, 0]),
        (["-$5", "$-5", "- 5", "−5", "+5"], "dot", [-5, -5, -5, -5, 5]),
        (["38%", "4.5 %"], "dot", [38, 4.5]),
        (["1,234", "56,789"], "dot", [1234, 56789]),
        (["12 000", "1'234.5", "7\u202f000"], "dot", [12000, 1234.5, 7000]),
        (["1.234,56", "7"], "comma", [1234.56, 7]),
        (["1.234", "2,5"], "comma", [1234, 2.5]),
        (["1.234.567"], "comma", [1234567]),
        (["3,50 €", "1 234,00 €"], "comma", [3.5, 1234]),
        (["38%", "0.38"], None, None),
        (["$5", "€6"], None, None),
        (["1.2.3"], None, None),
        (["1,23,456"], None, None),
        (["1.5", "2,5"], None, None),
        (["5-6"], None, None),
        (["%", "$"], None, None),
        (["1" * 100 + "%"], None, None),
        ([" " * 50_000 + "x"], None, None),
    ],
)
def test_one_form_for_all_texts(texts, form, values):
    assert number_forms.find(texts) == form
    if form is not None:
        assert [number_forms.read(text, form) for text in texts] == values


def prices(form, numbers):
    plain = [f"{number:,.2f}" for number in numbers]
    return plain if form == "dot" else [text.translate(str.maketrans(",.", ".,")) for text in plain]


@pytest.mark.parametrize("form", ["dot", "comma"])
def test_a_column_and_a_target_equal_the_plain_ones(form, tmp_path):
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"x": np.round(rng.lognormal(7, 1, 60), 2), "y": np.round(rng.lognormal(9, 1, 60), 2)})
    written = plain.assign(x=prices(form, plain["x"]), y=["$" + text for text in prices(form, plain["y"])])
    encoder, wanted = TableEncoder.learn(written, "y"), TableEncoder.learn(plain, "y")
    assert TableEncoder.from_config(json.loads(json.dumps(encoder.to_config()))) == encoder
    for made, truth in zip(encoder.arrays(written), wanted.arrays(plain)):
        np.testing.assert_array_equal(made, truth)
    np.testing.assert_array_equal(encoder.inputs(plain), wanted.inputs(plain))  # a later table may hold plain numbers
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(written)), wanted.inputs(plain))
    assert sum("holds numbers such as" in note for note in encoder.notes) == 2
    written.to_csv(tmp_path / "t.csv", index=False, sep=";")
    np.testing.assert_array_equal(encoder.inputs(read_table(tmp_path / "t.csv")), wanted.inputs(plain))


def test_a_later_file_whose_cells_all_look_plain_keeps_the_form(tmp_path):
    frame = pd.DataFrame({"x": ["1.234,5", "2.000", "17", "250"], "y": [1.0, 2.0, 3.0, 4.5]})
    encoder = TableEncoder.learn(frame, "y")
    assert encoder.text_columns == ["x"]
    (tmp_path / "t.csv").write_text("x ,z\n2.000,1\n17,2\n")
    later = read_with_notes(tmp_path / "t.csv", encoder.text_columns).frame
    np.testing.assert_array_equal(encoder.inputs(later), encoder.inputs(frame.iloc[1:3]))


def test_where_both_forms_fit_the_note_says_the_rule():
    frame = pd.DataFrame({"x": ["1,234", "5,678", "9,101"], "y": [1.0, 2.0, 3.5]})
    encoder = TableEncoder.learn(frame, "y")
    assert any("'9,101', which is read as 9101: a comma before groups of three digits" in n for n in encoder.notes)


def test_cells_of_blanks_are_missing():
    frame = pd.DataFrame({"x": ["1", "  ", "3", "\t", "5"], "town": ["a", " ", "b", "a", "b"], "y": [1.0, 2, 3, 4, 6]})
    encoder = TableEncoder.learn(frame, "y", missing="impute")
    assert {column.kind for column in encoder.columns} == {"numeric", "category"}
    assert encoder.feature_names == ("x", "x:missing", "town=a", "town=b", "town:missing")
    inputs = encoder.inputs(frame)
    assert inputs[:, 1].tolist() == [0, 1, 0, 1, 0]
    assert inputs[:, 4].tolist() == [0, 1, 0, 0, 0]
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(frame)), inputs)
    with pytest.raises(InputError, match=r"Column 'x' is missing in 2 rows"):
        TableEncoder.learn(frame, "y")


def test_a_word_among_prices_is_named():
    frame = pd.DataFrame({"x": [f"${i},000" for i in range(1, 40)] + ["unknown"], "y": np.arange(40.0)})
    with pytest.raises(InputError, match=r"Column 'x' holds numbers but also text such as 'unknown' in row 40"):
        TableEncoder.learn(frame, "y")


def test_weights_times_and_counts_have_forms_too():
    from credo.tables.rows.splits import split_rows

    frame = pd.DataFrame({"x": np.arange(20.0), "w": [f"{50 + i}%" for i in range(20)]})
    frame["n"] = [f"{1000 + 7 * i:,}" for i in range(20)]
    encoder = TableEncoder.learn(frame, "n", task="count", weights="w")
    assert encoder.targets(frame).tolist() == [1000 + 7 * i for i in range(20)]
    assert encoder.weights(frame).tolist() == [50 + i for i in range(20)]
    assert split_rows(frame.iloc[::-1], 0.1, time="n")[1].tolist() == [0, 1]


def test_runs_of_before_are_read():
    encoder = TableEncoder.learn(pd.DataFrame({"x": [1.0, 2, 4], "c": ["a", "b", "a"], "y": [1.0, 2, 3.5]}), "y")
    old = encoder.to_config()
    for part in (*old["columns"], old["target"]):
        for later in ("form", "forms", "shares"):
            part.pop(later, None)
    read = TableEncoder.from_config(old)
    assert read.columns[0] == encoder.columns[0]
    assert read.columns[1].shares == ()
