"""Short budgets: what is planned, what it is planned with, and error bars that unseen rows have corrected (C1, C2)."""

from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.core.batch import Batch
from credo.likelihoods import Stretched
from credo.methods.ensembles.early_stopping import EarlyStopping, held_rows
from credo.registry import build_method
from credo.tables import auto
from credo.tables.auto import honest
from credo.tables.auto.choice import pilot_seconds
from credo.tables.auto.choice import timed as planned_at
from credo.tables.auto.probe import timed
from credo.tables.auto.replan import pace, shortened
from credo.tables.auto.speed import Speed
from credo.tables.doubts import doubts
from credo.tables.duration import announced, took
from credo.tables.encode.encoder import TableEncoder

SLOW, QUICK = Speed(0.05, 0.02, 8), Speed(0.001, 0.0005, 8)
X = np.random.default_rng(0).normal(size=(120, 2)).astype(np.float32)
Y = (X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120)).astype(np.float32)


# ---------------------------------------------------------------------- plans
@pytest.mark.parametrize("seconds", [3, 5, 10, 30, 60, 600])
@pytest.mark.parametrize("speed", [SLOW, QUICK], ids=["slow", "quick"])
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_all_that_a_budget_pays_for_fits_into_it(seconds, speed, task):
    choice = auto.choose(task, 400, 10, seconds=seconds, device="cpu", speed=speed)
    assert choice.seconds <= seconds
    if choice.method == "ensemble_chains":
        length = choice.settings["warmup"]
        start = min(choice.settings.get("longest", 10_000) * speed.batch, 0.3 * seconds)
        whole = pilot_seconds(speed, len(choice.rivals)) + start + 2 * length**2 * speed.full
        assert whole <= seconds
        assert choice.rivals  # somebody looks at its error bars
    else:
        assert choice.settings["held_out"] > 0


def test_a_measured_speed_decides_what_time_allows():
    slow, quick = (auto.choose("regression", 400, 10, seconds=30, device="cpu", speed=s) for s in (SLOW, QUICK))
    assert [slow.method, quick.method] == ["deep_ensemble", "ensemble_chains"]
    assert auto.choose("regression", 400, 10, seconds=3, device="cpu", speed=QUICK).method == "deep_ensemble"


@pytest.mark.parametrize("slower", [1.0, 1.5, 2.0, 3.0, 8.0, 40.0])
def test_chains_are_as_long_as_what_a_slow_pilot_leaves_allows(slower):
    """Beside other programs a budget of 10 s took 37: the pilot took three times its share, and then nobody asked."""
    choice = auto.choose("regression", 400, 10, seconds=30, device="cpu", speed=QUICK)
    planned = pilot_seconds(QUICK, len(choice.rivals))
    left = 30 - slower * planned
    found = shortened(choice, QUICK, left, slower)
    if found is None:
        assert slower > 2
        return
    length = found.settings["warmup"]
    assert length == found.settings["num_steps"] == found.steps >= 25
    start = min(found.settings.get("longest", 10_000) * QUICK.batch * slower, 0.3 * left)
    assert start + 2 * length**2 * QUICK.full * slower <= left
    assert (found is choice) == (slower == 1.0)
    assert ("took longer than planned" in found.why) == (slower > 1.0)


def test_what_is_announced_is_never_less_than_by_rule():
    """Bare gradients of a probe promised 5 s where chains took 31."""
    choice = auto.choose("regression", 400, 10, device="cpu")
    assert choice_seconds(choice, QUICK._replace(full=1e-5, batch=1e-5)) == choice.seconds
    assert choice_seconds(choice, SLOW) > choice.seconds


def choice_seconds(choice, speed):
    return planned_at(choice, speed).seconds


def test_the_pace_of_a_pilot_leaves_out_what_is_fixed():
    assert pace(2.0, 2.0) == 1.0
    assert pace(6.5, 2.0) == 3.0


