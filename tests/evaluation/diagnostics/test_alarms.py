"""Every alarm rings where it should, and none on a healthy fit."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.evaluation.diagnostics import alarms, diagnose
from credo.evaluation.diagnostics.probe import Probe, look
from credo.posteriors import MeanField
from credo.registry import ROWS
from oracles import first_of_each_claim

from .conftest import PROBLEM, as_params, autoregressive, exact_draws, samples, with_posterior

KEY = jax.random.key(0)
SPREAD = np.sqrt(np.diag(PROBLEM.covariance))


def ids(fit):
    return [alarm.id for alarm in diagnose(KEY, fit).alarms]


def probe_of(values):
    """A look at function values [chain, draw, n] alone."""
    nothing = np.zeros((0, 0))
    return Probe(values[..., None], {}, None, nothing, nothing, None, None, values.shape[2])


def mean_field(mean, std):
    mean, std = (as_params(np.broadcast_to(x, (1, 5))) for x in (mean, std))
    return MeanField(mean, std, {}, {})


@pytest.mark.parametrize("row", first_of_each_claim(ROWS))
def test_no_alarm_on_a_healthy_fit(row):
    method = row.load()(**row.quick_settings())
    chains = row.exact_on in ("posterior", "near_posterior")
    length = {"steps": 1000 * row.thin, "thin": row.thin} if chains else {}
    fit = credo.fit(KEY, PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets), method, **length)
    assert fit.status.alarms == ()
    assert str(fit.status) == " ".join(["The fit finished.", *fit.notes])  # a sampler may say how it set itself
    assert "No alarms." in fit.summary()


def test_exact_draws_raise_no_alarm(base):
    assert ids(with_posterior(base, samples(exact_draws(PROBLEM)))) == []
    assert ids(with_posterior(base, mean_field(PROBLEM.mean, PROBLEM.mean_field_std))) == []


def test_chains_in_different_modes(base):
    """Two chains at the truth and two far from it, each of independent draws."""
    theta = exact_draws(PROBLEM, 4, 200)
    theta[2:] += 10 * SPREAD
    found = diagnose(KEY, with_posterior(base, samples(theta)))
    assert [a.id for a in found.alarms] == ["modes"]
    assert "more draws will not help" in str(found.alarms[0])
    assert found.space("function")[0].rhat > 1.5


def test_an_alarm_names_what_disagrees():
    """Functions of independent draws, and noise of which every chain knows another part."""
    rng = np.random.default_rng(0)
    values, noise = rng.normal(size=(4, 200, 9)), rng.normal(size=(4, 200, 1)) + 10 * np.arange(4)[:, None, None]
    (alarm,) = alarms._convergence(probe_of(values)._replace(noise=noise), {})
    assert "R-hat of the size of the noise" in str(alarm)
    (alarm,) = alarms._convergence(probe_of(values + noise)._replace(noise=values[..., :1]), {})
    assert "R-hat of function values" in str(alarm)


def test_noise_counts_by_its_size_in_predictions():
    """Of Student-t noise the scale and the degrees of freedom together are the size."""
    x = np.linspace(-1, 1, 30)[:, None]
    model = credo.Model(credo.networks.mlp([3]), credo.priors.normal(1.0), credo.likelihoods.heteroscedastic_t(0.1))
    fit = credo.fit(KEY, model, (x, x[:, 0]), "hmc", steps=6)
    probe = look(KEY, fit, x[:5])
    chains, draws = probe.values.shape[:2]
    assert probe.noise.shape == (chains, draws, 5, 1)
    ((name, tails),) = probe.likelihood.items()
    for chain, draw in ((0, 0), (chains - 1, draws - 1)):
        likelihood = fit.model.likelihood
        wanted = likelihood.variance({name.split("/")[-1]: tails[chain, draw]}, probe.values[chain, draw])
        np.testing.assert_allclose(np.exp(2 * probe.noise[chain, draw]), wanted, rtol=1e-4)


def test_short_chains_that_agree_are_not_called_modes():
    """R-hat of 2 × 50 independent draws is often above 1.05 by chance, and chance is what is said of it: at most 3 of
    100 pairs of chains are taken for modes, though each is looked at at 16 values."""
    mix = np.random.default_rng(1).normal(size=(5, 16))
    found = [
        list(alarms._convergence(probe_of(np.random.default_rng(seed).normal(size=(2, 50, 5)) @ mix), {}))
        for seed in range(100)
    ]
    assert sum(bool(one) and one[0].id == "modes" for one in found) <= 3
    apart = [
        np.random.default_rng(seed).normal(size=(2, 100, 5)) + 3 * np.arange(2)[:, None, None] for seed in range(20)
    ]
    assert all(next(alarms._convergence(probe_of(chains @ mix), {})).id == "modes" for chains in apart)


def test_chains_that_have_not_arrived(base):
    """One mode, but chains that wander slowly (ρ = 0.995) or still climb."""
    slow = PROBLEM.mean + SPREAD * autoregressive((4, 200, 5), 0.995)
    climb = exact_draws(PROBLEM, 4, 200) + np.linspace(10, 0, 200)[:, None] * SPREAD
    for theta in (slow, climb):
        found = diagnose(KEY, with_posterior(base, samples(theta)))
        assert [a.id for a in found.alarms] == ["unconverged"]
        assert "such as a budget of 5m, or a longer warm-up" in str(found.alarms[0])


def test_one_chain_alone_can_be_unconverged(base):
    climb = exact_draws(PROBLEM, 1, 200) + np.linspace(10, 0, 200)[:, None] * SPREAD
    assert ids(with_posterior(base, samples(climb))) == ["unconverged"]


def test_few_effective_draws(base):
    """4 × 20 independent draws are too few, though nothing is wrong with them."""
    found = diagnose(KEY, with_posterior(base, samples(exact_draws(PROBLEM, 4, 20, seed=4))))
    assert [a.id for a in found.alarms] == ["low_ess"]
    assert "times as many draws" in found.alarms[0].advice


def test_divergences_and_energy(base):
    draws = samples(exact_draws(PROBLEM))
    divergent = np.zeros((4, 1000), bool)
    divergent[0, :3] = True
    energy = autoregressive((4, 1000), 0.95)
    trace = {"log_density": autoregressive((4, 1000), 0.0), "divergent": divergent, "energy": energy}
    fit = with_posterior(base, draws, trace=trace)
    found = diagnose(KEY, fit)
    assert [a.id for a in found.alarms] == ["divergences", "energy"]
    assert (found.divergences, found.transitions) == (3, 4000)
    assert str(fit.status).count("diverged") == 1


def test_collapsed_to_a_point(base):
    """A tenth of what one parameter leaves is a collapse; the exact mean field and a point by construction are not."""
    assert ids(with_posterior(base, mean_field(PROBLEM.mean, 1e-4))) == ["collapsed"]
    assert ids(with_posterior(base, samples(PROBLEM.mean + np.zeros((4, 50, 1))))) == ["collapsed"]
    assert ids(with_posterior(base, samples(PROBLEM.mean + np.zeros((1, 1, 1))))) == []


def test_posterior_equal_to_the_prior(base):
    rng = np.random.default_rng(0)
    assert ids(with_posterior(base, mean_field(0.0, PROBLEM.scale))) == ["prior"]
    assert ids(with_posterior(base, samples(rng.normal(size=(4, 500, 5))))) == ["prior"]


def test_constant_spread(base):
    """Only the bias is uncertain, so the spread is the same everywhere."""
    std = np.array([0.05, *[1e-7] * 4])
    assert ids(with_posterior(base, mean_field(PROBLEM.mean, std))) == ["constant"]


def test_noise_at_its_bound(base):
    x = PROBLEM.inputs
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(10.0), credo.likelihoods.gaussian())
    fit = credo.fit(KEY, model, (x, PROBLEM.targets), "map", steps=1)
    fit.posterior.params["likelihood"]["log_scale"] = np.full((1, 1, 1), -12.0, np.float32)
    assert ids(with_posterior(fit, fit.posterior)) == ["noise_bound"]
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.heteroscedastic())
    fit = credo.fit(KEY, model, (x, PROBLEM.targets), "map", steps=1)
    layer = {"bias": np.array([[[0.0, -20.0]]], "f4"), "kernel": np.ones((1, 1, 2, 4), "f4")}
    layer["kernel"][0, 0, 1] = 0
    params = fit.posterior.params | {"network": {"output": layer}}
    assert ids(with_posterior(fit, dataclasses.replace(fit.posterior, params=params))) == ["noise_bound"]
