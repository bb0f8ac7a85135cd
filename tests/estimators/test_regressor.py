"""Quality, shapes and units of the regressor."""

import numpy as np
import pytest

import credo
from credo.estimators import BayesianRegressor


def wave(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-2, 2, (rows, 1))
    return x, 1000 + 50 * np.sin(1.5 * x[:, 0]) + 5 * rng.normal(size=rows)


@pytest.fixture(scope="module")
def fitted() -> BayesianRegressor:
    return BayesianRegressor("bayes_by_backprop", random_state=0).fit(*wave(np.random.default_rng(0), 300))


@pytest.fixture(scope="module")
def two_outputs() -> tuple[BayesianRegressor, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    y = np.stack([1e4 + 100 * x[:, 0], 1e-3 * x[:, 1]], 1) + rng.normal(size=(60, 2)) * [1.0, 1e-5]
    model = BayesianRegressor("map", network=[8], steps=500, settings={"learning_rate": 0.02}, random_state=0)
    return model.fit(x, y), x, y


def test_intervals_cover_as_often_as_they_say(fitted):
    # 1,000 fresh rows: the binomial standard deviation is below 0.01; the rest is room for the mean field, which
    # is known to overrate the noise.
    x, y = wave(np.random.default_rng(7), 1000)
    lower, upper = fitted.predict_interval(x, coverage=0.9)
    assert 0.86 < np.mean((lower < y) & (y < upper)) < 0.98
    assert fitted.score(x, y) > 0.95


def test_noise_and_mean_are_on_the_scale_of_the_targets(fitted):
    x, y = wave(np.random.default_rng(8), 500)
    noise = np.sqrt(fitted.uncertainty(x)["aleatoric"])
    assert 4.0 < noise.mean() < 8.0
    assert abs(fitted.predict(x).mean() - y.mean()) < 3.0
    density = fitted.predictive(x).log_prob(y).mean()
    best = -0.5 * np.log(2 * np.pi * np.e * 25)
    assert best - 0.3 < density < best + 0.1


def test_std_grows_away_from_the_data(fitted):
    _, std = fitted.predict(np.array([[0.0], [5.0], [10.0], [20.0]]), return_std=True)
    assert (np.diff(std) > 0).all()
    assert std[-1] > 3 * std[0]


def test_uncertainty_adds_up(fitted):
    parts = fitted.uncertainty(np.linspace(-5, 5, 8)[:, None])
    np.testing.assert_allclose(parts["total"], parts["aleatoric"] + parts["epistemic"])
    assert all((v > 0).all() for v in parts.values())


def test_quantiles_are_ordered_and_agree_with_the_interval(fitted):
    x = np.linspace(-3, 3, 8)[:, None]
    quantiles = fitted.predict_quantiles(x, [0.05, 0.5, 0.95])
    assert quantiles.shape == (8, 3)
    assert (np.diff(quantiles) > 0).all()
    np.testing.assert_allclose(np.stack(fitted.predict_interval(x, 0.9), 1), quantiles[:, [0, 2]], rtol=1e-6)
    assert fitted.predict_quantiles(x, 0.5).shape == (8, 1)


def test_draws_have_the_predicted_moments(fitted):
    x = np.linspace(-1, 1, 8)[:, None]
    mean, std = fitted.predict(x, return_std=True)
    draws = fitted.sample_y(x, 4000, random_state=0)
    assert draws.shape == (8, 4000)
    # Draws share the weights across rows; five standard errors at each of 8 rows.
    assert (np.abs(draws.mean(1) - mean) < 5 * std / np.sqrt(4000)).all()
    np.testing.assert_allclose(draws.std(1), std, rtol=0.1)
    np.testing.assert_array_equal(draws, fitted.sample_y(x, 4000, random_state=0))
    assert (draws != fitted.sample_y(x, 4000, random_state=1)).any()


def test_several_outputs_keep_their_shape_and_scale(two_outputs):
    model, x, y = two_outputs
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    assert model.score(x, y) > 0.98
    assert 0.5 < std[:, 0].mean() < 30
    assert 0.5e-5 < std[:, 1].mean() < 30e-5
    assert model.predict_quantiles(x, [0.1, 0.9]).shape == (60, 2, 2)
    assert model.sample_y(x, 5).shape == (60, 2, 5)
    assert model.predictive(x).log_prob(y).shape == (60,)
    assert all(end.shape == (60, 2) for end in model.predict_interval(x))


@pytest.mark.full
def test_column_of_targets_stays_a_column(two_outputs):
    _, x, y = two_outputs
    model = BayesianRegressor("map", network=[8], steps=5, random_state=0).fit(x, y[:, :1])
    assert model.predict(x).shape == (60, 1)
    assert model.predict_interval(x)[0].shape == (60, 1)


def test_known_noise_is_in_the_units_of_the_targets(two_outputs):
    _, x, y = two_outputs
    likelihood = credo.likelihoods.gaussian(noise=2.5)
    model = BayesianRegressor("map", network=[8], likelihood=likelihood, steps=5, random_state=0)
    np.testing.assert_allclose(model.fit(x, y).uncertainty(x)["aleatoric"], 2.5**2, rtol=1e-5)


@pytest.mark.full
def test_counts_are_not_standardised():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    y = rng.poisson(np.exp(1 + 0.5 * x[:, 0]))
    model = BayesianRegressor("map", [8], likelihood="poisson", steps=500, random_state=0).fit(x, y)
    mean = model.predict(x)
    assert (mean > 0).all()
    assert abs(mean.mean() - y.mean()) < 1.0
    assert (model.sample_y(x, 3) % 1 == 0).all()


def test_without_standardising_the_network_sees_the_numbers_as_they_are():
    x = np.linspace(-1, 1, 60)[:, None] * np.ones(3)
    model = BayesianRegressor("map", [8], steps=300, standardise=False, random_state=0).fit(x, x[:, 0])
    assert (model.input_scale_.scale == 1).all()
    assert (model.target_scale_.shift == 0).all()
    assert model.score(x, x[:, 0]) > 0.9


def test_constant_columns_and_targets_are_safe():
    x = np.column_stack([np.full(60, 0.1), np.full(60, 1e9), np.linspace(0, 1, 60)])
    model = BayesianRegressor("map", [8], steps=50, random_state=0).fit(x, np.full(60, 7.0))
    assert np.isfinite(model.predict(x)).all()
    assert (model.input_scale_.apply(x)[:, :2] == 0).all()
    assert model.target_scale_.shift == 7.0


@pytest.mark.full
@pytest.mark.parametrize("method", ["map", "bayes_by_backprop"])
def test_weight_of_two_is_a_row_twice(method):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    weight = rng.integers(0, 3, 60)
    order = rng.permutation(weight.sum())
    model = BayesianRegressor(method, [8], steps=100, random_state=0)
    weighted = model.fit(x, y, sample_weight=weight).predict(x)
    repeated = model.fit(x.repeat(weight, 0)[order], y.repeat(weight)[order]).predict(x)
    np.testing.assert_array_equal(weighted, repeated)
    assert (model.fit(x, y).predict(x) != weighted).any()
