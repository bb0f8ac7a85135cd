"""Learning task after task against the posterior of all rows at once, which is known for linear regression."""

import jax
import numpy as np
import pytest

import credo
from credo.applications.continual import learn
from credo.errors import InputError
from credo.methods import IVON, BayesByBackprop, Laplace
from oracles import coefficients, linear

PROBLEM = linear(240, 3, correlation=0.3)
CUTS = (slice(0, 70), slice(70, 150), slice(150, 240))
TASKS = [(PROBLEM.inputs[cut], PROBLEM.targets[cut]) for cut in CUTS]


def moments(posterior, num=40_000):
    """Mean and covariance of (b, w); the covariance is that of draws, whose relative error is about 1/√(num/2)."""
    mean = coefficients(jax.tree.map(lambda x: np.asarray(x)[0], posterior.mean["network"]))
    draws = coefficients(posterior.sample(jax.random.key(9), num)["network"])
    return mean, np.cov(draws.T)


def close(found, problem, std_share, spread):
    """The mean within a share of the posterior's standard deviations; covariance as correlation-scaled entries."""
    mean, covariance = found
    std = np.sqrt(np.diag(problem.covariance))
    assert np.abs((mean - problem.mean) / std).max() < std_share
    assert np.abs((covariance - problem.covariance) / np.outer(std, std)).max() < spread


def without(rows_of_tasks):
    """The problem of all rows but these."""
    starts = [cut.start for cut in CUTS]
    gone = np.concatenate([start + rows for start, rows in zip(starts, rows_of_tasks)])
    kept = np.setdiff1d(np.arange(240), gone)
    return PROBLEM._replace(inputs=PROBLEM.inputs[kept], targets=PROBLEM.targets[kept])


def test_laplace_equals_the_batch_posterior_and_coresets_add_what_was_kept_apart():
    """Precisions add up: q_T is the posterior of all rows but the coresets, and refined on them that of all rows.

    Covariances of 40,000 draws: an entry's standard error is at most 0.7 % of the scale, six of them are 0.042.
    """
    found = learn(
        jax.random.key(0), PROBLEM.model(), TASKS, Laplace(structure="full"), coreset=30, coreset_kind="k_centre",
        coreset_steps=1200, steps=1200,
    )  # fmt: skip
    close(moments(found.posteriors[-1]), without(found.coresets), 0.01, 0.045)
    close(moments(found.refined[-1].posterior), PROBLEM, 0.01, 0.045)
    assert [len(rows) for rows in found.coresets] == [30, 30, 30]
    assert found.scores == {}
    with pytest.raises(InputError, match="no scores"):
        found.plot()


@pytest.mark.full
def test_kronecker_laplace_equals_the_batch_posterior():
    """With one output the sum of two Kronecker-factored precisions is diagonalised exactly."""
    found = learn(jax.random.key(0), PROBLEM.model(), TASKS, Laplace(structure="kfac"), steps=1500)
    close(moments(found.posteriors[-1]), PROBLEM, 0.01, 0.045)


def full_vcl(steps):
    method = BayesByBackprop(family="full", path_gradient=True, num_samples=4, learning_rate=0.01)
    return learn(jax.random.key(0), PROBLEM.model(), TASKS, method, steps=steps)


def test_full_covariance_equals_the_batch_posterior():
    """Path gradients have no noise at the optimum; what is left is the way there."""
    close(moments(full_vcl(2500).posteriors[-1]), PROBLEM, 0.1, 0.1)


@pytest.mark.full
def test_full_covariance_equals_the_batch_posterior_tightly():
    close(moments(full_vcl(20_000).posteriors[-1]), PROBLEM, 0.02, 0.05)


@pytest.mark.full
@pytest.mark.parametrize("family", ["low_rank", "kronecker"])
def test_structured_families_equal_the_batch_posterior(family):
    """Four numbers: rank 4, or a kernel of one row, can be any Gaussian over the weights but for the bias's share."""
    method = BayesByBackprop(family=family, rank=4, path_gradient=True, num_samples=4, learning_rate=0.01)
    found = learn(jax.random.key(0), PROBLEM.model(), TASKS, method, steps=10_000)
    close(moments(found.posteriors[-1]), PROBLEM, 0.25, 0.12)


def mean_field_recursion():
    """μ, s of each task: Λ = X'X/σ² + diag(s⁻²), μ ← Λ⁻¹(X'y/σ² + μ/s²), s ← 1/√Λ_ii."""
    mean, precision = np.zeros(4), np.ones(4) / PROBLEM.scale**2
    for cut in CUTS:
        x, y = PROBLEM.design[cut], PROBLEM.targets[cut].astype(float)
        whole = x.T @ x / PROBLEM.noise**2 + np.diag(precision)
        mean = np.linalg.solve(whole, x.T @ y / PROBLEM.noise**2 + precision * mean)
        precision = np.diag(whole)
    return mean, precision**-0.5


@pytest.mark.parametrize(
    "method", [BayesByBackprop(learning_rate=0.01), pytest.param(IVON(), marks=pytest.mark.full)], ids=["bbb", "ivon"]
)
def test_mean_field_follows_its_closed_form(method):
    """Where the fit of a task starts does not matter, only its prior does."""
    start_std = 0.01 if isinstance(method, BayesByBackprop) else None
    found = learn(jax.random.key(0), PROBLEM.model(), TASKS, method, steps=3000, start_std=start_std)
    mean, std = mean_field_recursion()
    q = jax.tree.map(lambda x: np.asarray(x)[0], found.posteriors[-1])
    assert np.abs((coefficients(q.mean["network"]) - mean) / std).max() < 0.2
    np.testing.assert_allclose(coefficients(q.std["network"]), std, rtol=0.05)


def test_spreads_at_the_start_are_limited_where_there_is_one_for_each_weight():
    held = BayesByBackprop(learning_rate=0.0, initial_std=0.05)
    found = learn(jax.random.key(0), PROBLEM.model(), TASKS, held, steps=20, start_std=0.02)
    assert {float(s) for s in coefficients(found.posteriors[-1].std["network"])[0]} == {np.float32(0.02)}
    with pytest.raises(InputError, match="one standard deviation for each weight"):
        learn(jax.random.key(0), PROBLEM.model(), TASKS, Laplace(structure="full"), steps=20, start_std=0.02)


FAMILIES = ["mean_field", *(pytest.param(f, marks=pytest.mark.full) for f in ("full", "low_rank", "kronecker"))]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_fit_starts_at_a_posterior(family):
    """After steps of size 0 the new q is the old one."""
    model = PROBLEM.model()
    first, second = (BayesByBackprop(family=family, learning_rate=rate) for rate in (0.01, 0.0))
    before = credo.fit(jax.random.key(0), model, TASKS[0], first, steps=60).posterior
    after = credo.fit(jax.random.key(1), model, TASKS[0], second, steps=60, start=before).posterior
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), before, after)
    other = BayesByBackprop(family="full" if family == "mean_field" else "mean_field")
    with pytest.raises(InputError, match=f"posterior, got {type(before).__name__}"):
        credo.fit(jax.random.key(1), model, TASKS[0], other, steps=5, start=before)
