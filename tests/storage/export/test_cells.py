"""Rows of a table become the very inputs that the fit's encoder makes of them, with NumPy alone."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from credo.storage.export.portable.cells import PortableError, as_columns, encode
from credo.tables.encode.encoder import TableEncoder
from small_tables import class_frame, regression_frame


def mixed(rows=60, missing=True):
    """Every kind of column, with gaps."""
    rng = np.random.default_rng(0)
    frame = regression_frame(rows)
    frame["income"] = rng.lognormal(3, 1, rows)
    frame["debt"] = -rng.lognormal(3, 1, rows)
    frame["code"] = rng.choice(["007", "08", "9"], rows)
    frame["grade"] = pd.Categorical(rng.choice([1, 2, 3], rows))
    frame["seen"] = pd.date_range("2021-03-04 05:06:07", periods=rows, freq="7h")
    frame["day"] = pd.date_range("2021-03-04", periods=rows).strftime("%d.%m.%Y")
    frame["waited"] = pd.to_timedelta(rng.uniform(1, 100, rows), unit="s")
    frame["asked"] = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 400, rows)]
    if missing:
        for place, name in enumerate(["income", "town", "garden", "seen", "code", "day"]):
            frame[name] = frame[name].astype(object)
            frame.loc[place :: 9 + place, name] = None
    return frame


def learned(frame, missing="impute", target="price"):
    return TableEncoder.learn(frame, target, missing=missing, weights="weight")


FORMS = {
    "pandas": lambda frame: frame,
    "a dict of lists": lambda frame: {name: frame[name].tolist() for name in frame.columns},
    "a list of dicts": lambda frame: frame.to_dict("records"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_column(form):
    frame = mixed()
    encoder = learned(frame)
    assert {column.kind for column in encoder.columns} == {"numeric", "boolean", "category", "date"}
    assert any(getattr(column, "width", None) for column in encoder.columns)
    found = encode(encoder.to_config(), as_columns(FORMS[form](frame)))
    np.testing.assert_array_equal(found, encoder.inputs(frame))


def test_arrays_and_arrow_tables():
    frame = mixed(missing=False).drop(columns=["waited", "asked"])
    frame["grade"] = frame["grade"].astype(int)
    encoder = learned(frame)
    wanted = encoder.inputs(frame)
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(pa.Table.from_pandas(frame))), wanted)
    arrays = {name: frame[name].to_numpy() for name in frame.columns}
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(arrays)), wanted)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_spans_of_time_are_seconds_in_any_unit(unit):
    frame = mixed()[["size", "waited", "price", "weight"]]
    frame["waited"] = frame["waited"].dt.floor("s")
    frame.loc[4, "waited"] = None
    encoder = learned(frame)
    wanted = encoder.inputs(frame)
    spans = frame["waited"].to_numpy().astype(f"timedelta64[{unit}]")
    for cells in (spans, list(spans)):
        rows = {"size": frame["size"].to_numpy(), "waited": cells}
        np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(rows)), wanted)


def test_one_row_and_other_spellings():
    frame = mixed(missing=False)
    encoder = learned(frame, missing="error")
    row = frame.iloc[[3]]
    cells = row.iloc[0].to_dict() | {
        "rooms": str(row["rooms"].iloc[0]), "garden": str(bool(row["garden"].iloc[0])).lower(),
        "grade": float(row["grade"].iloc[0]), "seen": row["seen"].iloc[0].isoformat() + "Z",
        "day": datetime.datetime.strptime(row["day"].iloc[0], "%d.%m.%Y").date().isoformat(),
        "asked": np.datetime64(row["asked"].iloc[0]),
    }  # fmt: skip
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns([cells])), encoder.inputs(row))


def test_many_categories_share_a_feature():
    frame = regression_frame(400)
    frame["shop"] = np.repeat([f"shop {i}" for i in range(134)], 3)[:400]
    encoder = learned(frame)
    frame.loc[0, "shop"] = "a new one"
    np.testing.assert_array_equal(encode(encoder.to_config(), as_columns(frame)), encoder.inputs(frame))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"size": "big"}, r"'size' should hold numbers but has 'big' in row 1"),
        ({"size": "1_000"}, "should hold numbers"),
        ({"size": None}, r"'size' is missing in row 1"),
        ({"size": float("inf")}, "infinite"),
        ({"size": 1e300}, "too far"),
        ({"town": "Rome"}, r"'Rome' in row 1, which no training row had"),
        ({"town": ""}, "missing"),
        ({"garden": "perhaps"}, "true or false"),
        ({"sold": "soon"}, "dates"),
        ({"sold": 3.5}, "dates"),
    ],
)
def test_wrong_cells_are_sentences(changed, words):
    frame = regression_frame()
    config = learned(frame, missing="error").to_config()
    with pytest.raises(PortableError, match=words):
        encode(config, as_columns([frame.iloc[0].to_dict() | changed]))


def test_wrong_rows_are_sentences():
    config = learned(class_frame()).to_config()
    for words, rows in [
        ("no column 'size'", [{"town": "Bath"}]),
        ("different lengths", {"size": [1.0, 2.0], "rooms": [1]}),
        ("list of cells", {"size": 1.0}),
        ("no fixed length", {"size": np.array([3], "timedelta64[M]")}),
    ]:
        with pytest.raises(PortableError, match=words):
            encode(config, as_columns(rows))
    assert as_columns(np.zeros((3, 2))) is None
    assert as_columns([[1.0, 2.0]]) is None
