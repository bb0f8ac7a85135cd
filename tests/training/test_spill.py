"""Draws on disk give what draws in memory give, in bounded memory.

No test here is a statistical one: draws are compared bit for bit, and what is computed from them to rounding.
"""

import dataclasses
import errno
import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest

import credo
from credo.core import draw_file, pieces
from credo.core.draws import function_draws, log_likelihood_draws
from credo.errors import ArtifactError
from credo.evaluation.diagnostics import diagnose, to_arviz
from credo.evaluation.diagnostics.weights import weight_draws
from credo.posteriors import Samples
from credo.storage import tensors
from credo.training import record
from credo.training.record import Record
from spilled import HMC, KEY, STEPS, X, Y, fitted, same

NEW = np.linspace(-3, 3, 150, dtype=np.float32)[:, None]


@pytest.fixture(scope="module")
def both():
    """The same fit with draws in memory and on disk."""
    return fitted(2**28), fitted(3000)


def close(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=2e-5, atol=2e-6)


def said(predictive):
    rest = predictive.log_prob(np.sin(NEW[:, 0]))
    return predictive.mean, predictive.aleatoric, predictive.epistemic, rest


# ---------------------------------------------------------------------- the posterior
def test_draws_are_the_same_bits(both):
    ram, disk = both
    assert disk.posterior.on_disk
    assert not ram.posterior.on_disk
    assert all(isinstance(x, np.memmap) and not x.flags.writeable for x in jax.tree.leaves(disk.posterior.params))
    assert same(ram.posterior.params, disk.posterior.params)
    assert same(ram.trace, disk.trace)
    assert Samples(jax.tree.map(np.asarray, disk.posterior.params), {}).on_disk  # whatever class the view has
    assert disk.outcome == "finished"


# One draw of one member has 64 bytes: everything at once; several members; parts of one; one draw.
@pytest.mark.parametrize(
    ("piece", "num", "memory"),
    [(2**27, None, 2**28), (2 * 64 * STEPS, 20, 0), (64 * 23, None, 2**18), (1, 20, 2**28)],
)
def test_predictions_are_the_same(piece, num, memory, both, monkeypatch):
    monkeypatch.setattr("credo.core.predict.CHUNK_BYTES", 2**16)  # several chunks of rows
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece)
    made = [said(credo.predict(KEY, fit, NEW, num_samples=num, memory=memory)) for fit in both]
    close(*made)
    if piece == 2**27 and num is None:  # the very program that runs on draws in memory
        assert same(made[0], made[1])


def test_only_chosen_draws_are_read_and_once(both, monkeypatch):
    taken = []
    part = Samples.part

    def counted(self, members, draws):
        taken.extend((int(m), int(d)) for m in members for d in draws)
        return part(self, members, draws)

    monkeypatch.setattr(Samples, "part", counted)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    monkeypatch.setattr("credo.core.predict.CHUNK_BYTES", 2**10)
    predictive = credo.predict(KEY, both[1], NEW, num_samples=6)
    predictive.mean, predictive.log_prob(NEW[:, 0])
    assert sorted(taken) == [(m, d) for m in range(3) for d in (29, 59)]
    taken.clear()
    predictive = credo.predict(KEY, both[1], NEW, num_samples=6, memory=0)
    predictive.mean  # noqa: B018
    assert len(taken) > 6  # without memory for outputs every chunk of rows reads its draws


def test_other_questions_have_the_same_answers(both, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 64 * 7)
    ram, disk = both
    for num in (None, 20):
        assert same(*(weight_draws(KEY, fit, num) for fit in both))
    close(*(function_draws(KEY, fit, X, 20) for fit in both))
    close(*(log_likelihood_draws(KEY, fit, X, Y, 20) for fit in both))
    assert same(ram.posterior.sample(KEY, 7), disk.posterior.sample(KEY, 7))
    one, other = (diagnose(KEY, fit).to_plain() for fit in both)
    assert one["ranks"] == other["ranks"]
    assert [c["name"] for c in one["convergence"]] == [c["name"] for c in other["convergence"]]
    close(*([{k: v for k, v in c.items() if isinstance(v, float)} for c in d["convergence"]] for d in (one, other)))
    assert ram.summary().splitlines()[4:] == disk.summary().splitlines()[4:]
    made = [to_arviz(fit, X, Y) for fit in both]
    for group in ("posterior", "log_likelihood", "sample_stats"):
        a, b = (data[group] for data in made)
        close({k: a[k].values for k in a}, {k: b[k].values for k in b})


