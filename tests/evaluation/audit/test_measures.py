"""Distances from the truth, where they are known in closed form (G4)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo import likelihoods
from credo.core.posterior import Draws
from credo.evaluation import audit
from credo.evaluation.audit.claims import judge, judge_chains
from credo.evaluation.audit.measures import measure, measure_draws
from credo.evaluation.audit.truth import Truth, normal_truth

NOISE = 0.5
MEAN, STD = np.array([0.0, 1.0, -2.0]), np.array([0.4, 1.0, 0.2])
PROBLEM = dataclasses.replace(
    audit.problems()["linear"], find_truth=lambda: normal_truth(MEAN, STD, NOISE, ""),
    regions={"first": np.array([True, False, False])},
)  # fmt: skip
LIKELIHOOD = likelihoods.gaussian(noise=NOISE)


def draws(shift=0.0, shrink=1.0, count=20_000):
    """The true posterior at the middles of its quantiles, moved and shrunk: no Monte-Carlo error."""
    rng = np.random.default_rng(0)
    level = (np.arange(count) + 0.5) / count
    columns = [m + s * (shift + shrink * rng.permutation(stats.norm.ppf(level))) for m, s in zip(MEAN, STD)]
    values = np.stack(columns, -1).reshape(4, count // 4, 3, 1)
    return Draws(values.astype(np.float32), {}, None)


def test_the_truth_itself_is_exact():
    found = measure_draws(LIKELIHOOD, draws(), PROBLEM)
    assert found["mean_error"] == pytest.approx(0.0, abs=1e-4)
    assert found["std_ratio"] == pytest.approx(1.0, abs=1e-3)
    assert found["std_ratio_first"] == pytest.approx(1.0, abs=1e-3)
    assert found["coverage_90"] == pytest.approx(0.9, abs=1e-3)
    assert found["credible_90"] == pytest.approx(0.9, abs=1e-2)
    for name in ("w1", "w1_function", "total_variation", "regret"):
        assert found[name] == pytest.approx(0.0, abs=6e-3), name
    assert found["agreement"] is None


def test_a_posterior_half_as_wide():
    found = measure_draws(LIKELIHOOD, draws(shrink=0.5), PROBLEM)
    assert found["std_ratio"] == pytest.approx(0.5, abs=1e-3)
    # W1 between normals of one mean is the difference of their mean absolute deviations.
    assert found["w1_function"] == pytest.approx(0.5 * np.sqrt(2 / np.pi), abs=0.01)
    wide, narrow = np.sqrt(STD**2 + NOISE**2), np.sqrt(STD**2 / 4 + NOISE**2)
    assert found["w1"] == pytest.approx(((wide - narrow) / wide).mean() * np.sqrt(2 / np.pi), rel=0.02)
    assert found["credible_90"] == pytest.approx(2 * stats.norm.cdf(1.645 / 2) - 1, abs=0.01)
    assert found["coverage_90"] == pytest.approx((2 * stats.norm.cdf(1.6449 * narrow / wide) - 1).mean(), abs=1e-3)
    kl = np.log(narrow / wide) + wide**2 / narrow**2 / 2 - 0.5
    assert found["regret"] == pytest.approx(kl.mean(), rel=0.01)


def test_a_posterior_moved_by_one_standard_deviation():
    found = measure_draws(LIKELIHOOD, draws(shift=1.0), PROBLEM)
    assert found["mean_error"] == pytest.approx(1.0, abs=1e-3)
    assert found["w1_function"] == pytest.approx(1.0, abs=0.01)
    total = np.sqrt(STD**2 + NOISE**2)
    assert found["w1"] == pytest.approx((STD / total).mean(), rel=0.01)
    variation = 2 * stats.norm.cdf(STD / total / 2) - 1
    assert found["total_variation"] == pytest.approx(variation.mean(), rel=0.01)


def test_a_point_has_no_spread():
    point = Draws(np.asarray(MEAN, np.float32).reshape(1, 1, 3, 1), {}, None)
    found = measure_draws(LIKELIHOOD, point, PROBLEM)
    assert found["std_ratio"] == 0.0
    assert found["credible_90"] == 0.0
    assert judge("mode", PROBLEM, found) is True
    assert judge("mean_field", PROBLEM, found) is None
    assert judge("gaussian", PROBLEM, found) is False
    assert judge_chains(LIKELIHOOD, point, PROBLEM.truth) is None


def test_classes_by_hand():
    logits = np.log([[[0.2, 0.8], [0.6, 0.4]], [[0.4, 0.6], [0.8, 0.2]]])[None]  # [chain, draw, row, class]
    quantiles = np.full((128, 2, 2), 0.5)
    true = np.array([[0.1, 0.9], [0.4, 0.6]])
    truth = Truth("classes", true, np.full((2, 2), 0.1), quantiles, None, None, None, np.full((2, 2), np.inf), "")
    problem = dataclasses.replace(PROBLEM, find_truth=lambda: truth, regions={})
    found = measure_draws(likelihoods.categorical(2), Draws(logits.astype(np.float32), {}, None), problem)
    probs = np.array([[0.3, 0.7], [0.7, 0.3]])
    assert found["total_variation"] == pytest.approx(np.abs(probs - true).sum() / 4, abs=1e-5)
    assert found["agreement"] == 0.5
    assert found["regret"] == pytest.approx((true * np.log(true / probs)).sum() / 2, abs=1e-5)
    assert found["mean_error"] == pytest.approx(np.sqrt((((probs - true) / 0.1) ** 2).mean()), rel=1e-4)


def test_z_scores_find_small_errors_of_chains():
    """4 × 1,000 independent draws: right ones pass, 10 % of a standard deviation or 15 % of a spread do not."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(4, 1000, 3, 1))
    right = judge_chains(LIKELIHOOD, Draws((MEAN[:, None] + STD[:, None] * noise), {}, None), PROBLEM.truth)
    moved = judge_chains(LIKELIHOOD, Draws((MEAN + 0.1 * STD)[:, None] + STD[:, None] * noise, {}, None), PROBLEM.truth)
    wide = judge_chains(LIKELIHOOD, Draws(MEAN[:, None] + 1.15 * STD[:, None] * noise, {}, None), PROBLEM.truth)
    assert right.z < right.bound < min(moved.z, wide.z)
    assert right.rhat < 1.01
    assert right.effective > 2500


def test_measure_of_a_fit_uses_its_posterior():
    problem = audit.problems()["linear"]
    fit = credo.fit(jax.random.key(0), problem.model, problem.data, "map", steps=3000)
    found = measure(jax.random.key(1), fit, problem)
    assert found["mean_error"] < 1e-2
    assert found["std_ratio"] == 0.0
    assert jnp.isfinite(found["regret"])
