"""Autoregressions against forecasts that are known: linear ones have a formula, given their coefficients."""

import jax
import numpy as np
import pytest
from scipy import stats

import credo
from credo.errors import InputError
from credo.methods.shallow import autoregression

HORIZON, PATHS, LEVEL, SIGMA = 6, 20_000, 5.0, 0.8
TRUTH = {"AR(1)": (0.7, 0.0), "AR(2)": (1.2, -0.5)}
METHOD = {"method": credo.shallow.Gibbs(chains=2, warmup=50), "nodes": 0, "steps": 500}


def simulate(phi, num=1000, seed=0):
    rng, values = np.random.default_rng(seed), [0.0, 0.0]
    for _ in range(num + 100):
        values.append(phi[0] * values[-1] + phi[1] * values[-2] + SIGMA * rng.normal())
    return LEVEL + np.array(values[-num:])


def exact(constant, phi, sigma, last):
    """Mean and variance of y_{T+h} of a linear autoregression: σ² Σ_{i<h} ψ_i² with ψ_i its impulse response."""
    past, impulse = list(last), [1.0, 0.0]
    means, variances, total = [], [], 0.0
    for _ in range(HORIZON):
        past.insert(0, constant + phi[0] * past[0] + phi[1] * past[1])
        means.append(past[0])
        total += impulse[0] ** 2
        variances.append(sigma**2 * total)
        impulse.insert(0, phi[0] * impulse[0] + phi[1] * impulse[1])
    return np.array(means), np.array(variances)


def of_each_draw(model):
    """The exact forecast under every posterior draw [draws, horizon], on the scale of the series."""
    params = model.fit.posterior.params
    linear = {k: np.asarray(v, np.float64).reshape(-1, v.shape[-1]) for k, v in params["network"]["linear"].items()}
    linear["kernel"] = np.asarray(params["network"]["linear"]["kernel"], np.float64).reshape(-1, 2)
    noise = model.fit.model.likelihood
    sigma = np.asarray(jax.vmap(jax.vmap(noise.sigma))(params["likelihood"]), np.float64).ravel()
    last = (model.last - model.shift) / model.scale
    found = [exact(b[0], w, s, last) for b, w, s in zip(linear["bias"], linear["kernel"], sigma)]
    means, variances = (np.array(x) for x in zip(*found))
    return model.shift + model.scale * means, model.scale**2 * variances


@pytest.fixture(scope="module", params=list(TRUTH))
def fitted(request):
    phi = TRUTH[request.param]
    return phi, autoregression(simulate(phi), 2, key=jax.random.key(1), **METHOD)


def test_paths_have_the_moments_of_the_exact_forecasts_of_the_draws(fitted):
    """Every draw has PATHS/1000 paths, so only their noise is left: z-scores of means and variances below the
    Bonferroni bound of a false-alarm rate of 1e-3."""
    _, model = fitted
    means, variances = of_each_draw(model)
    total = variances.mean(0) + means.var(0)
    forecast = model.forecast(jax.random.key(2), HORIZON, PATHS)
    z = [(forecast.mean - means.mean(0)) / np.sqrt(total / PATHS)]
    z += [(forecast.std**2 - total) / (total * np.sqrt(2 / PATHS))]
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / np.size(z))


def test_the_forecast_is_that_of_the_true_process(fitted):
    """AR(1): mean φ^h y, variance σ² Σ φ^{2i}. The truth lies within 4.5 posterior standard deviations of the mean (a
    false-alarm rate of 1e-5 each) and variances within 20 %: 1000 values tell σ² to 4.5 % and φ to 0.03."""
    phi, model = fitted
    means, _ = of_each_draw(model)
    forecast = model.forecast(jax.random.key(3), HORIZON, PATHS)
    truth, variance = exact(0.0, phi, SIGMA, model.last - LEVEL)
    if phi[1] == 0:
        steps = np.arange(1, HORIZON + 1)
        np.testing.assert_allclose(truth, phi[0] ** steps * (model.last[0] - LEVEL))
        np.testing.assert_allclose(variance, SIGMA**2 * np.cumsum(phi[0] ** (2.0 * (steps - 1))))
    error = np.sqrt(means.var(0) + forecast.std**2 / PATHS)
    assert np.abs((forecast.mean - LEVEL - truth) / error).max() < 4.5
    np.testing.assert_allclose(forecast.std**2, variance, rtol=0.2)
    low, high = forecast.interval(0.9)
    np.testing.assert_allclose((high - low) / 2, 1.645 * np.sqrt(variance), rtol=0.1)
    np.testing.assert_array_equal(forecast.quantile(0.95), high)


