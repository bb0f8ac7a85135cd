"""`reversible_jump` (E2): the posterior of the number of nodes against brute force, and on data of known form."""

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import credo
from credo.evaluation.diagnostics.chains import chain_stats
from credo.methods.shallow.reversible_jump import ReversibleJump
from node_evidences import log_evidence as smc_log_evidence

RNG = np.random.default_rng(1)
X = np.linspace(-1.5, 1.5, 14)[:, None].astype(np.float32)
Y = (1.2 * expit(3 * X[:, 0]) - 0.6 + 0.25 * RNG.normal(size=14)).astype(np.float32)
PRIOR = {"hidden_scale": 1.5, "freedom": 6.0, "output_scale": (4.0, 4.0)}


def log_evidence(num_nodes, num, hierarchy, seed):
    """log p(y | M) by plain Monte Carlo: everything but the coefficients from the prior, the coefficients in closed
    form. Returns the estimate and its standard error."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(len(X)), X]).astype(np.float64)
    if hierarchy:
        wishart = stats.wishart(8, np.eye(2) / (5 * 1.5**2))
        precision = wishart.rvs(num, random_state=rng)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        centre = rng.normal(size=(num, 1, 2))
        gamma = centre + np.einsum("kij,kmj->kmi", root, rng.normal(size=(num, num_nodes, 2)))
        mean, variance = rng.normal(size=num), 4.0 / rng.gamma(4.0, size=num)
        noise = 1.0 / rng.gamma(4.0, size=num)
    else:
        gamma = 1.5 * rng.normal(size=(num, num_nodes, 2))
        mean, variance, noise = np.zeros(num), np.full(num, 1.5**2), np.full(num, 0.3**2)
    linear = 1.0 if hierarchy else 1.5**2
    nodes = expit(np.einsum("nd,kmd->knm", x, gamma))
    centre = mean[:, None] * nodes.sum(2)
    covariance = linear * x @ x.T + variance[:, None, None] * (nodes @ nodes.transpose(0, 2, 1))
    covariance += noise[:, None, None] * np.eye(len(X))
    chol = np.linalg.cholesky(covariance)
    z = np.linalg.solve(chol, (Y - centre)[..., None])[..., 0]
    value = -0.5 * (z**2).sum(1) - np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(1)
    top = value.max()
    weights = np.exp(value - top)
    return top + np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(num)


def problem(hierarchy, nodes=3):
    if hierarchy:
        noise = credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(4.0, 1.0))
        return credo.Model(credo.networks.shallow(nodes), credo.priors.node_hierarchy(**PRIOR), noise)
    return credo.Model(credo.networks.shallow(nodes), credo.priors.normal(1.5), credo.likelihoods.gaussian(0.3))


@pytest.mark.full
@pytest.mark.parametrize("hierarchy", [True, False])
def test_number_of_nodes_is_that_of_brute_force_evidences(hierarchy):
    """p(M | y) ∝ λ^M p(y | M) for M = 0 … 3: the four z-scores stay below the bound for a false-alarm rate of 1e-3."""
    more = 0.7
    found = [log_evidence(m, 200_000, hierarchy, m) for m in range(4)]
    log_mass = np.array([value + m * np.log(more) for m, (value, _) in enumerate(found)])
    truth = np.exp(log_mass - log_mass.max())
    truth /= truth.sum()
    error = np.array([e for _, e in found])
    own = np.array([
        np.sqrt((truth[m] * (1 - truth[m]) * error[m]) ** 2
                + sum((truth[m] * truth[k] * error[k]) ** 2 for k in range(4) if k != m))
        for m in range(4)
    ])  # fmt: skip
    method = ReversibleJump(warmup=500, more=more)
    fit = credo.fit(jax.random.key(0), problem(hierarchy), (X, Y), method, steps=5000)
    is_m = (np.asarray(fit.trace["nodes"])[..., None] == np.arange(4)).astype(np.float64)
    z = (is_m.mean((0, 1)) - truth) / np.hypot(chain_stats(is_m).mcse_mean, own)
    assert truth.min() > 0.01, truth
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / 4), (is_m.mean((0, 1)), truth)


def simulated(num_nodes):
    """Data of a linear relation, a step, and three steps that no fewer nodes can make."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-2, 2, size=(300, 1)).astype(np.float32)
    places = {0: [], 1: [0.5], 3: [-1.2, 0.1, 1.3]}[num_nodes]
    signs = (1, -1, 1)
    f = 0.3 * x[:, 0] + sum((2 * s * expit(12 * (x[:, 0] - p)) for s, p in zip(signs, places)), np.zeros(300))
    return x, ((f - f.mean()) / f.std() + 0.1 * rng.normal(size=300)).astype(np.float32)