def test_weighted_draws_keep_their_weights(both, monkeypatch):
    monkeypatch.setattr("credo.core.predict.CHUNK_BYTES", 2**16)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    weights = np.random.default_rng(0).normal(size=(3, STEPS)).astype(np.float32)
    fits = [
        dataclasses.replace(f, posterior=Samples(f.posterior.params, f.posterior.state, weights), known=None)
        for f in both
    ]
    close(*(said(credo.predict(KEY, fit, NEW, num_samples=20)) for fit in fits))
    assert same(*(fit.posterior.sample(KEY, 9) for fit in fits))


CASES = {
    "subset": (credo.subset(dataclasses.replace(HMC, chains=2), "output/*"), {}),
    "replicate and thin": (credo.replicate(dataclasses.replace(HMC, chains=1), 2), {"thin": 3}),
    "then": (credo.then("map", HMC), {"steps": 20}),
}


@pytest.mark.parametrize("case", ["subset", "replicate and thin", pytest.param("then", marks=pytest.mark.full)])
def test_combined_methods(case):
    method, options = CASES[case]
    disk = fitted(1, method, **options)
    assert disk.posterior.on_disk
    ram = fitted(2**28, method, **options)
    assert not ram.posterior.on_disk
    assert same(ram.posterior, disk.posterior)
    close(*(credo.predict(KEY, fit, X, num_samples=10).mean for fit in (ram, disk)))
    assert same(ram.posterior.sample(KEY, 5), disk.posterior.sample(KEY, 5))
    assert same(*(weight_draws(KEY, fit, 6) for fit in (ram, disk)))


def test_a_budget_does_not_know_how_many_draws_come():
    disk = fitted(1000, steps=None, budget=1.5)  # seconds: also enough for a few hundred draws on a busy machine
    assert disk.posterior.on_disk
    assert disk.trace["acceptance"].shape == (3, disk.posterior.available)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(disk.posterior.params))


def test_extend_goes_on_in_the_file():
    whole, disk = fitted(2**28, steps=80), fitted(3000)
    before = jax.tree.map(np.array, disk.posterior.params)
    longer = disk.extend(20)
    assert longer.posterior.on_disk
    assert same(longer.posterior.params, whole.posterior.params)
    assert same(disk.posterior.params, before)


def test_many_draws_are_all_chosen():
    many = Samples({"w": np.zeros((1, 60_000), np.float32)}, {})  # the square of it is beyond 32 bits
    assert np.array_equal(many.chosen(None), np.arange(60_000))
    assert np.array_equal(many._plan(KEY, None)[2], np.arange(60_000))


def test_other_types_and_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SPILL_BYTES", 500)
    monkeypatch.setattr(draw_file, "WRITE_BYTES", 300)
    rng = np.random.default_rng(0)
    tree = {
        "half": rng.normal(size=(3, 9, 4)).astype(ml_dtypes.bfloat16), "flag": rng.normal(size=(3, 9)) > 0,
        "none": np.zeros((3, 9, 0, 2), np.float32), "double": rng.normal(size=(3, 9, 2, 3)),
    }  # fmt: skip
    kept = Record(tmp_path / "draws")
    for start in range(0, 9, 3):  # the third member is padding
        block = jax.tree.map(lambda x, s=start: x[:, s : s + 4], tree)
        assert kept.add({"m": np.zeros((3, 4))}, block, 3, 3, 2)
    found = kept.all_draws()
    expected = jax.tree.map(lambda x: x[:2], tree)
    assert same(found, expected)
    assert all(found[name].dtype == tree[name].dtype for name in tree)
    assert kept.trace()["m"].shape == (2, 9)