def test_an_ensemble_takes_what_is_left_where_chains_would_be_too_short(monkeypatch):
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "y": Y})
    encoder = TableEncoder.learn(frame, "y", "regression", "error", None)
    arrays = encoder.arrays(frame)
    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    monkeypatch.setattr("credo.tables.auto.probe.measured", lambda *_: QUICK)
    for spent, method in ((0.0, "ensemble_chains"), (29.5, "deep_ensemble")):
        monkeypatch.setattr("credo.tables.auto.resolution.left_of", lambda *_, spent=spent: 30 - spent)
        monkeypatch.setattr("credo.tables.auto.resolution.pilot", lambda choice, *_: [choice._replace(rivals=())])
        found = auto.resolve(auto.of_table(encoder, arrays), budget="30s")
        assert found.words["method"] == method, spent


def test_a_wide_table_is_planned_with_its_starts_and_its_pilot():
    """A table of 153 rows of 2,000 columns took nine minutes where one was planned: only chains were counted."""
    wide = auto.choose("regression", 153, 2_000, device="cpu")
    assert wide.method == "deep_ensemble"
    assert wide.settings["prior"] == "fan_in_normal:1"
    assert wide.seconds <= 60
    broad = auto.choose("regression", 1_000, 800, device="cpu")
    assert broad.seconds <= 120
    if broad.method == "ensemble_chains":
        assert broad.settings["longest"] < 10_000
    assert auto.choose("regression", 400, 10, device="cpu").settings.get("longest") is None


def test_a_step_is_timed_without_the_first_call():
    """A clock that a call moves by 10 s at first, for compiling, and then by a millisecond for each step."""
    now, calls = [0.0], []

    def run(steps):
        now[0] += 0.001 * int(steps) + (10.0 if not calls else 0.0)
        calls.append(int(steps))

    assert timed(run, lambda: now[0]) == pytest.approx(0.001)
    assert calls[0] == 1
    assert 0.001 * calls[-1] >= 0.04


# ---------------------------------------------------------------------- rows that are held out
def test_rows_of_one_unit_are_held_out_together():
    units = np.repeat(np.arange(30), 4).astype(np.int32) * 4
    data = Batch(X, Y[:, None], np.ones(120, np.float32), np.float32(120))
    for seed in range(5):
        held, aside = held_rows(jax.random.key(seed), 0.2, 0.2, units, data)
        for mask in (np.asarray(held), np.asarray(aside)):
            assert all(len(set(mask[units == unit])) == 1 for unit in set(units))
            assert 20 <= mask.sum() <= 28
        assert not (np.asarray(held) & np.asarray(aside)).any()
    held, aside = held_rows(jax.random.key(0), 0.1, 0.0, None, data)
    assert int(held.sum()) == 12
    assert not np.asarray(aside).any()


def test_one_unit_of_all_rows_leaves_rows_to_learn_from():
    data = Batch(X, Y[:, None], np.ones(120, np.float32), np.float32(120))
    held, _ = held_rows(jax.random.key(0), 0.2, 0.0, np.zeros(120, np.int32), data)
    assert int(held.sum()) == 24


def test_copies_and_groups_become_units_of_the_method():
    method = build_method("deep_ensemble", held_out=0.3)
    x = np.concatenate([X, X[:30]])
    y = np.concatenate([Y, Y[:30]])
    units = honest.with_units(method, (x, y)).units
    assert (units[120:150] == units[:30]).all()
    groups = np.arange(120) % 7
    by_group = honest.with_units(method, (X, Y), groups).units[:120]
    assert len(set(by_group)) == 7
    assert honest.with_units(method, (X, Y)).units is None
    assert isinstance(method.parts[0], EarlyStopping)
    with pytest.raises(credo.errors.InputError, match="held_out does not go with"):
        build_method("deep_ensemble", held_out=0.3, bootstrap=True)


