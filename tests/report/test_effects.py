"""Panels of effects in the units of the table, and the posterior of the number of nodes."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from credo.report import RunData
from credo.report.effects import effect_figures, input_section, left_out, of_dates, run_effects
from credo.report.nodes import node_shares, node_words
from credo.report.words import number, percent
from credo.report.write import render
from credo.tables.columns.decode import decode, feature_groups, has_value
from credo.tables.columns.shown import WEEKDAYS
from credo.tables.encode.encoder import TableEncoder

from .conftest import make_run
from .test_page import check


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    """Every kind of column; the frequency is skewed, so that it is encoded by logarithms."""
    rng, rows = np.random.default_rng(0), 120
    frame = pd.DataFrame({"size": rng.normal(50, 10, rows), "frequency": np.exp(rng.normal(5, 1.5, rows))})
    frame["town"] = rng.choice(["Bath", "York", "Leeds"], rows)
    frame["garden"] = rng.choice([True, False], rows)
    frame["sold"] = pd.date_range("2020-01-01", periods=rows)
    frame["price"] = 1000 + 40 * frame["size"] + 100 * np.log(frame["frequency"]) + rng.normal(0, 60, rows)
    return frame


@pytest.fixture(scope="module")
def run(mixed) -> RunData:
    return make_run("mixed", mixed, "price", "map", 100, "regression")


def test_decode_undoes_the_encoding(mixed):
    mixed = mixed.assign(size=mixed["size"].where(np.arange(len(mixed)) % 7 > 0))
    mixed.loc[3, "town"] = None
    encoder = TableEncoder.learn(mixed, "price", missing="impute")
    assert encoder.columns[1].width is not None
    inputs = encoder.inputs(mixed)
    groups = feature_groups(encoder)
    assert list(groups) == ["size", "frequency", "town", "garden", "sold"]
    for column in encoder.columns:
        own = inputs[:, list(groups[column.name])]
        cells, given = decode(column, own), mixed[column.name]
        np.testing.assert_array_equal(has_value(column, own), given.notna())
        there = has_value(column, own)
        if column.kind in ("boolean", "category"):
            assert [str(v) for v in given[there]] == list(cells[there])
        elif column.kind == "date":
            np.testing.assert_array_equal(cells, given.to_numpy().astype("datetime64[s]"))
        else:
            np.testing.assert_allclose(cells[there], given[there], rtol=1e-5, atol=2e-3)


def test_panels_are_in_the_units_of_the_table(run, mixed):
    found = run_effects(run)
    assert set(found.names) == {"size", "frequency", "town", "garden", "sold", "sold: day of week"}
    assert found.order[0] == "size"
    figure = effect_figures(found, run.encoder, run.inputs)["panels"]
    areas = {area.get_xlabel(): area for area in figure.axes if area.get_visible()}
    assert set(areas) == set(found.names)
    held = mixed.iloc[80:]
    for name in ("size", "frequency"):
        low, high = areas[name].lines[0].get_xdata()[[0, -1]]
        assert held[name].min() * 0.999 <= low < high <= held[name].max() * 1.001
        level = areas[name].lines[0].get_ydata()
        assert held["price"].min() < level.min() < level.max() < held["price"].max()
    assert areas["frequency"].get_xscale() == "log"
    assert [t.get_text() for t in areas["town"].get_xticklabels()] == ["Bath", "Leeds", "York"]
    assert [t.get_text() for t in areas["sold: day of week"].get_xticklabels()] == list(WEEKDAYS)
    assert all(area.get_title(loc="left").startswith("strength ") for area in areas.values())


def test_the_section_is_there_for_tables_alone(run):
    text = render([run])
    assert "What the inputs do" in check(text).headings
    bare = dataclasses.replace(run, encoder=None, feature_names=())
    assert "What the inputs do" not in check(render([bare])).headings


def test_nodes_have_a_section_where_their_number_is_unknown(run):
    nodes = np.array([[0] * 30 + [1] * 70, [0] * 10 + [2] * 90])
    fit = dataclasses.replace(run.fit, trace=run.fit.trace | {"nodes": nodes})
    text = render([dataclasses.replace(run, fit=fit)])
    assert "How many hidden nodes" in check(text).headings
    assert "that the relation is linear, has probability 20 %" in text
    shares = node_shares(nodes)
    np.testing.assert_allclose(shares, [[0.3, 0.7, 0.0], [0.1, 0.0, 0.9]])
    said = node_words(shares, most=2)
    assert said[0] == "The most probable is 2 nodes, with probability 45 %."
    assert "allow more" in said[2]
    assert "do not agree" in said[3]
    assert len(node_words(np.array([[1.0], [1.0]]), most=8)) == 2


def test_how_dates_are_shown_is_said(run):
    """The rows span a few weeks: enough for weekdays, too little for a season."""
    first, second = of_dates(run_effects(run), run.encoder)
    assert first == "'sold' is shown with the day of week averaged over the rows; it has a curve of its own."
    assert second.startswith("The rows span less than two turns of the day of year of 'sold'")
    assert first in input_section(run, 2, "run")[0].body.replace("&#x27;", "'")


def test_what_is_left_out_is_said_by_name():
    """Of 14 inputs 12 have a panel, of ten categories eight a dot, of five classes four a line."""
    rng, rows = np.random.default_rng(0), 200
    frame = pd.DataFrame({f"x{i}": rng.normal(size=rows) * (1 + (i == 0)) for i in range(13)})
    frame["town"] = np.resize(list("abcdefghij"), rows)
    frame["kind"] = np.resize(list("vwxyz"), rows)
    run = make_run("wide", frame, "kind", "map", 20, "multiclass")
    found = run_effects(run)
    inputs, *rest = left_out(found, run.encoder)
    assert inputs.startswith("Of 14 inputs the 12 strongest are drawn; left out are ")
    assert all(f"'{name}'" in inputs for name in found.order[12:])
    assert all(f"'{name}'" not in inputs for name in found.order[:12])
    assert rest[-1] == "Of 5 classes the first 4 are drawn."
    assert ("Of 'town' the 8 commonest categories are drawn." in rest) == ("town" in found.order[:12])
    assert inputs in input_section(run, 2, "run")[0].body.replace("&#39;", "'").replace("&#x27;", "'")


def test_zero_has_no_sign_and_a_probability_no_place_above_one(run):
    assert [number(-0.0), number(-1e-30 * 0), percent(-0.0), percent(-0.001)] == ["0", "0", "0 %", "0 %"]
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"size": rng.normal(size=120)})
    frame["sold"] = frame["size"] > 0
    classes = make_run("classes", frame, "sold", "map", 300, "binary")
    found = run_effects(classes)
    draws = found.curves["size"].draws
    assert draws.min() >= 0
    assert draws.max() <= 1
    (area,) = (a for a in effect_figures(found, classes.encoder, classes.inputs)["panels"].axes if a.get_visible())
    low, high = area.get_ylim()
    assert (low, high) == (max(low, 0.0), min(high, 1.0))