def test_one_step_is_what_predict_says(fitted):
    """The first step of the paths, and `one_step`, against the predictive of the last rows."""
    _, model = fitted
    at = (model.last - model.shift) / model.scale
    predictive = credo.predict(jax.random.key(0), model.fit, at[None]).rescaled(model.shift, model.scale)
    forecast = model.forecast(jax.random.key(4), 1, PATHS)
    error = predictive.std[0] / np.sqrt(PATHS)
    assert abs(forecast.mean[0] - predictive.mean[0]) < 4.5 * error
    assert abs(forecast.std[0] - predictive.std[0]) < 4.5 * error
    scored = model.one_step(jax.random.key(5), [LEVEL + 1, LEVEL - 1])
    np.testing.assert_allclose(scored.mean[0], predictive.mean[0], rtol=1e-5)
    second = (np.array([LEVEL + 1, model.last[0]]) - model.shift) / model.scale
    after = credo.predict(jax.random.key(0), model.fit, second[None]).rescaled(model.shift, model.scale)
    np.testing.assert_allclose(scored.mean[1], after.mean[0], rtol=1e-5)
    np.testing.assert_allclose(scored.log_likelihood[1], after.log_prob([LEVEL - 1])[0], rtol=1e-4)
    np.testing.assert_allclose(scored.rmse, np.sqrt(np.mean((scored.mean - [LEVEL + 1, LEVEL - 1]) ** 2)))
    assert "2 values" in str(scored)


WINDING = {
    "linearised": ("laplace", {"steps": 300}),
    "masks on activations": (credo.methods.MCDropout(masks="activations"), {"steps": 300}),
    "masks on weights": (credo.methods.MCDropout(rate=0.3, masks="weights"), {"steps": 300}),
    "last layer": ("last_layer", {"steps": 300}),
    "members": (credo.methods.DeepEnsemble(size=3), {"steps": 300}),
}


@pytest.fixture(scope="module")
def winding():
    rng, values = np.random.default_rng(0), [0.0]
    for _ in range(80):
        values.append(2 * np.sin(values[-1]) + 0.3 * rng.normal())
    return np.array(values[1:])


@pytest.mark.parametrize("name", WINDING)
def test_paths_begin_in_the_way_in_which_the_posterior_predicts(name, winding):
    """The first step of 20,000 paths has the mean and the spread of `predict`, whose own error adds that of 1,000
    draws: 5 standard errors of both."""
    method, how = WINDING[name]
    network = credo.networks.mlp([8], dropout=0.3 if name == "masks on activations" else 0.0)
    model = autoregression(winding, 1, key=jax.random.key(0), method=method, network=network, **how)
    at = (model.last - model.shift) / model.scale
    wanted = credo.predict(jax.random.key(1), model.fit, at[None], num_samples=1000).rescaled(model.shift, model.scale)
    found = model.forecast(jax.random.key(2), 1, PATHS)
    error = wanted.std[0] * (1 / PATHS + 1 / 1000) ** 0.5
    assert abs(found.mean[0] - wanted.mean[0]) < 5 * error
    assert abs(found.std[0] / wanted.std[0] - 1) < 0.1