# ---------------------------------------------------------------------- one short fit from end to end
@pytest.fixture(scope="module")
def fitted():
    """Two seconds; members of a network that learns rows by heart."""
    model = credo.Model(credo.networks.mlp([20], "tanh"), credo.priors.fan_in_normal(3.0), credo.likelihoods.gaussian())
    return credo.fit(jax.random.key(0), model, (X, Y), "auto", budget=2, progress=False)


def test_a_short_budget_is_an_ensemble_whose_noise_unseen_rows_have_set(fitted):
    assert fitted.config["method"] == "deep_ensemble"
    correction = fitted.config["correction"]
    assert isinstance(fitted.model.likelihood, Stretched)
    assert fitted.model.likelihood.factor == correction["settings"]["factor"]
    assert 0.8 < correction["facts"]["coverage_after"] < 0.98
    x = np.random.default_rng(5).normal(size=(2000, 2)).astype(np.float32)
    y = x[:, 0] + 0.3 * np.random.default_rng(6).normal(size=2000)
    low, high = credo.predict(jax.random.key(1), fitted, x).interval(0.9)
    held = np.mean((low <= y) & (y <= high))
    assert 0.8 < held < 0.98  # 120 rows tell a coverage to some 3 points


def test_the_correction_is_saved_loaded_and_exported(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert loaded.model.likelihood == fitted.model.likelihood
    assert loaded.config["correction"]["facts"] == fitted.config["correction"]["facts"]
    one, other = (credo.predict(jax.random.key(1), fit, X) for fit in (fitted, loaded))
    np.testing.assert_array_equal(one.std, other.std)
    credo.export(fitted, tmp_path / "p", "numpy", key=jax.random.key(1))
    np.testing.assert_allclose(credo.load_exported(tmp_path / "p").predict(X).std, one.std, rtol=1e-4)


def test_what_was_corrected_is_in_the_status(fitted):
    correction = {"settings": {"factor": 2.0}, "honest": False, "facts": {}, "sentence": "Warning: on 9 rows …"}
    again = honest.with_correction(fitted, correction)
    assert "Warning: on 9 rows …" in str(again.status)
    untouched = honest.with_correction(fitted, correction | {"settings": None, "sentence": ""})
    assert untouched.model.likelihood is fitted.model.likelihood


# ---------------------------------------------------------------------- what the command line says
def rows(targets, weights=None):
    targets = np.asarray(targets)
    return SimpleNamespace(rows=np.arange(len(targets)), targets=targets, weights=np.ones(len(targets)))


def test_narrow_intervals_are_a_warning_with_their_figure():
    held = rows(np.zeros(50))
    [said] = doubts({"test_coverage_90": 0.5}, held, held, 0)
    assert said.startswith("Warning: 90 % intervals hold 50 % of 50 rows that the fit did not see")
    assert doubts({"test_coverage_90": 0.86}, held, held, 0) == []
    assert doubts({"test_coverage_90": 1.0}, held, held, 0) == []
    assert doubts({"test_coverage_90": 0.5}, held, rows(np.zeros(9)), 0) == []


def test_probabilities_worse_than_frequencies_are_a_warning():
    train, held = rows(np.repeat([0, 1], [80, 20])), rows(np.repeat([0, 1], [40, 10]))
    [said] = doubts({"test_log_likelihood": -0.7}, train, held, 2)
    assert said.startswith("Warning: log loss is 0.700 on 50 rows")
    assert "frequencies is 0.50" in said
    assert doubts({"test_log_likelihood": -0.45}, train, held, 2) == []


def test_time_is_told_before_and_after():
    assert announced(72.0) == "Planned: about 72 s on this machine, compiling aside."
    assert "where 5.0 s were planned." in took(12.0, 6.0, 5.0)
    assert took(20.0, 6.0, 5.0).endswith("where 5.0 s were planned: longer than was said.")
    assert took(20.0, 6.0, None) == "It took 20 s: 6.0 s compiling and 14 s of work."
