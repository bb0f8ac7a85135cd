"""Compiled programs are let go of long before the system's limit on mappings, and nobody notices."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core import programs

X = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
KEY = jax.random.key(0)
linux = pytest.mark.skipif(programs.mappings() == 0, reason="this system does not tell of its mappings")


def fitted(width, **options):
    """A fit of a structure that only this width has, and what it predicts."""
    model = credo.Model(credo.networks.mlp([width]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (X, X[:, 0]), "map", steps=20, **options)
    return fit, credo.predict(KEY, fit, X).mean


def most_mappings(widths):
    """The largest number of mappings after a fit of each width."""
    most = 0
    for width in widths:
        fitted(width)
        most = max(most, programs.mappings())
    return most


@linux
def test_mappings_stay_bounded(monkeypatch):
    jax.clear_caches()
    before, room = programs.mappings(), 250
    with monkeypatch.context() as patch:
        patch.setattr("credo.training.fit.tidy", lambda: False)
        patch.setattr("credo.core.predict.tidy", lambda: False)
        without = most_mappings(range(21, 30))
    monkeypatch.setattr(programs, "_last", programs.Load(0, 0, 0))
    jax.clear_caches()
    # A process that may have so many mappings that `room` more than now are 40 % of them.
    monkeypatch.setattr(programs, "allowed_mappings", lambda: (before + room) / programs.SHARE)
    monkeypatch.setattr(programs, "LEFT", before / (before + room))
    monkeypatch.setattr(programs, "MAPPINGS_OF_ONE", room)  # it looks after every fit: there is room for one alone
    one_more = 200  # a fit and its prediction come before the next look
    assert most_mappings(range(21, 30)) < before + room + one_more < without


@linux
def test_own_programs_go_first(monkeypatch):
    """Where letting go of credo's programs is enough, nothing else is compiled again."""
    traced = []

    @jax.jit
    def other(x):
        traced.append(x)
        return jnp.sin(x)

    other(1.0)
    fitted(20)
    full = programs.mappings()
    monkeypatch.setattr(programs, "allowed_mappings", lambda: (full - 20) / programs.SHARE)
    monkeypatch.setattr(programs, "LEFT", (full - 60) / (full - 20))
    monkeypatch.setattr(programs, "_last", programs.Load(0, 0, 0))
    assert programs.tidy()
    assert programs.mappings() < full
    other(2.0)
    assert len(traced) == 1


def test_whoever_holds_a_program_goes_on(tmp_path):
    """Fits under way, fits that are done and the user's own functions: the same bits, from the cache on disk."""
    from jax._src import compilation_cache

    settings = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    old = {name: getattr(jax.config, name) for name in settings}
    events = []
    listener = lambda event, **_: events.append(event)  # noqa: E731
    own = jax.jit(lambda x: 2 * x)
    compiled = own.lower(1.0).compile()
    try:
        for name, value in zip(settings, (str(tmp_path), 0.0)):
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        jax.clear_caches()
        fit, mean = fitted(20)
        jax.monitoring.register_event_listener(listener)
        let_go = []
        again, mean_again = fitted(20, callbacks=[lambda event: let_go.append(programs.tidy(-1.0)) and None])
    finally:
        jax.monitoring.unregister_event_listener(listener)
        for name, value in old.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
    assert let_go
    assert all(let_go)
    assert events.count("/jax/compilation_cache/cache_misses") == 0
    assert events.count("/jax/compilation_cache/cache_hits") >= 2
    same = jax.tree.map(np.array_equal, fit.posterior, again.posterior)
    assert all(jax.tree.leaves(same))
    np.testing.assert_array_equal(mean, mean_again)
    np.testing.assert_array_equal(credo.predict(KEY, fit, X).mean, mean)
    assert own(3.0) == compiled(3.0) == 6.0


def test_without_mappings_programs_are_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "MAPS", tmp_path / "none")
    monkeypatch.setattr(programs, "MAX_MAPS", tmp_path / "none")
    monkeypatch.setattr(programs, "_last", programs.Load(0, 0, 0))
    fitted(20)
    assert programs.mappings() == 0
    assert programs.allowed_mappings() == 65_530
    assert not programs.tidy()
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 1)
    assert programs.load().programs > 1
    assert programs.tidy()
    assert programs.load().programs <= 1


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_programs import fitted
from credo.core import programs
first, mean = fitted(1)
most = 0
for width in range(1, 401):
    fitted(width)
    most = max(most, programs.mappings())
import numpy as np, credo
from test_programs import KEY, X
assert np.array_equal(credo.predict(KEY, first, X).mean, mean)
print(most)
"""


@linux
@pytest.mark.full
def test_400_different_fits_in_one_process():
    """With XLA as users have it: a program then has ten times the mappings that it has under the flags of the tests."""
    quick = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    plain = {name: value for name, value in os.environ.items() if name not in quick}
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)]
    found = subprocess.run(command, env=plain, capture_output=True, text=True, timeout=7200)
    assert found.returncode == 0, found.stderr[-2000:]
    assert int(found.stdout.split()[-1]) < 0.45 * programs.allowed_mappings()
