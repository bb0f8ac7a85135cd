"""`vis` (F1): plain variational inference at T = 0, bounds below the evidence, and the posterior at T → ∞."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.errors import InputError, Refusal
from credo.methods.variational import vis
from credo.methods.variational.refinement import SAMPLERS
from credo.methods.variational.vis import VIS, halves
from oracles import coefficients, linear

PROBLEM = linear(num_rows=40, dims=3, correlation=0.9)
KEY = jax.random.key(0)


def mostly_full(names, quick):
    """One of the names in the quick tests, the others in the full ones."""
    return [pytest.param(name, marks=[] if name == quick else [pytest.mark.full]) for name in names]


def log_evidence(problem):
    design, targets = problem.design, problem.targets.astype(np.float64)
    covariance = problem.noise**2 * np.eye(len(targets)) + problem.scale**2 * design @ design.T
    return -0.5 * (
        targets @ np.linalg.solve(covariance, targets) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )  # fmt: skip


def fitted(steps=200, **settings):
    settings = {
        "chains": 1,
        "learning_steps": 1500,
        "bound_draws": 1000,
        "num_samples": 4,
        "learning_rate": 0.02,
    } | settings
    return credo.fit(KEY, PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets), VIS(**settings), steps=steps)


def test_without_steps_it_is_plain_variational_inference():
    """The same key gives the same losses, to the bit."""
    data = (PROBLEM.inputs, PROBLEM.targets)
    plain = credo.fit(KEY, PROBLEM.model(), data, credo.methods.BayesByBackprop(num_samples=2), steps=300)
    same = VIS(refinement=0, num_samples=2, learning_steps=300, chains=1, inference="refined")
    fit = credo.fit(KEY, PROBLEM.model(), data, same, steps=50)
    np.testing.assert_array_equal(fit.phases["optimise"]["loss"], plain.trace["loss"])


@pytest.mark.parametrize("sampler", mostly_full(SAMPLERS, "hamiltonian"))
def test_the_bound_rises_with_steps_and_stays_below_the_evidence(sampler):
    """A correlated Gaussian posterior: mean field falls short by a known gap, steps close a part of it."""
    truth = log_evidence(PROBLEM)
    best = 0.5 * (np.log(np.diag(PROBLEM.precision)).sum() - np.linalg.slogdet(PROBLEM.precision)[1])
    found = {}
    for steps in (0, 4):
        bound = fitted(refinement=steps, sampler=sampler, inference="refined").phases["bound"]["bound"][0]
        found[steps] = (bound.mean(dtype=np.float64), bound.std(dtype=np.float64) / np.sqrt(len(bound)))
        assert found[steps][0] - 4 * found[steps][1] < truth
    np.testing.assert_allclose(found[0][0], truth - best, atol=4 * found[0][1] + 0.02)
    assert found[4][0] - 4 * np.hypot(found[0][1], found[4][1]) > found[0][0]


def test_the_rows_that_drive_a_path_do_not_judge_it():
    """Every other row and those in between, both scaled to all N; a full batch is both."""
    rows = jnp.arange(6)
    batch = Batch(jnp.arange(6.0)[:, None], jnp.arange(6.0), jnp.ones(6), 60, rows)
    drive, judge = halves(batch)
    assert set(map(int, drive.rows)) | set(map(int, judge.rows)) == set(range(6))
    assert not set(map(int, drive.rows)) & set(map(int, judge.rows))
    assert float(drive.total(jnp.ones(3))) == float(judge.total(jnp.ones(3))) == 60
    whole = batch._replace(rows=None)
    assert halves(whole)[0] is whole
    with pytest.raises(InputError, match="batch_size=3 or more"):
        halves(jax.tree.map(lambda x: x[:2], batch._replace(num_data=None))._replace(num_data=60))


def test_paths_judged_by_their_own_minibatch_would_claim_too_much():
    """θ ~ N(0, 10²) and y_n ~ N(θ, 1): one uphill step per minibatch of 2 out of 40 rows. Judged by the rows that drove
    it the mean bound lies above log p(D), judged by others below: the reason for `halves`."""
    rng = np.random.default_rng(0)
    targets = rng.normal(size=40)
    covariance = np.eye(40) + 100.0
    truth = -0.5 * (targets @ np.linalg.solve(covariance, targets) + np.linalg.slogdet(2 * np.pi * covariance)[1])
    mean, std = targets.mean(), 1 / np.sqrt(40)
    own, other = [], []
    for _ in range(4000):
        rows = rng.permutation(40)[:4]
        start = mean + std * rng.normal()
        drive = targets[rows[:2]].mean()
        step = 0.9  # of the way to the mode of the minibatch
        end = start + step * (drive - start)
        delta = np.log(1 - step)
        entropy = 0.5 * ((start - mean) / std) ** 2 + 0.5 * np.log(2 * np.pi * std**2)
        prior = -0.5 * end**2 / 100 - 0.5 * np.log(2 * np.pi * 100)
        for kept, judges in ((own, rows[:2]), (other, rows[2:])):
            likelihood = 40 * (-0.5 * (targets[judges] - end) ** 2 - 0.5 * np.log(2 * np.pi)).mean()
            kept.append(likelihood + prior + entropy + delta)
    assert np.mean(own) - 4 * np.std(own) / np.sqrt(4000) > truth
    assert np.mean(other) + 4 * np.std(other) / np.sqrt(4000) < truth


@pytest.mark.parametrize("family", mostly_full(("mean_field", "full", "mixture", "low_rank"), "mean_field"))
def test_draws_of_refined_paths_and_of_chains_have_all_parameters(family):
    for inference in ("refined", "chain"):
        fit = fitted(50, family=family, inference=inference, refinement=2, learning_steps=50, settle=50)
        assert coefficients(fit.posterior.params["network"]).shape == (1, 50, 4)
    assert "The log evidence is at least" in str(fit.status)


def test_a_chain_may_follow_plain_variational_inference():
    fit = fitted(300, refinement=0, inference="chain", learning_steps=500, settle=200)
    draws = coefficients(fit.posterior.params["network"])[0]
    assert (np.abs(draws.mean(0) - PROBLEM.mean) / np.sqrt(np.diag(PROBLEM.covariance))).max() < 0.5


def test_the_energy_of_a_chain_that_stays_is_that_of_its_start(monkeypatch):
    """Steps fifty times too long are all refused, so that H + log p(θ, D) = ½ r'M⁻¹r of fresh momenta, with mean 2 and
    variance 2 for four weights: 300 draws within 5 standard errors (rate 6e-7)."""
    kernel = vis.KERNEL

    def too_long(key, chain, log_density, step_size, *rest):
        return kernel(key, chain, log_density, 50 * step_size, *rest)

    monkeypatch.setattr(vis, "KERNEL", too_long)
    trace = fitted(300, refinement=0, inference="chain", learning_steps=100, bound_draws=10, settle=1).trace
    assert trace["acceptance"].max() == 0
    kinetic = trace["energy"].astype(np.float64) + trace["log_density"]
    assert kinetic.mean() == pytest.approx(2, abs=5 * np.sqrt(2 / 300))


@pytest.mark.full
def test_minibatches_are_learned_from():
    fit = credo.fit(
        KEY, PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets), VIS(chains=1, learning_steps=1500, refinement=2),
        steps=400, batch_size=10,
    )  # fmt: skip
    draws = coefficients(fit.posterior.params["network"])[0]
    assert (np.abs(draws.mean(0) - PROBLEM.mean) / np.sqrt(np.diag(PROBLEM.covariance))).max() < 0.5
    bound = fit.phases["bound"]["bound"]
    assert bound.mean() < log_evidence(PROBLEM)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"sampler": "walk"}, InputError, "sampler must be one of langevin"),
        ({"inference": "all"}, InputError, "inference one of chain, refined"),
        ({"refinement": -1}, InputError, "refinement of VIS is a whole number of at least 0"),
        ({"estimator": "local"}, Refusal, "move one θ for all rows"),
    ],
)
def test_settings_without_sense_are_one_sentence(settings, error, words):
    with pytest.raises(error, match=words):
        fitted(**settings)


@pytest.mark.full
def test_steps_that_are_too_long_from_the_first_are_lowered():
    """Leapfrog steps of 3 on −x⁴ overflow within two steps; a tenth of them does not, and a note says so."""
    model = credo.from_density(quartic, np.zeros(2))
    method = VIS(refinement=4, initial_std=1.0, refined_step=3.0, learning_steps=100, chains=1, inference="refined")
    fit = credo.fit(KEY, model, model.data, method, steps=50)
    assert np.isfinite(fit.posterior.params["network"]["theta"]).all()
    assert any("non-finite" in note for note in fit.notes)


def quartic(x):
    return -(x**4).sum()


def test_refine_takes_a_variational_method_over():
    method = credo.refine(credo.methods.BayesByBackprop(family="low_rank", rank=2), "langevin", 7)
    assert (method.family, method.rank, method.sampler, method.refinement) == ("low_rank", 2, "langevin", 7)
    with pytest.raises(InputError, match="refine expects"):
        credo.refine(credo.methods.MAP(), "langevin", 7)