def test_a_path_that_explodes_has_no_holes():
    """A swing that grows by half each time: its two coefficients differ in sign, so that ∞ meets −∞."""
    t = np.arange(14.0)
    model = autoregression(1.5**t * np.cos(t), 2, key=jax.random.key(0), nodes=0, method="map", steps=500)
    paths = model.forecast(jax.random.key(1), 400, 50).paths
    assert np.isinf(paths).any()
    assert not np.isnan(paths).any()


def test_paths_are_reproducible(fitted):
    _, model = fitted
    one, two, other = (model.forecast(jax.random.key(k), 3, 7).paths for k in (0, 0, 1))
    assert one.shape == (7, 3)
    np.testing.assert_array_equal(one, two)
    assert (one != other).all()


def test_lags_are_what_they_say():
    """x_t = x_{t−3} but for noise: of the lags 1 and 3 only the last has a weight, also with the lags the other way
    round, and so has its partial dependence."""
    rng = np.random.default_rng(0)
    series = list(rng.normal(size=3))
    for _ in range(997):
        series.append(0.95 * series[-3] + 0.1 * rng.normal())
    for lags in ([1, 3], [3, 1]):
        model = autoregression(series, lags, **METHOD)
        weights = np.asarray(model.fit.posterior.params["network"]["linear"]["kernel"]).mean((0, 1, 2))
        assert weights[lags.index(3)] > 0.8
        assert abs(weights[lags.index(1)]) < 0.1
        assert model.names == tuple(f"lag {lag}" for lag in lags)
        found = credo.shallow.effects(jax.random.key(0), model.fit, model.inputs, model.names)
        assert found.order == ["lag 3", "lag 1"]
        forecast = model.forecast(jax.random.key(0), 3)
        assert np.abs(forecast.mean - 0.95 * np.array(series[-3:])).max() < 0.15


@pytest.mark.full
def test_a_nonlinear_series_is_not_linear():
    """y_t = 1.4 − y_{t−1}² + noise, the quadratic map: reversible jumps give nodes, and the mean one step ahead is the
    parabola to within the noise."""
    rng, series = np.random.default_rng(0), [0.3]
    for _ in range(150):
        series.append(1.4 - series[-1] ** 2 + 0.05 * rng.normal())
    method = credo.shallow.ReversibleJump(chains=2, warmup=300)
    model = autoregression(series, 1, method=method, nodes=4, steps=200)
    assert (np.asarray(model.fit.trace["nodes"]) > 0).all()
    scored = model.one_step(jax.random.key(0), [1.4 - series[-1] ** 2])
    assert scored.rmse < 0.1
    assert np.isfinite(model.forecast(jax.random.key(0), 5).paths).all()


@pytest.mark.parametrize(
    ("series", "lags", "words"),
    [
        ([1.0, np.nan, 2.0, 4.0, 3.0, 2.0], 1, "nan at place 1"),
        ([1.0, 2.0, 3.0], 2, "has 3 values, but lags up to 2 need at least 6"),
        ([3.0] * 20, 1, "All values"),
        (np.arange(20.0), 0, "at least 1"),
        (np.arange(20.0), [2, -1], "at least 1"),
        (np.arange(20.0), [1, 2, 2], "The lag 2 is given twice"),
        (np.arange(20.0), 1.5, "whole number"),
        (np.arange(20.0), [], "whole number"),
        (np.ones((20, 2)), 1, "one value for each time"),
        (["a", "b"], 1, "numeric"),
    ],
)
def test_what_cannot_be_done_is_said(series, lags, words):
    with pytest.raises(InputError, match=words):
        autoregression(series, lags)


def test_forecasts_that_cannot_be_made_are_refused(fitted):
    _, model = fitted
    with pytest.raises(InputError, match="horizon"):
        model.forecast(jax.random.key(0), 0)
    with pytest.raises(InputError, match="new_values is nan"):
        model.one_step(jax.random.key(0), [np.nan])
    with pytest.raises(InputError, match="between 0 and 1"):
        model.forecast(jax.random.key(0), 1).interval(1.2)
