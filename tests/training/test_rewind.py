"""A phase that turns non-finite begins again: the same numbers on every machine, over kills and between saves."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.method import Info, Method, Phase
from credo.core.tree import leaf, struct
from credo.posteriors import Samples
from oracles import linear

PROBLEM = linear(num_rows=40, dims=2)
STEPS = 60


@struct
class GrowthState:
    """What grows, and the weights beside it."""

    value: jax.Array = leaf()
    params: Any = leaf()


@struct
class Growth(Method):
    """x ← (1 + h)x + noise from 1: beyond single precision after 37 steps of h = 10, never in 60 steps of h = 1."""

    step_size: float = leaf(default=10.0)

    step_field = "step_size"

    def phases(self, num_data, steps):
        return Phase("settle", 5, "full"), Phase("sample", steps, "full", keeps_draws=True)

    def init(self, key, model, variables, data):
        return GrowthState(jnp.ones(()), variables.params)

    def step(self, noise, model, phase, state, batch):
        value = state.value * jnp.where(phase.name == "settle", 1.0, 1.0 + self.step_size) + jax.random.uniform(noise)
        draw = jax.tree.map(lambda x: x + jnp.log(value), state.params)
        return GrowthState(value, state.params), Info({"value": value}, draw)

    def posterior(self, model, state, draws):
        return Samples(draws, {})


def run(**options):
    data = (PROBLEM.inputs, PROBLEM.targets)
    return credo.fit(jax.random.key(3), PROBLEM.model(), data, Growth(), steps=STEPS, **options)


def same(a, b):
    numbers = [(fit.posterior, fit.phases, fit.notes, fit.outcome) for fit in (a, b)]
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, *numbers)))


@pytest.fixture(scope="module")
def whole():
    return run()


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)  # one step each, as on a slow machine


def test_the_numbers_do_not_depend_on_how_fast_the_machine_is(whole, short_blocks):
    assert whole.outcome == "finished"
    assert whole.notes == ("The sample phase turned non-finite; it began again with step_size lowered to 1.",)
    assert whole.trace["value"].shape == (1, STEPS)
    assert np.isfinite(whole.trace["value"]).all()
    assert same(run(), whole)


class Killed(Exception):
    """Stands for a kill: nothing is saved after it."""


def kill_at(count, step):
    """Kills when the sampling has come to this step for the `count`-th time."""
    seen = []

    def call(event):
        seen.append((event.phase, event.step))
        if seen.count(("sample", step)) == count:
            raise Killed

    return call


def killed(folder, count, step):
    with pytest.raises(Killed):
        run(checkpoint=credo.Checkpoint(folder, every=0.0), callbacks=[kill_at(count, step)])


@pytest.mark.parametrize(
    ("count", "step"),
    [(1, 20), (2, 2), pytest.param(2, 3, marks=pytest.mark.full), pytest.param(1, 50, marks=pytest.mark.full)],
)
def test_a_kill_before_or_after_the_new_beginning_changes_no_bit(count, step, whole, short_blocks, tmp_path):
    """Before: the start of the phase is known to the next process. Right after: the newest checkpoint is the last one
    that was written, though its step is lower than that of those before."""
    killed(tmp_path / "c", count, step)
    after = []
    again = run(checkpoint=tmp_path / "c", callbacks=[lambda event: after.append(event.step) and None])
    assert same(again, whole)
    assert after[0] == step  # the step that was killed before it could be saved


def test_seconds_are_those_of_all_processes(short_blocks, tmp_path):
    killed(tmp_path / "c", 1, 20)
    folder = credo.Checkpoint(tmp_path / "c")
    before = folder.newest().host
    assert before.seconds > before.compiling >= 0
    timing = run(checkpoint=folder).timing
    assert timing["seconds_fit"] > before.seconds
    assert timing["seconds_compile"] >= before.compiling
    assert timing["seconds_run"] == pytest.approx(timing["seconds_fit"] - timing["seconds_compile"])


def test_extending_past_a_non_finite_step_begins_the_phase_again(whole):
    data = (PROBLEM.inputs, PROBLEM.targets)
    short = credo.fit(jax.random.key(3), PROBLEM.model(), data, Growth(), steps=20)
    assert short.notes == ()
    more = short.extend(STEPS - 20)
    assert same(more, whole)
    assert more.timing["seconds_fit"] > short.timing["seconds_fit"]
