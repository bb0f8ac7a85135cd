"""Rows with categories that training did not have: exports average over the known ones, as credo does."""

import json

import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.storage.export.arrays import numbers
from credo.storage.export.portable.load import Predictor
from credo.storage.export.subject import Subject
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.unseen import predict_unseen
from exported import KEY, TARGETS, drawn, same
from small_tables import regression_frame


@pytest.fixture(scope="module")
def table():
    frame = regression_frame(40)
    frame["shop"] = np.random.default_rng(2).choice(["a", "b", "b", "c"], 40)
    return frame, TableEncoder.learn(frame, "price", weights="weight")


def predictor_of(table, draws, form="numpy"):
    frame, encoder = table
    fit = drawn(inputs=encoder.inputs(frame), draws=draws)
    subject = Subject(fit, KEY, encoder=encoder.to_config())
    described, arrays = numbers(subject, None)
    document = json.loads(json.dumps(subject.plain() | described | {"form": form}))
    return fit, Predictor(document, arrays)


@pytest.mark.parametrize("draws", [7, 70])
def test_predictions_are_those_of_the_library(table, draws, monkeypatch):
    """Few draws are taken at every level, many at one level each; in one piece and in several."""
    frame, encoder = table
    fit, predictor = predictor_of(table, draws)
    rows = frame.head(12).copy()
    rows.loc[[1, 5], "town"] = "Rome"
    rows.loc[[5, 9], "shop"] = "z"
    wanted = predict_unseen(lambda x: credo.predict(KEY, fit, x), encoder, encoder.inputs(rows, unseen="zeros"))
    with pytest.warns(UserWarning, match=r"'(town|shop)' has categories that training did not have in 2 of 12 rows"):
        whole = predictor.predict(rows)
    same(whole, wanted, TARGETS["gaussian"][:12])
    plain = predictor.predict(frame.head(12))
    assert (whole.epistemic[[1, 5, 9]] > 1.01 * plain.epistemic[[1, 5, 9]]).any()
    monkeypatch.setattr("credo.storage.export.portable.prediction.CHUNK_BYTES", 4000)
    with pytest.warns(UserWarning, match="categories"):
        np.testing.assert_allclose(predictor.predict(rows).mean, whole.mean, rtol=1e-12)


def test_a_compiled_program_refuses_them(table):
    frame, _ = table
    _, predictor = predictor_of(table, 7, "stablehlo")
    with pytest.raises(InputError, match="'Rome' in row 1, which no training row had"):
        predictor.predict(frame.head(1).assign(town="Rome"))
