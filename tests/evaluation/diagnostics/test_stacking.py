"""Chains weighted by how well they predict left-out rows (D6)."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.errors import Refusal
from credo.evaluation.diagnostics import stack
from oracles import linear

PROBLEM = linear(num_rows=40, dims=2)
DATA = (PROBLEM.inputs, PROBLEM.targets)


@pytest.fixture(scope="module")
def fit():
    method = credo.methods.HMC(chains=3, warmup=300, num_steps=10)
    return credo.fit(jax.random.key(0), PROBLEM.model(), DATA, method, steps=2000)


def shifted(fit, by):
    """The same chains, each moved by its own amount in the bias."""
    params = jax.tree.map(np.array, fit.posterior.params)
    params["network"]["output"]["bias"] += np.asarray(by, np.float32)[:, None, None]
    return dataclasses.replace(fit, posterior=dataclasses.replace(fit.posterior, params=params))


def left_out(problem):
    """log p(y_n | y_−n) of the conjugate model, row by row."""
    found = []
    for n in range(len(problem.inputs)):
        rest = problem._replace(inputs=np.delete(problem.inputs, n, 0), targets=np.delete(problem.targets, n))
        x = problem.design[n]
        variance = x @ rest.covariance @ x + problem.noise**2
        error = problem.targets[n] - x @ rest.mean
        found.append(-0.5 * (error**2 / variance + np.log(2 * np.pi * variance)))
    return np.array(found)


def test_leave_one_out_of_a_chain_is_the_truth(fit):
    """Each chain sums to the closed form within 0.3 nats; 2,000 draws leave an error of 0.08 (false alarms 6e-4)."""
    found = stack(fit, DATA)
    np.testing.assert_allclose(found.elpd["chains"], left_out(PROBLEM).sum(), atol=0.3)
    assert found.elpd["stacked"] >= found.elpd["equal"] - 1e-9


def test_a_chain_in_a_bad_mode_gets_no_weight(fit):
    found = stack(shifted(fit, [0, 0, 3.0]), DATA)
    assert found.weights[2] < 0.02
    assert found.elpd["stacked"] > found.elpd["equal"] + 5
    weights = np.exp(np.asarray(found.fit.posterior.log_weights))
    np.testing.assert_allclose(weights.sum(1), found.weights, atol=1e-6)
    new = PROBLEM.inputs[:5]
    moved, good = (credo.predict(jax.random.key(1), f, new).mean for f in (found.fit, fit))
    np.testing.assert_allclose(moved, good, atol=0.15)


def test_what_cannot_be_stacked(fit):
    one = dataclasses.replace(fit.posterior, params=jax.tree.map(lambda x: x[:1], fit.posterior.params))
    with pytest.raises(Refusal, match="only one"):
        stack(dataclasses.replace(fit, posterior=one), DATA)
    short = dataclasses.replace(fit.posterior, params=jax.tree.map(lambda x: x[:, :3], fit.posterior.params))
    with pytest.raises(Refusal, match="too few"):
        stack(dataclasses.replace(fit, posterior=short), DATA)
    with pytest.raises(Refusal, match="distribution"):
        stack(credo.fit(jax.random.key(0), PROBLEM.model(), DATA, "bayes_by_backprop", steps=5), DATA)
