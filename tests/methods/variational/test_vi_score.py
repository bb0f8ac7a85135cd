"""Score-function gradients: unbiased in every form, noisier than reparameterisation, and the same optimum (B3)."""

import jax
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.errors import InputError, Refusal
from credo.evaluation import audit
from credo.evaluation.diagnostics.gradient_variance import ESTIMATORS, estimates
from credo.report import gradient_variance as figure
from oracles import linear

PROBLEMS = audit.problems()
NAMES = ["linear", "linear_orthogonal", "logistic"]


@pytest.fixture(scope="module", params=NAMES)
def fitted(request):
    problem = PROBLEMS[request.param]
    return problem, credo.fit(jax.random.key(0), problem.model, problem.data, "bayes_by_backprop", steps=4000)


def test_reparameterisation_has_less_noise(fitted):
    """Less than the score function and its Rao–Blackwellised form. Control variates of the whole log p − log q have no
    noise where q is the posterior, and neither has the path gradient: of these two it is the smaller again."""
    problem, fit = fitted
    found = credo.diagnostics.gradient_variance(jax.random.key(1), fit, problem.data)
    assert found.ratio("score") > 10
    assert found.ratio("score, Rao-Blackwell") > 10
    assert found.ratio("score, both") > 1
    assert found.total("reparameterised, path") < found.total("score, control variates")
    assert found.total("score, control variates") < 0.1 * found.total("score")
    assert len(found.variance["score"]) == len(found.groups) == 2
    assert "times as large" in str(found)
    assert len(figure(found).axes[0].lines) == len(ESTIMATORS)


def test_all_estimators_have_the_same_mean():
    """|z| of the difference from the reparameterised one, over all coordinates, below the Bonferroni bound for 1e-3;
    q is off the optimum, so that the gradient is not 0."""
    from scipy import stats

    problem = PROBLEMS["logistic"]
    fit = credo.fit(jax.random.key(0), problem.model, problem.data, "bayes_by_backprop", steps=10)
    targets = problem.model.likelihood.prepare(problem.targets)
    batch = Batch(problem.inputs, targets, np.ones(len(targets), np.float32), np.float32(len(targets)))
    found = estimates(jax.random.key(1), fit.posterior, fit.model, batch, np.float32(1.0), 4, 4000)
    base = np.asarray(found["reparameterised"], np.float64)
    assert np.abs(base.mean(0)).max() > 10 * base.std(0).max() / np.sqrt(len(base))
    for name in ESTIMATORS[1:]:
        gap = np.asarray(found[name], np.float64) - base
        z = gap.mean(0) / (gap.std(0) / np.sqrt(len(gap)) + 1e-12)
        assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / z.size / 5), name


@pytest.mark.parametrize("rao_blackwell", [False, True])
def test_the_bound_is_that_of_reparameterisation(fitted, rao_blackwell):
    """ELBOs from 4,000 draws each, within four standard errors and 0.02 nats of what the fits' own noise leaves."""
    problem, fit = fitted
    method = credo.methods.BlackBoxVI(rao_blackwell=rao_blackwell)
    black = credo.fit(jax.random.key(0), problem.model, problem.data, method, steps=8000)
    first, second = (audit.elbo(jax.random.key(2), f, problem.data) for f in (fit, black))
    assert abs(first.value - second.value) < 4 * np.hypot(first.error, second.error) + 0.02


@pytest.mark.full
def test_other_priors_and_learned_noise():
    problem = linear(num_rows=64, dims=2)
    mixed = credo.priors.by_path({"*/bias": credo.priors.laplace(1.0), "*": credo.priors.normal()})
    for prior in (credo.priors.laplace(1.0), mixed):
        model = credo.Model(credo.networks.mlp([]), prior, credo.likelihoods.gaussian("learned"))
        data = (problem.inputs, problem.targets)
        for method in (credo.methods.BlackBoxVI(), credo.methods.BlackBoxVI(rao_blackwell=True)):
            fit = credo.fit(jax.random.key(0), model, data, method, steps=4000)
            noise = float(np.exp(fit.posterior.points["likelihood"]["log_scale"][0, 0]))
            assert noise == pytest.approx(problem.noise, rel=0.3)


def test_wrong_use_is_a_sentence():
    problem = PROBLEMS["linear"]
    with pytest.raises(InputError, match="at least 2 draws"):
        credo.methods.BlackBoxVI(num_samples=1).prepare(problem.model)
    fit = credo.fit(jax.random.key(0), problem.model, problem.data, "map", steps=1)
    with pytest.raises(Refusal, match="mean-field"):
        credo.diagnostics.gradient_variance(jax.random.key(0), fit, problem.data)
