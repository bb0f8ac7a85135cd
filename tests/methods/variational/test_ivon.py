"""IVON: the mean-field optimum of the same bound, with its knobs (B6)."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.methods.variational.ivon import IVON
from oracles import coefficients, linear

PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)


def moments(fit):
    return tuple(coefficients(t["network"])[0].astype(np.float64) for t in (fit.posterior.mean, fit.posterior.std))


def fit(method=None, model=None, **options):
    return credo.fit(jax.random.key(0), model or PROBLEM.model(), DATA, method or IVON(), **options)


OPTIONS = [
    {},
    *(pytest.param(o, marks=pytest.mark.full) for o in ({"num_samples": 4}, {"clip": None}, {"hessian_memory": 0.999})),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_reaches_the_mean_field_optimum(options):
    mean, std = moments(fit(IVON(**options)))
    np.testing.assert_allclose(mean, PROBLEM.mean, atol=0.2 * PROBLEM.mean_field_std.min())
    np.testing.assert_allclose(std, PROBLEM.mean_field_std, rtol=0.05)


def test_beta_and_temperature_have_the_meaning_they_have_in_bayes_by_backprop():
    """β: precision X'X/βσ² + I; T: precision Λ/T."""
    _, weak = moments(fit(IVON(beta=4.0)))
    expected = 1 / np.sqrt(np.diag((PROBLEM.precision - np.eye(5)) / 4 + np.eye(5)))
    np.testing.assert_allclose(weak, expected, rtol=0.05)
    _, cold = moments(fit(model=PROBLEM.model().tempered(0.25)))
    np.testing.assert_allclose(cold, 0.5 * PROBLEM.mean_field_std, rtol=0.05)


@pytest.mark.full
def test_a_prior_inside_the_loss_is_the_same_prior():
    """A scale mixture of two equal normals is a normal, but has no closed form: δ = 0 and the same optimum."""
    mixture = credo.priors.scale_mixture(mix=0.5, scale_wide=1.0, scale_narrow=1.0)
    mean, std = moments(fit(model=PROBLEM.model().with_prior(mixture)))
    np.testing.assert_allclose(mean, PROBLEM.mean, atol=0.2 * PROBLEM.mean_field_std.min())
    np.testing.assert_allclose(std, PROBLEM.mean_field_std, rtol=0.05)


def test_a_tight_prior_away_from_zero():
    """δ is large and the prior pulls the mean off the best fit: precision X'X/σ² + I/s², mean by normal equations."""
    centre = {"output": {"kernel": np.full((1, 4), 2.0, np.float32), "bias": np.full(1, -1.0, np.float32)}}
    model = PROBLEM.model().with_prior(credo.priors.centred_on(centre, 0.02))
    mean, std = moments(fit(model=model))
    data = PROBLEM.precision - np.eye(5)
    precision = data + np.eye(5) / 0.02**2
    loc = np.array([-1.0, 2, 2, 2, 2])
    expected = np.linalg.solve(precision, data @ PROBLEM.least_squares + loc / 0.02**2)
    np.testing.assert_allclose(mean, expected, atol=0.2 / np.sqrt(np.diag(precision).max()))
    np.testing.assert_allclose(std, 1 / np.sqrt(np.diag(precision)), rtol=0.05)


@pytest.mark.parametrize("noise", ["learned", "inferred"])
def test_noise(noise):
    model = dataclasses.replace(PROBLEM.model(), likelihood=credo.likelihoods.gaussian(noise))
    q = fit(model=model).posterior
    where = q.points if noise == "learned" else q.mean
    assert float(np.exp(where["likelihood"]["log_scale"][0, 0])) == pytest.approx(PROBLEM.noise, rel=0.15)
    if noise == "inferred":
        spread = float(q.std["likelihood"]["log_scale"][0, 0]) * np.sqrt(2 * len(PROBLEM.inputs))
        assert abs(spread - 1) < 0.1


def test_the_hessian_stays_positive():
    """A far start on a bent network: estimates of the curvature are often negative, h + δ never is."""
    x = np.linspace(-2, 2, 64, dtype=np.float32)[:, None]
    model = credo.Model(
        credo.networks.mlp([10], activation="tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1)
    )
    found = credo.fit(jax.random.key(0), model, (x, np.sin(4 * x[:, 0])), IVON(initial_hessian=0.01), steps=500)
    assert found.status.outcome == "finished"
    assert all((s > 0).all() for s in jax.tree.leaves(found.posterior.std))


def test_wrong_options_are_sentences():
    for options, match in (({"initial_hessian": 0.0}, "positive"), ({"momentum": 1.0}, "momentum")):
        with pytest.raises(InputError, match=match):
            fit(IVON(**options), steps=1)