@pytest.mark.full
@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_the_mode_is_the_number_of_nodes_that_made_the_data(num_nodes):
    fit = credo.fit(jax.random.key(0), problem(True, 8), simulated(num_nodes), ReversibleJump(warmup=2000), steps=4000)
    counts = np.bincount(fit.trace["nodes"].astype(int).ravel(), minlength=9)
    assert counts.argmax() == num_nodes, counts
    sentence = "most likely linear" if num_nodes == 0 else f"most likely {num_nodes} "
    assert sentence in str(fit.status)


@pytest.mark.full
@pytest.mark.parametrize("num_nodes", [0, 1])  # three steps are beyond what populations of this size find
def test_evidences_of_fixed_numbers_of_nodes_find_the_same_mode(num_nodes):
    """On the data of the last test, the evidence for each M (Sequential Monte Carlo) times λ^M peaks at the truth."""
    log_mass = []
    for m in range(num_nodes + 2):
        model = problem(True, max(m, 1))
        if m == 0:
            noise = credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(4.0, 1.0))
            model = credo.Model(credo.networks.shallow(0), credo.priors.normal(1.0), noise)
        fit = credo.fit(jax.random.key(m), model, simulated(num_nodes), credo.methods.SMC(particles=1000))
        each = np.asarray(
            fit.posterior.log_evidence, np.float64
        )  # of every population; evidences average, not their logs
        log_mass.append(logsumexp(each) - np.log(len(each)) + m * np.log(0.5))
    assert int(np.argmax(log_mass)) == num_nodes, log_mass


def steps_in_the_mean(num_nodes):
    """100 rows whose mean is a line and this many steps, each within what a normal prior of scale 3 expects."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-4, 4, size=(100, 1)).astype(np.float32)
    places = {0: [], 1: [1.0], 3: [-2.5, 0.0, 2.5]}[num_nodes]
    f = 0.2 * x[:, 0] + sum((2 * s * expit(4 * (x[:, 0] - p)) for s, p in zip((1, -1, 1), places)), np.zeros(100))
    return x, (f - f.mean() + 0.2 * rng.normal(size=100)).astype(np.float32)


@pytest.mark.full
@pytest.mark.parametrize("num_nodes", [0, 1, 3])
def test_mode_and_brute_force_evidence_find_the_nodes_that_made_the_data(num_nodes):
    """λ^M p(y | M) for M = 0 … 5 by Sequential Monte Carlo over the nodes alone (tests/support/node_evidences.py)."""
    more, (x, y) = 0.2, steps_in_the_mean(num_nodes)
    log_mass = [
        logsumexp([smc_log_evidence(x, y, m, 3.0, 0.2, particles=500, moves=20, seed=s) for s in range(2)])
        + m * np.log(more)
        for m in range(num_nodes + 3)
    ]
    assert int(np.argmax(log_mass)) == num_nodes, log_mass
    model = credo.Model(credo.networks.shallow(8), credo.priors.normal(3.0), credo.likelihoods.gaussian(0.2))
    fit = credo.fit(jax.random.key(0), model, (x, y), ReversibleJump(warmup=2000, more=more), steps=10_000)
    counts = np.bincount(fit.trace["nodes"].astype(int).ravel(), minlength=9)
    assert counts.argmax() == num_nodes, (counts, log_mass)


def test_draws_without_nodes_are_linear():
    fit = credo.fit(jax.random.key(0), problem(True), (X, X[:, 0]), ReversibleJump(warmup=500, more=0.7), steps=300)
    params = fit.posterior.params["network"]
    none = fit.trace["nodes"] == 0
    assert none.any()
    assert (np.asarray(params["output"]["kernel"])[none] == 0).all()
    assert ((np.asarray(params["output"]["kernel"]) != 0).sum((-1, -2)) == fit.trace["nodes"]).all()
