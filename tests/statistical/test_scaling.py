"""B1: the variational optimum does not depend on the batch size."""

import jax
import numpy as np
import pytest

import credo
from oracles import coefficients, linear

PROBLEM = linear()
ROWS = len(PROBLEM.inputs)


def errors(method, batch_size, seed=0, steps=40_000):
    """(mean error in mean-field stds, relative error of the stds), the largest over coefficients."""
    data = (PROBLEM.inputs, PROBLEM.targets)
    fit = credo.fit(jax.random.key(seed), PROBLEM.model(), data, method, steps=steps, batch_size=batch_size)
    mean, std = (coefficients(t["network"])[0] for t in (fit.posterior.mean, fit.posterior.std))
    shift = np.abs(mean - PROBLEM.mean) / PROBLEM.mean_field_std
    return shift.max(), np.abs(std / PROBLEM.mean_field_std - 1).max()


@pytest.mark.parametrize("estimator", ["weights", "local"])
@pytest.mark.parametrize("share", [1, pytest.param(4, marks=pytest.mark.full), 16])
def test_mean_field_is_exact_for_every_batch_size(share, estimator):
    shift, spread = errors(credo.methods.BayesByBackprop(estimator=estimator), ROWS // share)
    assert shift < 0.2
    assert spread < 0.05


# The slower ones and every other batch size are in `make test-full`.
OTHERS = {
    "flipout": credo.methods.BayesByBackprop(estimator="flipout"),
    "antithetic": credo.methods.BayesByBackprop(num_samples=2, antithetic=True),
    "path": credo.methods.BayesByBackprop(path_gradient=True),
    "black_box_vi": credo.methods.BlackBoxVI(),
    "ivon": credo.methods.IVON(),
}


@pytest.mark.full
@pytest.mark.parametrize("share", [1, pytest.param(4, marks=pytest.mark.full), 16])
@pytest.mark.parametrize("name", list(OTHERS))
def test_other_estimators_of_the_mean_field_optimum(name, share):
    shift, spread = errors(OTHERS[name], ROWS // share)
    assert shift < 0.2
    assert spread < 0.05


@pytest.mark.parametrize("share", [1, pytest.param(4, marks=pytest.mark.full), 16])
@pytest.mark.parametrize("family", ["full", pytest.param("low_rank", marks=pytest.mark.full)])
def test_richer_families_for_every_batch_size(family, share):
    """Covariances to 10 % of the largest variance, means to 0.2 of a mean-field standard deviation."""
    method = credo.methods.BayesByBackprop(family=family, rank=5)
    data = (PROBLEM.inputs, PROBLEM.targets)
    q = credo.fit(jax.random.key(0), PROBLEM.model(), data, method, steps=40_000, batch_size=ROWS // share).posterior
    draws = coefficients(q.sample(jax.random.key(1), 20_000)["network"]).astype(np.float64)
    assert (np.abs(draws.mean(0) - PROBLEM.mean) < 0.2 * PROBLEM.mean_field_std).all()
    assert np.abs(np.cov(draws.T) - PROBLEM.covariance).max() < 0.1 * PROBLEM.covariance.max()


@pytest.mark.parametrize("share", [4, 16])
def test_scaling_the_kl_by_the_batch_is_caught(share):
    """The same bounds fail when the KL is weighted by M/N, a common mistake."""
    _, spread = errors(credo.methods.BayesByBackprop(beta=1 / share), ROWS // share)
    assert spread > 0.05


@pytest.mark.full
@pytest.mark.parametrize("share", [1, 4, 16])
def test_fresh_keys(share):
    seeds = np.random.SeedSequence().generate_state(5)
    worst = np.max([errors(credo.methods.BayesByBackprop(), ROWS // share, int(s)) for s in seeds], axis=0)
    assert worst[0] < 0.2, seeds
    assert worst[1] < 0.05, seeds


@pytest.mark.full
@pytest.mark.parametrize("share", [1, 4, 16])
def test_fresh_keys_of_ivon(share):
    """Its estimate of the curvature has the noise of the batch: a standard error of 1 % of a std after 80,000 steps on
    16 rows, so that 5 % is five of them."""
    seeds = np.random.SeedSequence().generate_state(5)
    worst = np.max([errors(credo.methods.IVON(), ROWS // share, int(s), 80_000) for s in seeds], axis=0)
    assert worst[0] < 0.2, seeds
    assert worst[1] < 0.05, seeds


def test_monte_carlo_kl_equals_closed_form():
    """A scale mixture of two equal normals is a normal: the Monte-Carlo KL must find the same optimum."""
    mixture = credo.priors.scale_mixture(mix=0.5, scale_wide=1.0, scale_narrow=1.0)
    model = PROBLEM.model().with_prior(mixture)
    method = credo.methods.BayesByBackprop(num_samples=4)
    fit = credo.fit(jax.random.key(0), model, (PROBLEM.inputs, PROBLEM.targets), method, steps=10_000)
    std = coefficients(fit.posterior.std["network"])[0]
    np.testing.assert_allclose(std, PROBLEM.mean_field_std, rtol=0.05)


def test_beta_and_temperature_are_different_knobs():
    """β raises the likelihood to 1/β (precision X'X/βσ² + I); T divides the whole log joint (precision Λ/T)."""
    data = (PROBLEM.inputs, PROBLEM.targets)
    beta = credo.fit(jax.random.key(0), PROBLEM.model(), data, credo.methods.BayesByBackprop(beta=4.0))
    cold = credo.fit(jax.random.key(0), PROBLEM.model().tempered(0.25), data, "bayes_by_backprop")
    prior = np.eye(5)
    weak = 1 / np.sqrt(np.diag((PROBLEM.precision - prior) / 4 + prior))
    np.testing.assert_allclose(coefficients(beta.posterior.std["network"])[0], weak, rtol=0.05)
    half = 0.5 * PROBLEM.mean_field_std
    np.testing.assert_allclose(coefficients(cold.posterior.std["network"])[0], half, rtol=0.05)
    assert (beta.config["beta"], cold.config["temperature"]) == (4.0, 0.25)


def test_inferred_noise_joins_the_mean_field():
    """q over log σ: its mean is near the true noise and its spread near 1/√(2N), the Fisher information of log σ."""
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise="inferred"))
    fit = credo.fit(jax.random.key(0), model, (PROBLEM.inputs, PROBLEM.targets), "bayes_by_backprop")
    mean, std = (float(t["likelihood"]["log_scale"][0, 0]) for t in (fit.posterior.mean, fit.posterior.std))
    assert abs(mean - np.log(PROBLEM.noise)) < 4 / np.sqrt(2 * ROWS)
    assert abs(std * np.sqrt(2 * ROWS) - 1) < 0.1
