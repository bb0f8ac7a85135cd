"""`function_space_vi` (F2): exact where functions are linear in the weights, and unsure in between clusters of data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.core.tree import leaf, struct
from credo.errors import InputError, Refusal
from credo.evaluation.audit import audit
from credo.evaluation.audit.problems import gap
from oracles import coefficients, linear

KEY = jax.random.key(0)
VI = credo.methods.FunctionSpaceVI


@pytest.mark.parametrize("divergence", ["linearised", pytest.param("spectral", marks=pytest.mark.full)])
def test_with_the_kernel_of_a_line_it_finds_the_posterior_of_the_line(divergence):
    """k(x, x') = s² (1 + x·x') is the prior of a linear network: the same posterior as over weights."""
    problem = linear(num_rows=30, dims=2)
    kernel = LinearKernel(1.0)
    method = VI(
        family="full", kernel=kernel, divergence=divergence, num_samples=8, points=5, rows=10, learning_rate=0.02,
        initial_std=0.2, jitter=0.003,
    )  # fmt: skip
    fit = credo.fit(KEY, problem.model(), (problem.inputs, problem.targets), method, steps=2000)
    draws = coefficients(fit.posterior.sample(jax.random.key(1), 4000)["network"])
    std = np.sqrt(np.diag(problem.covariance))
    loose = 1 if divergence == "linearised" else 3
    assert (np.abs(draws.mean(0) - problem.mean) / std).max() < 0.15 * loose
    assert np.abs(np.log(draws.std(0) / std)).max() < 0.1 * loose


@pytest.mark.parametrize(
    ("temperature", "divergence", "prior"),
    [
        (0.1, "linearised", "kernel"),
        pytest.param(0.1, "linearised", "weights", marks=pytest.mark.full),
        pytest.param(0.1, "spectral", "kernel", marks=pytest.mark.full),
        pytest.param(0.1, "spectral", "weights", marks=pytest.mark.full),
        pytest.param(4.0, "linearised", "kernel", marks=pytest.mark.full),
        pytest.param(4.0, "spectral", "kernel", marks=pytest.mark.full),
    ],
)
def test_temperature_divides_the_prior_of_functions_too(temperature, divergence, prior):
    """Of few rows the prior matters, and under p(D, θ)^{1/T} the covariance of the posterior is T times as large.

    With T on the likelihood alone, a standard deviation would be 1.8 times or 0.56 times what it is to be.
    """
    problem = linear(num_rows=4, dims=1, noise=1.0)
    method = VI(
        family="full", kernel=LinearKernel(1.0) if prior == "kernel" else None, divergence=divergence, num_samples=8,
        points=5, rows=4, learning_rate=0.02, initial_std=0.2, jitter=0.003,
    )  # fmt: skip
    model = problem.model().tempered(temperature)
    fit = credo.fit(KEY, model, (problem.inputs, problem.targets), method, steps=2000)
    draws = coefficients(fit.posterior.sample(jax.random.key(1), 4000)["network"])
    std = np.sqrt(temperature * np.diag(problem.covariance))
    assert np.abs(np.log(draws.std(0) / std)).max() < (0.05 if divergence == "linearised" else 0.1)


@struct
class LinearKernel:
    scale: float = leaf(default=1.0)

    def __call__(self, one, other):
        return self.scale**2 * (1 + one @ other.T)


@pytest.mark.full
@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"kernel": credo.function_space.matern52(1.0, 1.0), "family": "full"}, 0.8),
        ({"divergence": "spectral", "family": "mean_field"}, 0.8),
    ],
)
def test_it_is_unsure_between_two_clusters_where_mean_field_is_not(settings, least):
    """std_ratio in the gap: below 0.55 for mean field over weights; 1 is the truth by long chains."""
    rows = audit([credo.methods.BayesByBackprop(num_samples=8), VI(num_samples=8, **settings)], ["gap"]).rows
    assert rows[0]["std_ratio_gap"] < 0.55
    assert least < rows[1]["std_ratio_gap"] < 1.5
    assert rows[1]["regret"] < rows[0]["regret"]


@pytest.mark.full
def test_with_a_prior_over_weights_it_is_the_process_of_the_same_covariance():
    """Linearised, functions of the prior count by mean and covariance: the answer is that of the Gaussian process which
    has them, known here from 20,000 draws. (It is narrower in the gap than the network's own posterior, yet wider than
    mean field over weights, whose ratio to the truth is below 0.55.)"""
    problem, between = gap(), gap().regions["gap"]
    places = problem.places[between]
    method = VI(num_samples=8)
    fit = credo.fit(KEY, problem.model, problem.data, method)
    own = np.sqrt(np.asarray(credo.predict(KEY, fit, places).epistemic)).ravel()
    rows = np.concatenate([problem.inputs, places])
    drawn = np.asarray(credo.prior_predictive(jax.random.key(1), problem.model, rows, num_samples=20_000).functions)
    drawn = drawn.reshape(20_000, len(rows))
    whole, known = np.cov(drawn.T), len(problem.inputs)
    noise = float(np.mean(np.asarray(credo.predict(KEY, fit, places).aleatoric)))
    inner = whole[:known, :known] + noise * np.eye(known)
    left = whole[known:, known:] - whole[known:, :known] @ np.linalg.solve(inner, whole[:known, known:])
    ratio = own.mean() / np.sqrt(np.diag(left)).mean()
    assert 0.8 < ratio < 1.25
    mean_field = credo.fit(KEY, problem.model, problem.data, credo.methods.BayesByBackprop(num_samples=8))
    narrow = np.sqrt(np.asarray(credo.predict(KEY, mean_field, places).epistemic)).ravel()
    assert narrow.mean() < own.mean()


def test_inferred_noise_keeps_its_posterior_and_pairs_of_draws_are_taken():
    """log σ of 60 rows has a spread of about 1/√120; left without its entropy it would shrink to a point."""
    problem = linear(num_rows=60, dims=2)
    noise = credo.likelihoods.gaussian("inferred")
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), noise)
    method = VI(points=5, rows=10, prior_draws=100, learning_rate=0.02, antithetic=True)
    fit = credo.fit(KEY, model, (problem.inputs, problem.targets), method, steps=3000)
    draws = np.asarray(fit.posterior.sample(jax.random.key(1), 4000)["likelihood"]["log_scale"])
    assert 0.75 < draws.std() * np.sqrt(120) < 1.25
    assert abs(draws.mean() - np.log(problem.noise)) < 0.3


@pytest.mark.full
def test_functions_of_a_hierarchical_prior_are_drawn_with_their_hyper_parameters():
    problem = linear(num_rows=40, dims=2)
    model = credo.Model(credo.networks.mlp([5], "tanh"), credo.priors.hierarchical(), credo.likelihoods.gaussian(0.5))
    fit = credo.fit(KEY, model, (problem.inputs, problem.targets), VI(points=5, rows=10, prior_draws=100), steps=500)
    assert np.isfinite(np.asarray(credo.predict(KEY, fit, problem.inputs).mean)).all()


def test_classes_on_minibatches_predict_linearised_or_sampled():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)).astype(np.float32)
    model = credo.Model(credo.networks.mlp([5], "tanh"), credo.priors.normal(1.0), credo.likelihoods.categorical(3))
    data = (x, rng.integers(0, 3, 60))
    fit = credo.fit(KEY, model, data, VI(points=4, rows=6, prior_draws=40), steps=30, batch_size=20)
    predictive = credo.predict(KEY, fit, x, num_samples=20)
    assert np.isfinite(np.asarray(predictive.mean)).all()
    sampled = credo.predict(KEY, fit, x, num_samples=20, mode="sampled")
    assert not np.allclose(sampled.mean, predictive.mean)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"divergence": "wasserstein"}, InputError, "divergence must be one of"),
        ({"points": 0, "rows": 0}, InputError, "At least one measurement point"),
        ({"prior_draws": 10}, InputError, "twice as many prior_draws"),
        ({"family": "mixture"}, Refusal, "A mixture is not Gaussian"),
        ({"estimator": "local", "family": "mean_field"}, Refusal, "whole draws"),
    ],
)
def test_settings_without_sense_are_one_sentence(settings, error, words):
    problem = linear(num_rows=10, dims=1)
    with pytest.raises(error, match=words):
        credo.fit(KEY, problem.model(), (problem.inputs, problem.targets), VI(**settings), steps=2)


def test_measurement_points_lie_in_the_widened_box_and_on_rows():
    problem = linear(num_rows=10, dims=2)
    method = VI(points=50, rows=4, margin=0.5)
    batch = Batch(jnp.asarray(problem.inputs), jnp.asarray(problem.targets)[:, None], jnp.ones(10).at[7:].set(0.0), 7)
    model = problem.model()
    state = method.init(KEY, model, model.init(KEY, batch), batch)
    places = np.asarray(method._locations(KEY, state, batch))
    low, high = problem.inputs[:7].min(0), problem.inputs[:7].max(0)
    wide = 0.5 * (high - low)
    assert (places[4:] >= low - wide - 1e-6).all()
    assert (places[4:] <= high + wide + 1e-6).all()
    assert all((np.abs(problem.inputs[:7] - place) < 1e-6).all(1).any() for place in places[:4])


def test_no_key_is_used_twice():
    """The network's own key and that of the measurement points, which JAX derives alike from one key."""
    problem = linear(num_rows=6, dims=2)
    model, method = problem.model(), VI(kernel=LinearKernel(1.0))
    weight, num_data = np.ones(6, np.float32), np.float32(6)
    batch = Batch(problem.inputs, problem.targets[:, None], weight, num_data)
    state = method.init(KEY, model, model.init(KEY, batch), batch)
    (_, key_network), key_functions = method.noise(KEY, model, Phase("optimise", 10), state)
    assert not np.array_equal(*(jax.random.key_data(key) for key in (key_network, key_functions)))
