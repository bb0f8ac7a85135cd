"""The truth of the audit's problems, by other means (G4)."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from scipy import integrate, special, stats

from credo import likelihoods
from credo.core.mixture import Flat
from credo.errors import ArtifactError
from credo.evaluation import audit
from credo.evaluation.audit import reference
from credo.evaluation.audit.truth import LEVELS, normal_truth, truth_of_draws, weighted_quantiles
from oracles import Linear

PROBLEMS = audit.problems()
STORED = [p for p in PROBLEMS.values() if p.stored]


@pytest.mark.parametrize("name", ["linear", "linear_orthogonal"])
def test_linear_problems_match_the_tests_own_oracle(name):
    problem = PROBLEMS[name]
    exact = Linear(problem.inputs, problem.targets, 0.5, 1.0)
    rows = np.column_stack([np.ones(len(problem.places)), problem.places])
    np.testing.assert_allclose(problem.truth.mean[:, 0], rows @ exact.mean, rtol=1e-6)
    np.testing.assert_allclose(problem.truth.std[:, 0] ** 2, np.einsum("ni,ij,nj->n", rows, exact.covariance, rows))
    off_diagonal = exact.precision - np.diag(np.diag(exact.precision))
    assert (np.abs(off_diagonal).max() < 1e-3) == problem.factorised


def test_logistic_by_adaptive_quadrature():
    """SciPy's adaptive double integral of p(y = 1|x) against the grid."""
    problem = PROBLEMS["logistic"]
    x, sign = problem.inputs[:, 0].astype(float), 2.0 * problem.targets - 1

    def integral(power):
        def joint(w, b):
            weight = np.exp(special.log_expit(sign * (b + w * x)).sum() - (b * b + w * w) / 8 + 8)
            return weight * special.expit(b + w * problem.places[14, 0]) ** power

        return integrate.dblquad(joint, -5, 6, -2, 6, epsabs=1e-9, epsrel=1e-7)[0]

    total, first, second = (integral(k) for k in range(3))
    mean = first / total
    assert problem.truth.mean[14, 1] == pytest.approx(mean, abs=1e-5)
    assert problem.truth.std[14, 1] == pytest.approx(np.sqrt(second / total - mean**2), rel=1e-4)


def test_bimodal_truth_has_two_equal_modes(monkeypatch):
    problem = PROBLEMS["bimodal"]
    at = int(np.flatnonzero((problem.places == [0.0, 2.0]).all(1))[0])
    truth = problem.truth
    assert truth.mean[at, 0] == pytest.approx(0.0, abs=1e-5)
    middle = np.exp(truth.log_density[at])[len(truth.grid[at]) // 2]
    assert middle < 0.6 * np.exp(truth.log_density[at]).max()
    monkeypatch.setattr(sys.modules["credo.evaluation.audit.problems.bimodal"], "NODES", 2001)
    np.testing.assert_allclose(audit.problems()["bimodal"].truth.std, truth.std, rtol=1e-4)


@pytest.mark.parametrize("problem", STORED, ids=lambda p: p.name)
def test_stored_references_say_how_they_were_made(problem):
    with safe_open(reference.FOLDER / f"{problem.name}.safetensors", "numpy") as file:
        about = json.loads(file.metadata()["about"])
    assert about["chains"] >= 8
    assert about["rhat"] < 1.01
    assert about["effective"] > 10_000
    assert about["command"] == f"credo audit --remake --problems {problem.name}"
    assert problem.truth.effective.min() > 10_000
    assert "R-hat" in problem.truth.source


def test_a_reference_for_other_data_is_refused():
    problem = STORED[0]
    with pytest.raises(ArtifactError, match="other data"):
        reference.load_reference(problem.name, problem.inputs + 0.01, problem.targets, problem.places)
    with pytest.raises(ArtifactError, match="credo audit --remake"):
        reference.load_reference("nothing", problem.inputs, problem.targets, problem.places)


@pytest.mark.full
@pytest.mark.parametrize("problem", STORED, ids=lambda p: p.name)
def test_references_are_reproduced_with_fresh_keys(problem):
    """Means of new, shorter chains agree with the stored ones: all |z| below the Bonferroni bound for 1e-3."""
    seed = int(np.random.SeedSequence().generate_state(1)[0]) % 2**31
    truth, _ = reference.make_reference(problem, draws=500, seed=seed)
    old = problem.truth
    error = np.hypot(truth.std / np.sqrt(truth.effective), old.std / np.sqrt(old.effective))
    z = np.abs(truth.mean - old.mean) / error
    assert z.max() < stats.norm.isf(1e-3 / 2 / z.size), seed


def test_truth_of_many_draws_is_the_normal_one():
    """50,000 draws: moments within 4 standard errors, distances far below those that the audit reports."""
    mean, std, noise = np.array([0.0, 2.0]), np.array([1.0, 0.3]), 0.5
    exact = normal_truth(mean, std, noise, "")
    draws = mean + std * np.random.default_rng(0).normal(size=(50_000, 2))
    flat = Flat(jnp.asarray(draws[..., None], jnp.float32), {}, jnp.full(50_000, -np.log(50_000)))
    found = truth_of_draws(likelihoods.gaussian(noise=noise), flat, np.inf, "")
    np.testing.assert_allclose(found.mean, exact.mean, atol=4 / np.sqrt(50_000))
    np.testing.assert_allclose(found.std, exact.std, rtol=4 / np.sqrt(100_000))
    np.testing.assert_allclose(found.quantiles, exact.quantiles, atol=0.06)
    np.testing.assert_allclose(np.trapezoid(found.density, found.grid), 1.0, atol=1e-5)
    np.testing.assert_allclose(found.noise, np.sqrt(std**2 + noise**2), rtol=0.02)


def test_weighted_quantiles_of_repeated_draws():
    """A draw of weight 3 is a draw that came three times."""
    values = np.random.default_rng(1).normal(size=(400, 2))
    times = np.random.default_rng(2).integers(1, 4, 400)
    repeated = weighted_quantiles(np.repeat(values, times, 0), np.full(times.sum(), 1 / times.sum()))
    inner = slice(5, -5)  # between the outermost draws, far apart, a straight line depends on where their middles are
    np.testing.assert_allclose(weighted_quantiles(values, times / times.sum())[inner], repeated[inner], atol=0.05)
    even = weighted_quantiles(values, np.full(400, 1 / 400))
    np.testing.assert_allclose(even, weighted_quantiles(values, np.full(400, 1 / 400) * (1 + 1e-9 * times)), atol=1e-6)
    assert len(even) == len(LEVELS)


def test_prior_draws_follow_the_prior():
    """F3's starting point: weights and log-noise of 2,000 prior draws, means within 4 standard errors."""
    problem = PROBLEMS["tanh_network"]
    from credo.core.batch import Batch

    batch = Batch(problem.inputs, problem.targets[:, None], np.ones(40, np.float32), np.float32(40))
    draws = jax.jit(jax.vmap(lambda k: problem.model.sample_prior(k, batch)))(jax.random.split(jax.random.key(0), 2000))
    kernel = np.asarray(draws.params["network"]["hidden_0"]["kernel"])
    assert abs(kernel.mean()) < 4 / np.sqrt(kernel.size)
    assert kernel.std() == pytest.approx(1.0, rel=4 / np.sqrt(2 * kernel.size))
    noise = np.asarray(draws.params["likelihood"]["log_scale"])
    assert noise.mean() == pytest.approx(-1.0, abs=4 * 2 / np.sqrt(2000))
