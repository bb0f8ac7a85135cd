"""Weights of draws: chains stay chains, importance sampling says how it went, and what weights leave of the draws."""

import dataclasses

import jax
import numpy as np
import pytest

from credo.evaluation.diagnostics import chain_stats, diagnose, loo
from credo.evaluation.diagnostics.draw_weights import kish
from credo.posteriors import Particles, Samples, SubsetPosterior

from .conftest import PROBLEM, as_params, autoregressive, exact_draws, with_posterior

KEY = jax.random.key(0)
SPREAD = np.sqrt(np.diag(PROBLEM.covariance))


def decay(chains, draws):
    """Log weights of draws whose steps become shorter."""
    return np.broadcast_to(-np.log1p(np.arange(draws) / 20), (chains, draws)).astype(np.float32)


def weighted(base, theta, weights, **others):
    return with_posterior(base, Samples(as_params(theta), {}, weights), **others)


def test_what_weights_leave_of_a_chain():
    """The variance of weighted means of 4,000 AR(1) chains, ρ = 0.8, is 1/(ESS · Kish) with ESS = S (1 − ρ)/(1 + ρ);
    its standard error is 2.2 % and the ends of a chain are 1 % of it."""
    weights = np.exp(decay(1, 500)[0].astype(np.float64))
    means = autoregressive((4000, 500), 0.8) @ (weights / weights.sum())
    assert 1 / means.var() == pytest.approx(500 * 0.2 / 1.8 * kish(np.log(weights)), rel=0.12)
    assert kish(None) == 1
    assert kish(np.zeros((2, 50))) == pytest.approx(1)
    assert kish(np.where(np.arange(100) < 25, 0.0, -np.inf)) == pytest.approx(0.25)


def test_weighted_chains_are_judged_as_chains(base):
    """Slow chains do not hide behind weights, nor do divergences; the ESS is that of the chains times Kish's share."""
    slow = PROBLEM.mean + SPREAD * autoregressive((4, 200, 5), 0.995)
    found = diagnose(KEY, weighted(base, slow, decay(4, 200)))
    assert found.kind == "chains"
    assert [a.id for a in found.alarms] == ["unconverged"]
    theta, weights = exact_draws(PROBLEM, 4, 1000), decay(4, 1000)
    trace = {"divergent": np.eye(4, 1000) > 0}
    found = diagnose(KEY, weighted(base, theta, weights, trace=trace))
    assert [a.id for a in found.alarms] == ["divergences"]
    plain = diagnose(KEY, weighted(base, theta, None))
    for one, other in zip(found.convergence, plain.convergence, strict=True):
        assert one.rhat == other.rhat
        assert one.ess_bulk == pytest.approx(kish(weights) * other.ess_bulk)
        assert one.mcse_mean == pytest.approx(other.mcse_mean / np.sqrt(kish(weights)))


def test_few_draws_are_left_by_steep_weights(base):
    """4 × 500 independent draws of which 4 × 15 count."""
    weights = np.where(np.arange(500) < 15, 0.0, -30.0) + np.zeros((4, 1))
    found = diagnose(KEY, weighted(base, exact_draws(PROBLEM, 4, 500), weights.astype(np.float32)))
    assert [a.id for a in found.alarms] == ["low_ess"]


def test_a_chain_without_weight_is_not_judged(base):
    """Stacking may leave a chain out: what it did, and where, does not matter then."""
    theta = exact_draws(PROBLEM, 3, 1000)
    theta[2] += 10 * SPREAD
    divergent = np.zeros((3, 1000), bool)
    divergent[2] = True
    weights = np.log(np.array([0.4, 0.6, 1e-5]) / 1000)[:, None] + np.zeros((1, 1000))
    found = diagnose(KEY, weighted(base, theta, weights.astype(np.float32), trace={"divergent": divergent}))
    assert found.alarms == ()
    assert (found.members, found.divergences) == (2, 0)
    assert max(row.rhat for row in found.convergence) < 1.05
    weights[2] = weights[1]
    found = diagnose(KEY, weighted(base, theta, weights.astype(np.float32)))
    assert [a.id for a in found.alarms] == ["modes"]


@pytest.mark.parametrize(
    ("k", "worth", "alarms"), [(2.0, 3.0, ["weights"]), (0.3, 50.0, ["low_ess"]), (0.3, 900.0, [])]
)
def test_draws_chosen_by_weight_are_no_chain(base, k, worth, alarms):
    """They repeat in random order: chain statistics see nothing, what importance sampling told does."""
    theta = exact_draws(PROBLEM, 1, 1000)
    posterior = Particles(as_params(theta), {}, None, np.zeros(1), np.float32(k), np.float32(worth))
    free = jax.tree.map(lambda x: None, posterior.params["network"])
    held = SubsetPosterior(posterior, posterior.params | {"network": free})
    for own in (posterior, held):
        found = diagnose(KEY, with_posterior(base, own))
        assert (found.kind, found.convergence) == ("weighted", ())
        assert [a.id for a in found.alarms] == alarms
    assert [a.id for a in diagnose(KEY, with_posterior(base, posterior, loop=None)).alarms] == alarms


def test_leave_one_out_knows_what_chosen_draws_are_worth(base):
    """ArviZ is told ESS/S = 0.25, and takes a longer tail for it; a resampled chain seems independent."""
    theta = exact_draws(PROBLEM, 1, 500)[:, np.random.default_rng(0).integers(0, 500, 1000)]
    posterior = Particles(as_params(theta), {}, None, np.zeros(1), np.float32(0.2), np.float32(250))
    fit = with_posterior(base, posterior)
    data = (PROBLEM.inputs, PROBLEM.targets)
    other = loo(dataclasses.replace(fit, posterior=Samples(posterior.params, {})), data)
    assert chain_stats(theta).ess_bulk.min() > 500
    assert not np.array_equal(loo(fit, data).pareto_k, other.pareto_k)