# ---------------------------------------------------------------------- places
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="reads the open files from /proc")
def test_a_nameless_file_is_gone_with_the_last_who_looks(tmp_path, monkeypatch):
    def still_open():
        return sum(os.readlink(link).startswith(str(tmp_path / "draws")) for link in links())

    def links():
        return [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]

    monkeypatch.setenv("CREDO_CACHE", str(tmp_path))
    disk = fitted(1, steps=5)
    assert not list((tmp_path / "draws").iterdir())  # no name: nothing stays behind even after a kill
    posterior = disk.posterior
    del disk
    gc.collect()
    assert still_open()
    assert np.isfinite(jax.tree.leaves(posterior.params)[0]).all()
    del posterior
    gc.collect()
    assert not still_open()


# ---------------------------------------------------------------------- runs
@pytest.fixture
def large(monkeypatch):
    """Every file counts as large."""
    monkeypatch.setattr(tensors, "LARGE_BYTES", 0)
    monkeypatch.setattr(tensors, "PIECE_BYTES", 1000)
    monkeypatch.setattr(tensors, "SMALL_ARRAY", 64)


def test_large_runs_are_mapped_and_say_the_same(both, large, tmp_path):
    disk, run = both[1], tmp_path / "run"
    disk.save(run)
    loaded = credo.load(run)
    assert loaded.posterior.on_disk
    assert same(loaded.posterior.params, both[0].posterior.params)
    one, other = (credo.predict(KEY, fit, X, num_samples=10).mean for fit in (disk, loaded))
    assert same(one, other)
    loaded.save(tmp_path / "again")  # from one memory map to a new file
    names = [path.name for path in run.iterdir() if path.name != "versions.json"]
    assert all((run / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)
    loaded.save(run)  # in its own place
    assert same(loaded.posterior.params, both[0].posterior.params)
    assert same(credo.load(run).posterior.params, both[0].posterior.params)


def test_damage_and_a_full_disk_are_one_sentence(both, large, tmp_path, monkeypatch):
    run = tmp_path / "run"
    both[1].save(run)
    data = bytearray((run / "posterior.safetensors").read_bytes())
    data[-3] ^= 1
    (run / "posterior.safetensors").write_bytes(data)
    with pytest.raises(ArtifactError, match="is damaged"):
        credo.load(run)

    def full(x):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tensors, "_in_order", full)
    with pytest.raises(ArtifactError, match="No space left on device"):
        both[1].save(tmp_path / "other")
    assert list(tmp_path.iterdir()) == [run]


# ---------------------------------------------------------------------- the promise
BAR = """
import sys
import numpy as np, jax, credo
what, folder = sys.argv[1:]
x = np.random.default_rng(0).normal(size=(20, 10)).astype(np.float32)
if what == "fit":
    model = credo.Model(
        credo.networks.mlp([1000, 990]), credo.priors.fan_in_normal(1.0), credo.likelihoods.gaussian(0.1)
    )
    method = credo.methods.HMC(step_size=1e-3, num_steps=1, warmup=0, chains=1)
    fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), method, steps=1000, progress=False)
    assert sum(v.nbytes for v in jax.tree.leaves(fit.posterior.params)) > 4e9
    fit.save(folder)
else:
    fit = credo.load(folder)
    assert np.isfinite(credo.predict(jax.random.key(1), fit, x).std).all()
    fit.summary()
# The peak of this process alone: ru_maxrss begins at what the parent had.
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak of memory from /proc")
def test_a_thousand_draws_of_a_million_weights_in_two_gigabytes(tmp_path):
    """4 GB of draws: fit and save, then load and predict, each in a process that stays below 2 GB."""
    environment = os.environ | {"CREDO_CACHE": str(tmp_path / "cache")}
    for what in ("fit", "load"):
        command = [sys.executable, "-c", BAR, what, str(tmp_path / "run")]
        output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=1800)
        assert int(output.stdout.split()[-1]) * 1024 < 2e9, what
    shutil.rmtree(tmp_path / "run")  # pytest would keep it
