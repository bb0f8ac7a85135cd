"""Bayesian optimisation: ask and tell, records that resume, failures, and known optima (H1)."""

import json
import math

import numpy as np
import pytest

from credo.applications.optimise import Category, Evaluation, Float, Int, Optimizer, Space, Surrogate
from credo.errors import ArtifactError, InputError

SQUARE = Space({"x": Float(-5, 10), "y": Float(0, 15)})
SMALL = Space({"n": Int(1, 3), "kind": Category(["a", "b"])})


def branin(point):
    x, y = point["x"], point["y"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def test_branin_is_solved_in_25_evaluations():
    search = Optimizer(SQUARE, "gp", seed=0)
    best = search.minimise(branin, 25)
    assert best.value - 0.397887 < 0.5
    assert len(search.history) == 25
    assert not search.pending
    np.testing.assert_array_equal(search.best_so_far, np.minimum.accumulate([e.value for e in search.history]))
    largest = Optimizer(SQUARE, "gp", seed=0, maximise=True)
    largest.minimise(lambda p: -branin(p), 8)
    assert [e.point for e in largest.history] == [e.point for e in search.history[:8]]


def test_a_stopped_search_goes_on_as_if_it_had_not(tmp_path):
    whole = Optimizer(SQUARE, "gp", batch=2, initial=4, seed=1)
    whole.minimise(branin, 9)
    calls = []

    def stops(point):
        calls.append(point)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return branin(point)

    with pytest.raises(KeyboardInterrupt):
        Optimizer(SQUARE, "gp", batch=2, initial=4, seed=1).minimise(stops, 9, tmp_path)
    loaded = Optimizer.load(tmp_path)
    assert len(loaded.history) == 5
    assert len(loaded.pending) == 1
    loaded.minimise(branin, 9, tmp_path)
    assert loaded.history == whole.history
    assert Optimizer.load(tmp_path).ask() == whole.ask()


def test_points_that_were_never_asked_for_count():
    search = Optimizer(SQUARE, "gp", initial=3)
    for x, y in [(math.pi, 2.3), (0.0, 0.0), (9.0, 9.0), (-3.0, 14.0)]:
        search.tell({"x": x, "y": y}, branin({"x": x, "y": y}))
    assert len(search.history) == 4
    assert search.best.point == {"x": math.pi, "y": 2.3}
    (point,) = search.ask()
    assert search.pending == [point]
    (other,) = search.ask()
    assert other != point


def test_failed_evaluations_are_not_repeated():
    search = Optimizer(Space({"x": Float(0, 1)}), "gp", initial=3)
    search.minimise(lambda p: math.nan if p["x"] > 0.5 else (p["x"] - 0.6) ** 2, 10)
    failed = [e.point["x"] for e in search.history if e.failed]
    later = [e.point["x"] for e in search.history[3:]]
    assert failed
    assert search.best.point["x"] > 0.4
    assert len(set(later)) == len(later)
    for e in search.history[3:]:
        before = [b.point["x"] for b in search.history[: search.history.index(e)] if b.failed]
        assert all(abs(e.point["x"] - x) > 0.0199 for x in before)
    nothing = Optimizer(Space({"x": Float(0, 1)}), "gp", initial=2)
    nothing.minimise(lambda p: None, 5)
    assert len({e.point["x"] for e in nothing.history}) == 5
    with pytest.raises(InputError, match="no best point"):
        _ = nothing.best


def test_a_search_leaves_settings_that_fail():
    space = Space({"x": Float(-2, 2), "n": Int(1, 5)})
    search = Optimizer(space, "gp", initial=5)
    search.minimise(lambda p: None if p["n"] == 1 else (p["x"] - 0.5) ** 2 + p["n"], 14)
    assert sum(e.failed for e in search.history) < 7
    assert search.best.point["n"] == 2


@pytest.mark.parametrize("surrogate", ["gp", "random"])
def test_a_finite_space_is_asked_for_once_and_then_ends(surrogate):
    search = Optimizer(SMALL, surrogate, initial=2)
    search.minimise(lambda p: p["n"] + (p["kind"] == "a"), 6)
    assert len({SMALL.key(e.point) for e in search.history}) == 6
    assert search.best == Evaluation({"n": 1, "kind": "b"}, 1.0)
    with pytest.raises(InputError, match="All 6 points of the space have been asked for"):
        search.ask()


def test_noisy_searches_may_ask_again():
    space = Space({"n": Int(1, 4)})
    rng = np.random.default_rng(0)
    search = Optimizer(space, "gp", initial=3, noisy=True)
    search.minimise(lambda p: (p["n"] - 2) ** 2 + 0.3 * rng.normal(), 9)
    assert len(search.history) == 9
    assert search.best.point == {"n": 2}


@pytest.mark.parametrize("surrogate", ["deep_ensemble", "infinite_width"])
def test_networks_are_surrogates(surrogate):
    """Ten points to a parabola in one setting; a random search is that close with probability 0.6^10."""
    given = Surrogate(surrogate, steps=200) if surrogate == "deep_ensemble" else surrogate
    search = Optimizer(Space({"x": Float(-1, 1)}), given, initial=4, seed=1)
    search.minimise(lambda p: (p["x"] - 0.35) ** 2, 9)
    assert abs(search.best.point["x"] - 0.35) < 0.2


@pytest.mark.full
@pytest.mark.parametrize("acquisition", ["log_ei", "ei", "ucb", "thompson"])
@pytest.mark.parametrize("surrogate", ["gp", "deep_ensemble", "hmc", "laplace", "bayes_by_backprop", "infinite_width"])
def test_every_pair_beats_chance_on_branin(surrogate, acquisition):
    """A random search of 24 points has a median regret of about 1.5; four is what one of a hundred would miss."""
    search = Optimizer(SQUARE, surrogate, acquisition, batch=2, seed=3)
    assert search.minimise(branin, 24).value < 4.4


def test_warm_fits_start_at_the_last_ones():
    given = Surrogate("deep_ensemble", steps=50, warm=True)
    search = Optimizer(Space({"x": Float(-1, 1)}), given, initial=3)
    search.minimise(lambda p: p["x"] ** 2, 6)
    assert given.last is not None


def test_pictures(tmp_path):
    line = Optimizer(Space({"rate": Float(1e-3, 1, log=True)}), "gp", initial=3)
    for rate, value in [(0.001, 1.0), (0.03, 0.2), (1.0, 2.0), (0.2, math.nan)]:
        line.tell({"rate": rate}, value)
    assert len(line.plot().axes) == 3  # values, the belief, the acquisition
    runs = [Optimizer(SQUARE, "random", seed=seed) for seed in range(3)]
    for run in runs:
        run.minimise(branin, 12)
    figure = runs[0].plot(*runs[1:])
    figure.savefig(tmp_path / "runs.png")
    assert len(figure.axes) == 1
    assert "mean of 3 runs" in figure.axes[0].get_title(loc="left")


def test_what_the_objective_raises(tmp_path):
    def broken(point):
        raise ZeroDivisionError("no such place")

    search = Optimizer(SQUARE, "gp")
    with pytest.raises(ZeroDivisionError):
        search.minimise(broken, 3, tmp_path)
    assert len(Optimizer.load(tmp_path).pending) == 1
    search.minimise(broken, 3, tmp_path, failures="record")
    assert search.history[0].message == "ZeroDivisionError: no such place"
    assert json.loads((tmp_path / "optimise.json").read_text())["history"][0]["value"] is None
    loaded = Optimizer.load(tmp_path)
    assert [e.failed for e in loaded.history] == [True] * 3
    assert [(e.point, e.message) for e in loaded.history] == [(e.point, e.message) for e in search.history]


def test_bad_requests_get_a_sentence(tmp_path):
    search = Optimizer(SQUARE, Surrogate("deep_ensemble", steps=10))
    for call, words in [
        (lambda: search.tell([{"x": 0.0, "y": 0.0}], [1.0, 2.0]), "1 points and 2 values"),
        (lambda: search.tell({"x": 0.0}, 1.0), "A point has the settings x, y"),
        (lambda: search.tell({"x": 0.0, "y": 1.0}, "low"), "is a number, got 'low'"),
        (lambda: Optimizer(SQUARE, batch=0), "batch must be a whole number"),
        (lambda: Optimizer({"x": 1}), "The space is a Space"),
        (lambda: Optimizer(SQUARE, surrogate=3), "A surrogate is a name"),
        (lambda: search.minimise(branin, 3, failures="hide"), 'failures is "raise" or "record"'),
    ]:
        with pytest.raises(InputError, match=words):
            call()
    with pytest.raises(ArtifactError, match="Cannot read"):
        Optimizer.load(tmp_path)
    search.save(tmp_path)
    with pytest.raises(InputError, match="surrogate of its own"):
        Optimizer.load(tmp_path)
    assert Optimizer.load(tmp_path, search.surrogate).space == SQUARE
    (tmp_path / "optimise.json").write_text("[1]")
    with pytest.raises(ArtifactError, match="not a record"):
        Optimizer.load(tmp_path)
