"""Early stopping and chains started from an ensemble (D6)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.errors import InputError
from credo.methods.combine import stages
from credo.methods.ensembles.early_stopping import EarlyStopping
from credo.methods.mcmc.ensemble_chains import EnsembleChains
from credo.training.batches import gather, order, random_rows
from oracles import linear

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).astype(np.float32)
Y = (np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=60)).astype(np.float32)
MODEL = credo.Model(credo.networks.mlp([40]), credo.priors.normal(3.0), credo.likelihoods.gaussian())


def start(method=None, seed=0):
    batch = Batch(X, Y[:, None], np.ones(60, np.float32), np.float32(60))
    method = method or EarlyStopping(held_out=0.2)
    key = jax.random.key(seed)
    return method, batch, jax.jit(method.init)(key, MODEL, MODEL.init(key, batch), batch)


def test_rows_that_are_held_out_teach_nothing():
    """The step from data whose held-out targets are nonsense is the step from clean data."""
    method, batch, state = start()
    assert int(state.held.sum()) == 12
    phase = Phase("optimise", 100, "full")
    spoiled = batch._replace(targets=jnp.where(state.held[:, None], 1e3, batch.targets))
    step = jax.jit(lambda data: method.step(KEY, MODEL, phase, state, data))
    (clean, _), (other, info) = step(batch), step(spoiled)
    np.testing.assert_array_equal(clean.values, other.values)
    assert info.metrics["held_out"] < -1e3
    assert not np.array_equal(state.held, start(seed=1)[2].held)


def test_batches_know_their_rows():
    batch = start()[1]
    rows, valid = jax.jit(random_rows, static_argnums=2)(KEY, jnp.arange(5), 13, order(60, 13))
    found = gather(batch, rows, valid)
    np.testing.assert_array_equal(found.inputs, X[np.asarray(found.rows)])
    np.testing.assert_array_equal(batch.row_numbers, np.arange(60))


@pytest.mark.parametrize("batch_size", [60, pytest.param(16, marks=pytest.mark.full)])
def test_members_stop_at_their_best_point(batch_size):
    method = EarlyStopping(held_out=0.2, size=3, longest=20_000, patience=0.02)
    fit = credo.fit(KEY, MODEL, (X, Y), method, batch_size=batch_size)
    assert fit.trace["loss"].shape[1] < 10_000
    assert (fit.trace["stopped"][:, -1] == 1).all()
    best = fit.trace["held_out"].max(1)
    assert (fit.trace["held_out"][:, -1] < best).all()
    if batch_size == 60:  # every step scores all held-out rows, so the best point's score can be had again
        states = fit.loop.carry.state
        for member in range(3):
            params = jax.tree.map(lambda x, m=member: x[m, 0], fit.posterior.params)
            outputs = MODEL.outputs(credo.core.network.Variables(params, {}), X)[0]
            each = -np.square(outputs - Y[:, None]).sum(-1)
            held = np.asarray(states.held[member])[:60]
            np.testing.assert_allclose(each[held].mean(), best[member], rtol=1e-4)


def test_chains_start_where_the_ensemble_stopped_and_see_all_rows():
    method = EnsembleChains(size=2, warmup=10, num_steps=3, longest=50)
    fit = credo.fit(KEY, MODEL, (X, Y), method, steps=5)
    assert [type(p).__name__ for p in stages(method)] == ["EarlyStopping", "MCLMC"]
    assert fit.posterior.params["network"]["output"]["kernel"].shape[:2] == (2, 5)
    again = credo.fit(KEY, MODEL, (X, Y), method, steps=5)
    np.testing.assert_array_equal(again.posterior.params["network"]["output"]["kernel"],
                                  fit.posterior.params["network"]["output"]["kernel"])  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_other_samplers(sampler):
    method = EnsembleChains(size=2, sampler=sampler, warmup=10, longest=50, target_acceptance=0.7)
    assert float(stages(method)[1].target_acceptance) == 0.7
    fit = credo.fit(KEY, MODEL, (X, Y), method, steps=5)
    assert np.isfinite(credo.predict(KEY, fit, X[:3]).std).all()


def test_a_chain_does_not_leave_its_start_with_a_jump():
    """A sharp mode, where the step that suits a unit posterior is a thousand times too large: after the first path the
    log density is still within the 5 parameters' own scatter (a few nats) of the mode's, not thousands below."""
    problem = linear(num_rows=200, noise=1e-3)
    data = (problem.inputs, problem.targets)
    mode = credo.fit(KEY, problem.model(), data, "map", steps=3000)
    chain = credo.methods.MCLMC(adjusted=False, mass="identity", chains=2, warmup=50, max_steps=20)
    fit = credo.fit(KEY, problem.model(), data, chain, steps=5, start=mode)
    best = -float(mode.trace["loss"][0, -1]) * 200
    assert (fit.phases["adapt"]["log_density"][:, 0] > best - 50).all()
    assert (fit.trace["step_size"] < 1e-2).all()
    state = fit.loop.carry.state
    np.testing.assert_array_equal(state.inverse_mass, 1.0)


@pytest.mark.parametrize(
    "settings", [{"size": 0}, {"sampler": "gibbs"}, {"held_out": 1.5}, {"held_out": 0.0}], ids=lambda s: str(s)
)
def test_bad_settings(settings):
    with pytest.raises(InputError):
        credo.fit(KEY, MODEL, (X, Y), EnsembleChains(**settings), steps=1)
