"""A weekly effect is no trend: curves along dates against a function of weekday and trend that is known."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.applications.effects.dependence import thin_rows
from credo.posteriors import Samples
from credo.tables.columns.shown import shown_inputs
from credo.tables.effects import table_effects
from credo.tables.encode.encoder import TableEncoder

KEY = jax.random.key(0)
SLOPE, WEEK = 0.5, np.array([0.4, -2.0])  # of standardised days; of sine and cosine of the weekday


@pytest.fixture(scope="module")
def shop():
    """Half a year of days in order, and a fit whose one draw is SLOPE · elapsed + WEEK · hands of the week."""
    days = pd.date_range("2023-01-01", periods=182)
    frame = pd.DataFrame({"day": days, "promo": np.resize([0.0, 1.0, 1.0], 182), "y": np.linspace(0, 1, 182)})
    encoder = TableEncoder.learn(frame, "y", "regression")
    rows = encoder.arrays(frame)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (rows.inputs, rows.targets), "map", steps=1)
    kernel = np.zeros((1, 1, 1, rows.inputs.shape[1]), np.float32)
    kernel[..., 0], kernel[..., 3:5] = SLOPE, WEEK
    assert encoder.feature_names[3:5] == ("day:day_of_week_sin", "day:day_of_week_cos")
    layer = {"bias": np.zeros((1, 1, 1), np.float32), "kernel": kernel}
    posterior = Samples({"network": {"output": layer}, "likelihood": {}, "prior": {}}, {})
    return dataclasses.replace(fit, posterior=posterior), encoder, rows.inputs


def test_the_trend_has_no_weekdays_in_it(shop):
    """f̄(v) = SLOPE · v + the mean of the week over the rows: exactly a line, though every point is some weekday."""
    fit, encoder, inputs = shop
    found = table_effects(KEY, fit, encoder, inputs)
    scale, shift = encoder.target_scale, encoder.target_shift
    curve = found.curves["day"]
    assert len(curve.grid) == 40
    week = (inputs[:, 3:5] @ WEEK).mean()
    wanted = SLOPE * curve.grid.values[:, 0] + week
    np.testing.assert_allclose(curve.mean, shift + scale * wanted, rtol=1e-5, atol=1e-5)
    assert (np.diff(curve.mean) > 0).all()


def test_the_week_has_its_own_curve(shop):
    fit, encoder, inputs = shop
    found = table_effects(KEY, fit, encoder, inputs)
    assert found.names == ("day", "day: day of week", "promo")
    curve = found.curves["day: day of week"]
    one = shown_inputs(encoder, inputs)["day: day of week"]
    np.testing.assert_array_equal(one.cells(curve.grid.values), np.arange(7))
    np.testing.assert_allclose(curve.grid.shares, 1 / 7)
    angle = 2 * np.pi * np.arange(7) / 7
    wanted = WEEK @ [np.sin(angle), np.cos(angle)] + SLOPE * inputs[:, 0].mean()
    np.testing.assert_allclose(curve.mean, encoder.target_shift + encoder.target_scale * wanted, rtol=1e-5, atol=1e-5)
    spread = float(encoder.target_scale) * np.array([SLOPE * inputs[:, 0].std(), np.sqrt((WEEK**2).sum() / 2), 0])
    np.testing.assert_allclose(found.strength, spread, rtol=0.01, atol=1e-6)


def test_few_rows_of_a_long_table_are_not_all_one_weekday():
    """Every seventh of 1,400 days would be; of 200 chosen ones each weekday has 29 ± 17 (more than 3.3 errors)."""
    days = thin_rows(np.arange(1400)[:, None], 200)[:, 0]
    assert (np.diff(days) > 0).all()
    counts = np.bincount(days % 7, minlength=7)
    assert counts.min() >= 12
    assert counts.max() <= 46
