"""Every phase of a fit has noise and batches of its own, under one program and over a kill."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.tree import leaf, struct
from credo.posteriors import Samples
from credo.training.arguments import phase_keys
from credo.training.batches import order, random_rows
from credo.training.many import fit_many
from oracles import linear

PROBLEM = linear(num_rows=40, dims=2)
KEY = jax.random.key(3)
STEPS, SIZE = 700, 8  # at least two blocks in each phase
TRACED = []


@struct
class WalkState:
    """A random walk, and the weights around which it is kept."""

    total: jax.Array = leaf()
    params: Any = leaf()


@struct
class Walk(Method):
    """Tells the noise and the rows of every step."""

    program: str | None = "chain"

    def phases(self, num_data, steps):
        first = Phase("burn_in", STEPS, "random", program=self.program)
        return first, Phase("sample", steps, "random", keeps_draws=True, program=self.program)

    def init(self, key, model, variables, data):
        return WalkState(jnp.zeros(()), variables.params)

    def noise(self, key, model, phase, state):
        return jax.random.normal(key)

    def step(self, noise, model, phase, state, batch):
        TRACED.append(phase.name)
        rows = (batch.weight * (batch.row_numbers + 1.0) ** 2).sum()
        new = WalkState(state.total + noise, state.params)
        return new, Info(
            {"noise": noise, "rows": rows}, jax.tree.map(lambda x: x + 0.01 * new.total + 1e-6 * rows, state.params)
        )

    def posterior(self, model, state, draws):
        return Samples(draws, {})


def run(method=None, **options):
    data = (PROBLEM.inputs, PROBLEM.targets)
    return credo.fit(KEY, PROBLEM.model(), data, method or Walk(), steps=STEPS, batch_size=SIZE, **options)


def expected(raw, number):
    """Noise and rows of a phase, from the rule: functions of key, phase and step alone."""
    noise, batches = phase_keys(jnp.asarray(raw), number)
    steps = jnp.arange(STEPS)
    rows, valid = random_rows(batches, steps, SIZE, order(40, SIZE))
    told = jnp.where(valid, (rows + 1.0) ** 2, 0.0).sum(1)
    return jax.vmap(lambda s: jax.random.normal(jax.random.fold_in(noise, s)))(steps), told


@pytest.fixture(scope="module")
def whole():
    return run()


def test_noise_and_batches_of_two_phases_differ(whole):
    first, second = (whole.phases[name] for name in ("burn_in", "sample"))
    assert (first["noise"] != second["noise"]).all()
    assert (first["rows"] == second["rows"]).mean() < 0.02
    assert abs(np.corrcoef(first["noise"][0], second["noise"][0])[0, 1]) < 5 / STEPS**0.5
    for number, trace in enumerate((first, second)):
        noise, rows = expected(whole.loop.carry.key[0], number)
        np.testing.assert_allclose(trace["noise"][0], noise, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(trace["rows"][0], rows)


def test_streamed_phases_see_the_same_rows(whole):
    streamed = run(stream=True)
    for name in ("burn_in", "sample"):
        np.testing.assert_array_equal(streamed.phases[name]["rows"], whole.phases[name]["rows"])


def test_phases_that_share_a_program_trace_it_once():
    traced = {}
    run(Walk("once"), callbacks=[lambda event: traced.setdefault(event.phase, len(TRACED)) and None])
    assert traced["sample"] == traced["burn_in"]


class Killed(Exception):
    """Stands for a kill: nothing is saved after it."""


def test_a_kill_in_the_second_phase_changes_no_bit(whole, tmp_path):
    seen = []

    def kill(event):
        seen.append(event.phase)
        if seen.count("sample") == 2:
            raise Killed

    folder = credo.Checkpoint(tmp_path / "checkpoint", every=0.0)
    with pytest.raises(Killed):
        run(checkpoint=folder, callbacks=[kill])
    after = []
    again = run(checkpoint=folder, callbacks=[lambda event: after.append((event.phase, event.step)) and None])
    assert {phase for phase, _ in after} == {"sample"}
    assert after[0][1] > STEPS // 3
    for one, other in ((whole.phases, again.phases), (whole.posterior, again.posterior)):
        assert all(jax.tree.leaves(jax.tree.map(np.array_equal, one, other)))


def last_draw(key, model, posterior, extra):
    return posterior.params["network"]["output"]["bias"][0, -1, 0]


def test_many_fits_follow_the_same_rule():
    """The walk ends at the sum of all noise: of both phases by their numbers."""
    data = Batch(PROBLEM.inputs[None], PROBLEM.targets[None, :, None], np.ones((1, 40), np.float32), np.full(1, 40.0))
    found = fit_many(KEY, Walk(None), PROBLEM.model(), data, last_draw, steps=STEPS, batch_size=SIZE)
    key_fit = jax.random.split(jax.random.split(KEY, 1)[0])[0]
    raw = jax.random.key_data(jax.random.split(jax.random.split(jax.random.fold_in(key_fit, 0), 1)[0], 3)[2])
    noise = np.concatenate([expected(raw, number)[0] for number in (0, 1)])
    rows = float(expected(raw, 1)[1][-1])
    np.testing.assert_allclose(found[0], 0.01 * noise.sum() + 1e-6 * rows, atol=1e-4)


def test_a_checkpoint_in_the_second_phase_holds_the_trace_of_the_first(whole, tmp_path):
    folder, seen = credo.Checkpoint(tmp_path / "checkpoint", every=1e9), []

    def kill(event):
        seen.append(event.phase)
        folder.every = 0.0 if event.phase == "sample" else 1e9  # nothing is saved before
        if seen.count("sample") == 2:
            raise Killed

    with pytest.raises(Killed):
        run(checkpoint=folder, callbacks=[kill])
    again = run(checkpoint=folder)
    for name in ("burn_in", "sample"):
        np.testing.assert_array_equal(again.phases[name]["noise"], whole.phases[name]["noise"])
