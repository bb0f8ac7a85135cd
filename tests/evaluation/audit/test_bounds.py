"""Bounds and information on the conjugate model (B1, G2, G4)."""

import jax
import numpy as np
import pytest
from scipy import stats

import credo
from credo.errors import NoDensity
from credo.evaluation import audit
from oracles import coefficients, linear

PROBLEM = linear(num_rows=40, dims=2)
EXACT = audit.Conjugate(PROBLEM.inputs, PROBLEM.targets, PROBLEM.noise, PROBLEM.scale)
DATA = (PROBLEM.inputs, PROBLEM.targets)


@pytest.fixture(scope="module")
def fit():
    return credo.fit(jax.random.key(0), PROBLEM.model(), DATA, "bayes_by_backprop", steps=4000)


def test_evidence_of_the_exact_model():
    """log p(y) by the chain rule of predictive densities, one row after another."""
    total = 0.0
    for n in range(len(PROBLEM.inputs)):
        mean, std = audit.Conjugate(PROBLEM.inputs[:n], PROBLEM.targets[:n], PROBLEM.noise, PROBLEM.scale).predict(
            PROBLEM.inputs[n : n + 1]
        )
        total += stats.norm.logpdf(PROBLEM.targets[n], mean[0], np.hypot(std[0], PROBLEM.noise))
    assert EXACT.log_evidence() == pytest.approx(total, rel=1e-9)


def test_bound_is_below_the_evidence_by_the_divergence(fit):
    """ELBO + KL[q‖p(θ|D)] = log p(D), within 4 standard errors of the Monte-Carlo estimate."""
    bound = audit.elbo(jax.random.key(1), fit, DATA)
    mean, std = (coefficients(t["network"])[0] for t in (fit.posterior.mean, fit.posterior.std))
    divergence = audit.gaussian_kl(mean, std, EXACT)
    assert divergence > 0
    assert bound.below(EXACT.log_evidence())
    assert bound.value + divergence == pytest.approx(EXACT.log_evidence(), abs=4 * bound.error + 1e-3)


def test_the_methods_own_loss_is_that_bound(fit):
    """The trace reports −ELBO/N: its last values estimate the same number."""
    loss = np.asarray(fit.trace["loss"], float)[0, -1000:]
    bound = audit.elbo(jax.random.key(2), fit, DATA)
    error = 4 * np.hypot(bound.error, loss.std() * len(PROBLEM.inputs) / np.sqrt(200))
    assert -loss.mean() * len(PROBLEM.inputs) == pytest.approx(bound.value, abs=error + 0.05)


def test_a_wrong_density_breaks_the_bound(fit, monkeypatch):
    """A density of q without its normaliser lifts the 'bound' above the evidence: the check sees it."""
    right = type(fit.posterior).log_prob
    monkeypatch.setattr(type(fit.posterior), "log_prob", lambda q, params: right(q, params) - 5.0)
    # another number of draws is another program: the right density is compiled into the old one
    assert not audit.elbo(jax.random.key(3), fit, DATA, num=3000).below(EXACT.log_evidence())


def test_samples_have_no_bound():
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, "map", steps=50)
    with pytest.raises(NoDensity):
        audit.elbo(jax.random.key(1), fit, DATA)


def test_both_forms_of_mutual_information_agree():
    """H[y*] − E H[y*|θ] = E_{y*} KL[p(θ|D, x*, y*) ‖ p(θ|D)]."""
    new = 3 * PROBLEM.inputs[:10]
    first, second = audit.mutual_information(EXACT, new), audit.information_gain(EXACT, new)
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_predictive_mutual_information_is_the_exact_one():
    """From 1,000 exact draws of the weights through `Predictive`: the relative error of a variance is 4.5 %."""
    from credo.core.network import Variables
    from credo.posteriors import Samples

    draws = np.random.default_rng(0).multivariate_normal(EXACT.mean, EXACT.covariance, 1000)
    params = {
        "network": {"output": {"bias": draws[None, :, :1], "kernel": draws[None, :, None, 1:]}},
        "likelihood": {}, "prior": {},
    }  # fmt: skip
    params = jax.tree.map(lambda x: np.asarray(x, np.float32), params)
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, "map", steps=1, start=Variables(_first(params), {}))
    import dataclasses

    exact = dataclasses.replace(fit, posterior=Samples(params, {}))
    new = 4 * PROBLEM.inputs[:3]
    found = credo.predict(jax.random.key(0), exact, new).mutual_information()
    np.testing.assert_allclose(found, audit.mutual_information(EXACT, new), rtol=0.2, atol=1e-3)


def _first(params):
    return jax.tree.map(lambda x: x[0, 0], params)
