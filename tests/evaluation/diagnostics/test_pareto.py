"""k̂ of q: closed forms for Gaussians that are exact, too wide and too narrow."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.network import Variables
from credo.errors import InputError, NoDensity
from credo.evaluation.diagnostics import pareto_k
from credo.evaluation.diagnostics.pareto import log_weights
from credo.posteriors import Linearised, MeanField
from oracles import Linear

from .conftest import PROBLEM, as_params, exact_draws, samples, with_posterior

KEY = jax.random.key(0)


def orthogonal() -> Linear:
    """A design with orthogonal columns: the posterior itself is a mean field."""
    rng = np.random.default_rng(0)
    columns = np.linalg.qr(np.column_stack([np.ones(256), rng.normal(size=(256, 4))]))[0][:, 1:] * 16
    targets = 0.3 + columns @ rng.normal(size=4) + 0.5 * rng.normal(size=256)
    return Linear(columns.astype(np.float32), targets.astype(np.float32), 0.5, 1.0)


EASY = orthogonal()
DATA = (EASY.inputs, EASY.targets)


def q(width, points=None):
    mean, std = (as_params(x[None]) for x in (EASY.mean, width * EASY.mean_field_std))
    parts = ("network",) if points else ("network", "likelihood", "prior")
    mean, std = ({name: tree[name] for name in parts} for tree in (mean, std))
    return MeanField(mean, std, points or {}, {})


def fitted(base, posterior, model=None):
    return with_posterior(base, posterior, model=model or EASY.model())


def test_the_exact_posterior_has_constant_weights(base):
    np.testing.assert_allclose(EASY.precision, np.diag(np.diag(EASY.precision)), atol=1e-2)
    found = pareto_k(KEY, fitted(base, q(1.0)), DATA)
    assert found.k < 0.5
    assert found.ok
    assert found.ess == pytest.approx(1000, rel=0.01)
    assert np.ptp(found.log_weights) < 0.05


def test_a_narrow_q_has_the_shape_that_theory_says(base):
    """k = 1 − s_q²/s_p² for q narrower than p: 0.889 at a third of the width, 0.36 at 0.8. The estimate's error at
    4,000 draws is about 0.07 and its prior pulls towards ½."""
    narrow = pareto_k(KEY, fitted(base, q(1 / 3)), DATA, num=4000)
    assert narrow.k > 0.7
    assert narrow.k == pytest.approx(1 - 1 / 9, abs=0.25)
    assert not narrow.ok
    assert "misses parts" in str(narrow)
    fair = pareto_k(KEY, fitted(base, q(0.8)), DATA, num=4000)
    assert fair.ok
    assert fair.k == pytest.approx(0.36, abs=0.25)


def test_a_wide_q_has_bounded_weights(base):
    assert pareto_k(KEY, fitted(base, q(1.5)), DATA).k < 0.3


def test_points_beside_q_are_held(base):
    """A learned noise at the true value is the model with known noise."""
    likelihood = credo.likelihoods.gaussian(noise="learned")
    model = dataclasses.replace(EASY.model(), likelihood=likelihood)
    points = {"likelihood": {"log_scale": np.full((1, 1), np.log(0.5), np.float32)}, "prior": {}}
    known = pareto_k(KEY, fitted(base, q(0.5)), DATA)
    learned = pareto_k(KEY, fitted(base, q(0.5, points), model), DATA)
    assert learned.k == pytest.approx(known.k, abs=0.02)
    twice = jax.tree.map(lambda x: np.concatenate([x, x]), q(0.5, points))
    assert pareto_k(KEY, fitted(base, twice, model), DATA).k == pytest.approx(known.k, abs=0.02)


def test_temperature_and_weights_are_those_of_the_fit(base):
    """At T = 4 the posterior is twice as wide: q of the old width is too narrow, k = 1 − 1/4."""
    model = EASY.model().tempered(4.0)
    found = pareto_k(KEY, fitted(base, q(1.0), model), DATA, num=4000)
    assert found.k == pytest.approx(0.75, abs=0.25)
    doubled = (*DATA, np.full(256, 2.0))
    assert pareto_k(KEY, fitted(base, q(1.0)), doubled).k > -0.5
    assert pareto_k(KEY, fitted(base, q(1.0)), doubled).ess < 900


def test_draws_have_no_density(base):
    with pytest.raises(NoDensity, match="has no density"):
        pareto_k(KEY, with_posterior(base, samples(exact_draws(PROBLEM, 2, 50))), DATA)
    with pytest.raises(InputError, match="fewer than 25"):
        pareto_k(KEY, fitted(base, q(1.0)), DATA, num=10)


@pytest.fixture(scope="module")
def curved():
    """Laplace around the mode of a small network, and its data: the posterior is far from normal."""
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    data = (x, np.sin(3 * x[:, 0]))
    model = credo.Model(credo.networks.mlp([4], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    return credo.fit(KEY, model, data, "laplace", steps=1000), data


def test_a_linearised_q_is_weighed_by_the_network_itself(curved):
    """log p(θ, D) − log q(θ) of every draw by hand; with the linearisation's likelihood the weights would be equal."""
    fit, (x, y) = curved
    found = log_weights(KEY, fit, (x, y), 40)
    batch = Batch(x, fit.model.likelihood.prepare(y), np.ones(12, np.float32), 12.0)

    def by_hand(params):
        return fit.model.log_joint(Variables(params, {}), batch)[0] - fit.posterior.log_prob(params)

    expected = jax.jit(jax.vmap(by_hand))(fit.posterior.sample(KEY, 40))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=0.05)
    assert found.std() > 5
    assert not pareto_k(KEY, fit, (x, y)).ok
    mean = jax.tree.map(lambda m: np.asarray(m, np.float32), fit.posterior.mean)
    q = MeanField(mean, jax.tree.map(lambda m: np.full_like(m, 0.3), mean), {"likelihood": {}, "prior": {}}, {})
    pair = [log_weights(KEY, with_posterior(fit, p), (x, y), 40) for p in (q, Linearised(q))]
    np.testing.assert_allclose(*pair, rtol=1e-4)


def test_laplace_is_exact_on_a_linear_model():
    data = (PROBLEM.inputs, PROBLEM.targets)
    found = pareto_k(KEY, credo.fit(KEY, PROBLEM.model(), data, "laplace", steps=2000), data)
    assert found.ok
    assert found.ess == pytest.approx(1000, rel=0.05)
