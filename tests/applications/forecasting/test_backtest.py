"""Forecasts over a horizon, from many origins: coverage and scores (H5)."""

import jax
import numpy as np
import pytest

import credo
from credo.applications import Backtest, autoregression
from credo.errors import InputError

RNG = np.random.default_rng(3)


def ar1(num, share=0.8, noise=0.5):
    values = [0.0]
    for _ in range(num):
        values.append(share * values[-1] + noise * RNG.normal())
    return np.array(values[1:])


SERIES = ar1(700)
METHOD = credo.shallow.Gibbs(chains=2, warmup=100)


@pytest.fixture(scope="module")
def fitted():
    return autoregression(SERIES[:300], 1, method=METHOD, nodes=0, steps=300)


def test_intervals_hold_as_often_as_they_say(fitted):
    """400 values, of which neighbours h steps apart err together: about 400/(2h) independent ones at the worst, so a
    share of 0.9 has a standard error of at most 0.047 at h = 5; five of them would be vacuous, three are 3e-3."""
    found = fitted.backtest(jax.random.key(1), SERIES[300:], horizon=5)
    assert found.values.shape == (396, 5)
    assert found.paths.shape == (396, 500, 5)
    np.testing.assert_allclose(found.coverage(0.9), 0.9, atol=0.1)
    np.testing.assert_allclose(found.coverage(0.5), 0.5, atol=0.15)
    # Var[y_{T+h} | y_T] = σ² (1 − φ^{2h}) / (1 − φ²)
    expected = 0.5 * np.sqrt((1 - 0.8 ** (2 * np.arange(1, 6))) / (1 - 0.64))
    np.testing.assert_allclose(found.rmse, expected, rtol=0.2)
    assert "in 90 %" in str(found)
    found.plot()


def test_each_origin_sees_its_own_past(fitted):
    """The first origin is the end of the series: its paths have the moments of the plain forecast."""
    found = fitted.backtest(jax.random.key(1), SERIES[300:340], horizon=3, every=10, num_paths=4000)
    assert found.values[:, 0].tolist() == SERIES[[300, 310, 320, 330]].tolist()
    plain = fitted.forecast(jax.random.key(2), 3, 4000)
    np.testing.assert_allclose(found.mean[0], plain.mean, atol=6 * plain.std.max() / 4000**0.5 * 2**0.5)
    np.testing.assert_allclose(found.mean[:, 0], 0.8 * SERIES[[299, 309, 319, 329]], atol=0.3)


def test_crps_is_the_mean_over_pairs():
    paths, values = RNG.normal(size=(4, 30, 2)), RNG.normal(size=(4, 2))
    apart = [np.abs(p[:, None] - p[None]).sum((0, 1)) / (30 * 29) for p in paths]
    error = np.abs(paths - values[:, None]).mean(1)
    np.testing.assert_allclose(Backtest(paths, values).crps, (error - 0.5 * np.array(apart)).mean(0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 50}, "needs as many new values"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"every": 0}, "every"),
    ],
)
def test_bad_requests_get_a_sentence(fitted, options, words):
    with pytest.raises(InputError, match=words):
        fitted.backtest(jax.random.key(0), SERIES[300:320], **{"horizon": 2} | options)
    with pytest.raises(InputError, match="between 0 and 1"):
        Backtest(np.zeros((1, 2, 1)), np.zeros((1, 1))).coverage(1.0)


@pytest.mark.full
@pytest.mark.parametrize("network", [credo.networks.mlp([16], "tanh"), credo.networks.gru(8)], ids=["windowed", "gru"])
def test_networks_forecast_what_no_line_can(network):
    """The logistic map of a state that is seen with little noise: one step ahead is a parabola."""
    state, seen = 0.3, []
    for _ in range(500):
        state = 3.7 * state * (1 - state)
        seen.append(state + 0.01 * RNG.normal())
    method = credo.methods.BayesByBackprop(learning_rate=0.01, initial_std=0.02)
    found = autoregression(np.array(seen[:400]), 2, method=method, network=network, steps=6000)
    test = found.backtest(jax.random.key(0), np.array(seen[400:]), horizon=3)
    assert test.rmse[0] < 0.3 * np.std(seen)
    assert test.coverage(0.9)[0] > 0.8
    assert found.lags == ((2, 1) if "Recurrent" in type(network).__name__ else (1, 2))
