"""Rows with a category that training did not have are mixtures over the categories that it had."""

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.levels import LEVELS
from credo.tables.encode.unseen import find_unseen, predict_unseen, unseen_notes

HEIGHTS = {"a": 0.0, "b": 4.0, "c": 8.0}
NEW = pd.DataFrame({"x": [0.5, 0.5, 0.5, 0.2], "level": ["a", "new", "c", "other"]})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    level = rng.choice(list(HEIGHTS), 240, p=[0.5, 0.25, 0.25])
    frame = pd.DataFrame({"x": rng.uniform(size=240), "level": level})
    frame["y"] = frame["x"] + [HEIGHTS[name] for name in level] + rng.normal(0, 0.1, 240)
    return frame, TableEncoder.learn(frame, "y")


def fitted(table, method, **options):
    frame, encoder = table
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))
    return credo.fit(jax.random.key(0), model, encoder.arrays(frame)[:2], method, **options)


@pytest.fixture(scope="module", params=["maximum_likelihood", "laplace"])
def predict_at(request, table):
    """A method with one draw, which is taken at every level, and one with many."""
    fit = fitted(table, request.param, steps=400)
    return lambda rows: credo.predict(jax.random.key(1), fit, rows)


def at_levels(table, predict_at):
    """The mixture that is asked for, put together by hand: outputs' means and variances at each level."""
    encoder = table[1]
    shares = np.array(encoder.columns[1].shares)
    known = [encoder.inputs(NEW.assign(level=name)) for name in HEIGHTS]
    found = [predict_at(rows) for rows in known]
    return shares, np.array([p.mean for p in found]), np.array([p.epistemic for p in found])


def test_a_new_category_is_a_mixture_over_the_known_ones(table, predict_at):
    encoder = table[1]
    inputs = encoder.inputs(NEW, unseen="zeros")
    found = predict_unseen(predict_at, encoder, inputs)
    plain = predict_at(inputs)
    shares, means, spreads = at_levels(table, predict_at)
    mean = shares @ means
    between = shares @ (means - mean) ** 2
    # Levels stand for shares in steps of 1/16: the mean moves by at most half a step of the range.
    room = np.ptp(means) / LEVELS
    for row in (1, 3):
        assert found.mean[row] == pytest.approx(mean[row], abs=room)
        assert found.epistemic[row] == pytest.approx(between[row] + shares @ spreads[:, row], rel=0.3)
    assert found.epistemic[1] > 50 * max(found.epistemic[[0, 2]])
    np.testing.assert_allclose(found.mean[[0, 2]], plain.mean[[0, 2]], rtol=1e-5)
    np.testing.assert_allclose(found.aleatoric, plain.aleatoric, rtol=1e-4)
    low, high = found.interval(0.9)
    assert low[1] < means[0, 1] + 0.1 / encoder.target_scale
    assert high[1] > means[2, 1] - 0.1 / encoder.target_scale


def test_rows_without_new_categories_are_as_they_were(table, predict_at):
    encoder = table[1]
    inputs = encoder.inputs(NEW.iloc[[0, 2]])
    assert find_unseen(encoder, inputs) == []
    assert unseen_notes(encoder, inputs) == []
    found, plain = predict_unseen(predict_at, encoder, inputs), predict_at(inputs)
    np.testing.assert_array_equal(found.mean, plain.mean)
    np.testing.assert_array_equal(found.epistemic, plain.epistemic)


def test_one_note_for_a_column_with_its_count(table):
    encoder = table[1]
    notes = unseen_notes(encoder, encoder.inputs(NEW, unseen="zeros"))
    assert len(notes) == 1
    assert notes[0].startswith("Column 'level' has categories that training did not have in 2 of 4 rows;")


def test_many_rows_in_chunks_and_two_columns(table, monkeypatch):
    from credo.core import predict as core

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"u": rng.choice(["p", "q"], 200), "v": rng.choice(["r", "s", "t"], 200)})
    frame["y"] = 2.0 * (frame["u"] == "p") + 5.0 * (frame["v"] == "s") + rng.normal(0, 0.1, 200)
    encoder = TableEncoder.learn(frame, "y")
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))
    fit = credo.fit(jax.random.key(0), model, encoder.arrays(frame)[:2], "maximum_likelihood", steps=400)
    inputs = encoder.inputs(frame.assign(u=["new", "p"] * 100, v=["s", "new", "new", "new"] * 50), unseen="zeros")
    inputs[::4, 0] = 1.0  # every fourth row is known

    def predict_at(rows):
        return credo.predict(jax.random.key(1), fit, rows)

    whole = predict_unseen(predict_at, encoder, inputs)
    monkeypatch.setattr(core, "CHUNK_BYTES", 4 * 64)
    pieces = predict_unseen(predict_at, encoder, inputs)
    np.testing.assert_allclose(whole.mean, pieces.mean, rtol=1e-5)
    np.testing.assert_allclose(whole.epistemic, pieces.epistemic, rtol=1e-3, atol=1e-6)
    both = frame["y"].mean() - encoder.target_shift  # rows 2, 6, …: nothing is known
    assert whole.mean[2] == pytest.approx(both / encoder.target_scale, abs=0.3)
    assert (whole.epistemic[2::4] > whole.epistemic[1::4]).all()
    assert (whole.epistemic[0::4] < 1e-6).all()
