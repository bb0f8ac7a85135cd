"""A head for each task: one program, plain priors for heads to come, scores, the figure; and what is refused."""

import jax
import numpy as np
import pytest

import credo
from credo.applications.continual import Continual, learn
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal
from credo.methods import BayesByBackprop
from credo.training.clock import COMPILING


def sides(num_tasks=3):
    """Tasks of two classes with other rows, other numbers of rows and other boundaries."""
    rng = np.random.default_rng(0)
    found = []
    for t in range(num_tasks):
        x = rng.normal(size=(60 + 8 * t, 2)).astype(np.float32)
        y = (x @ [np.cos(t), np.sin(t)] > 0).astype(int)
        found.append((x, y, x[:40], y[:40]))
    return found


MODEL = credo.Model(credo.networks.mlp([8], "tanh"), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
METHOD = BayesByBackprop(learning_rate=0.02, estimator="local", initial_std=0.01)


@pytest.fixture(scope="module")
def several():
    """Three tasks with a head each, and how many programs each fit compiled."""
    from credo.applications.continual import learn as module

    counts = []
    plain = module.__globals__["fit"]

    def counted(*args, **options):
        before = COMPILING.programs
        result = plain(*args, **options)
        counts.append(COMPILING.programs - before)
        return result

    module.__globals__["fit"] = counted
    try:
        found = learn(
            jax.random.key(0), MODEL, sides(), METHOD, heads="multi", steps=400, batch_size=32, num_samples=30
        )
    finally:
        module.__globals__["fit"] = plain
    return found, counts


def test_all_tasks_are_one_program(several):
    """The first task compiles the step and the second the start at a posterior; the third compiles nothing."""
    _, counts = several
    assert len(counts) == 3
    assert counts[2] == 0


def test_heads_learn_and_keep(several):
    found, _ = several
    matrix = found.scores["accuracy"]
    assert matrix.shape == (3, 3)
    assert np.isnan(matrix[np.triu_indices(3, 1)]).all()
    assert (np.diagonal(matrix) > 0.75).all()
    assert found.average[-1] > 0.75
    predictive = found.predict(jax.random.key(1), sides()[1][0], task=1, num_samples=20)
    assert isinstance(predictive, Predictive)
    assert float(credo.metrics.accuracy(predictive, sides()[1][1])) > 0.75
    assert "after task 2" in found.summary()


def test_heads_that_are_to_come_keep_the_plain_prior(several):
    """The prior of task 1 has heads 1 and 2 at N(0, 1) and head 0 at the posterior of task 0."""
    found, _ = several
    prior = found.fits[1].model.prior.distribution
    for head in (1, 2):
        for name in ("kernel", "bias"):
            np.testing.assert_array_equal(prior.mean["network"][f"head_{head}"][name], 0.0)
            np.testing.assert_array_equal(prior.std["network"][f"head_{head}"][name], 1.0)
    for moment in ("mean", "std"):
        for part in ("trunk", "head_0"):
            pair = (getattr(q, moment)["network"][part] for q in (prior, found.posteriors[0]))
            jax.tree.map(np.testing.assert_array_equal, *pair)


def test_the_figure_has_the_map_and_the_mean(several):
    figure = several[0].plot()
    left, right = figure.axes
    assert left.texts[0].get_text() == f"{100 * several[0].scores['accuracy'][0, 0]:.1f}"
    assert len(right.lines) == 4


def test_scores_by_hand():
    nan = np.nan
    matrix = np.array([[0.9, nan, nan], [0.8, 0.7, nan], [0.6, 0.75, 0.5]])
    found = Continual([], [], {"accuracy": matrix}, [], [])
    np.testing.assert_allclose(found.average, [0.9, 0.75, (0.6 + 0.75 + 0.5) / 3])
    assert found.backward_transfer == pytest.approx(((0.6 - 0.9) + (0.75 - 0.7)) / 2)
    assert found.forgetting == pytest.approx(((0.9 - 0.6) + (0.7 - 0.75)) / 2)


def test_refusals():
    tasks = sides(2)
    with pytest.raises(Refusal, match="gives draws"):
        learn(jax.random.key(0), MODEL, tasks, "hmc", steps=5)
    with pytest.raises(Refusal, match="Samples has none"):
        learn(jax.random.key(0), MODEL, tasks[:1], "map", steps=5)
    with pytest.raises(InputError, match=r"inputs of task 1 have rows of shape \(3,\)"):
        learn(jax.random.key(0), MODEL, [tasks[0], (np.zeros((5, 3)), np.zeros(5, int))])
    with pytest.raises(InputError, match=r"test targets of task 1 do not fit: Classes must be .* got 2"):
        learn(jax.random.key(0), MODEL, [tasks[0], (*tasks[1][:3], np.full(40, 2))])
    with pytest.raises(InputError, match="no tasks"):
        learn(jax.random.key(0), MODEL, [])
    with pytest.raises(InputError, match="Task 0 must be"):
        learn(jax.random.key(0), MODEL, [(1, 2, 3)])
    with pytest.raises(InputError, match='heads is "single" or "multi"'):
        learn(jax.random.key(0), MODEL, tasks, heads="many")
    noisy = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian("inferred"))
    with pytest.raises(Refusal, match="would be lost"):
        learn(jax.random.key(0), noisy, [(np.zeros((4, 2)), np.zeros(4))])
    deep = credo.Model(MODEL.network, credo.priors.hierarchical(), MODEL.likelihood)
    with pytest.raises(Refusal, match="hyper-parameters"):
        learn(jax.random.key(0), deep, tasks)
