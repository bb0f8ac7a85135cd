"""A run killed at any moment and resumed equals one that was never killed, bit for bit."""

import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

import credo
from credo.errors import InputError

SCRIPT = """
import sys
import jax, numpy as np, credo
from safetensors.numpy import save_file
method, folder, out = sys.argv[1:4]
x = np.linspace(-2, 2, 80, dtype=np.float32)[:, None]
y = np.sin(2 * x[:, 0]) + 0.1 * np.cos(37 * x[:, 0])
model = credo.Model(credo.networks.mlp([10], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian())
methods = {
    "bayes_by_backprop": (credo.methods.BayesByBackprop(), 60_000, 16),
    "nuts": (credo.methods.NUTS(chains=2, warmup=500, max_doublings=6), 1500, None),
}
method, steps, batch = methods[method]
checkpoint = None if folder == "-" else credo.Checkpoint(folder, every=0.05)
print("ready", flush=True)
fit = credo.fit(
    jax.random.key(0), model, (x, y), method, steps=steps, batch_size=batch, checkpoint=checkpoint,
    callbacks=[lambda event: print("block", flush=True)],
)
arrays = {f"p{i}": np.ascontiguousarray(v) for i, v in enumerate(jax.tree.leaves(fit.posterior))}
arrays |= {f"t/{k}": np.ascontiguousarray(v) for k, v in fit.trace.items()}
save_file(arrays, out)
"""


def start(method, folder, out):
    command = [sys.executable, "-c", SCRIPT, method, str(folder), str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.full  # tests/cli/test_resume.py kills one run whenever tests run
@pytest.mark.parametrize(("method", "times"), [("bayes_by_backprop", 5), ("nuts", 5)])
def test_kill_at_several_moments(method, times, tmp_path):
    from safetensors.numpy import load_file

    whole, resumed, folder = tmp_path / "whole", tmp_path / "resumed", tmp_path / "checkpoint"
    process = start(method, "-", whole)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    moments = np.random.default_rng(5).uniform(0.0, 0.6, size=times)
    killed = 0
    for moment in moments:
        process = start(method, folder, resumed)
        while process.stdout.readline().strip() not in ("block", ""):
            pass
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    process = start(method, folder, resumed)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert killed >= times // 2
    a, b = load_file(whole), load_file(resumed)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    x = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    data, key = (x, x[:, 0]), jax.random.key(0)
    checkpoint = credo.Checkpoint(tmp_path / "c", every=0.0)
    credo.fit(key, model, data, "map", steps=300, checkpoint=checkpoint)
    with pytest.raises(InputError, match="other data or settings"):
        credo.fit(key, model, (x, 2 * x[:, 0]), "map", steps=300, checkpoint=credo.Checkpoint(tmp_path / "c"))
    with pytest.raises(InputError, match="other data or settings"):
        credo.fit(jax.random.key(1), model, data, "map", steps=300, checkpoint=credo.Checkpoint(tmp_path / "c"))


def centred(shift):
    """A model whose prior is tight around given weights."""
    network = credo.networks.mlp([])
    kernel, bias = np.full((1, 1), 0.5 + shift, np.float32), np.full(1, shift, np.float32)
    prior = credo.priors.centred_on({"network": {"output": {"kernel": kernel, "bias": bias}}}, 0.01)
    return credo.Model(network, prior, credo.likelihoods.gaussian(0.1))


def weights(value):
    return {
        "network": {"output": {"kernel": np.full((1, 1), value, np.float32), "bias": np.zeros(1, np.float32)}},
        "likelihood": {},
        "prior": {},
    }


def relu(x):
    return jax.nn.relu(x)


def test_arrays_of_prior_and_start_tell_runs_apart(tmp_path):
    """Settings name an array by its shape alone: its numbers are part of the fingerprint."""
    x = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    plain = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    runs = {
        "prior": [{"model": centred(0.0)}, {"model": centred(3.0)}],
        "start": [{"model": plain, "start": weights(0.0)}, {"model": plain, "start": weights(3.0)}],
    }
    for name, (first, other) in runs.items():
        options = {"steps": 5, "checkpoint": credo.Checkpoint(tmp_path / name, every=0.0)}
        found = credo.fit(jax.random.key(0), data=(x, x[:, 0]), method="map", **first, **options)
        with pytest.raises(InputError, match="other data or settings"):
            credo.fit(jax.random.key(0), data=(x, x[:, 0]), method="map", **other, **options)
        again = credo.fit(jax.random.key(0), data=(x, x[:, 0]), method="map", **first, **options)
        assert all(jax.tree.leaves(jax.tree.map(np.array_equal, found.posterior, again.posterior)))


def test_fingerprints(tmp_path, monkeypatch):
    """Rows of memory maps count, and functions count by their whole names."""
    from credo.training import fingerprint as prints
    from credo.training.source import Source

    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))

    def mark(inputs, thing=None):
        source = Source(model, (inputs, np.zeros(len(inputs), np.float32)))
        return prints.fingerprint({}, thing, model, None, source)

    def written(name, value):
        mapped = np.memmap(tmp_path / name, np.float32, "w+", shape=(50, 2))
        mapped[:], mapped[7] = 1.0, value
        mapped.flush()
        return mapped

    one, other, alike = written("a", 2.0), written("b", 3.0), written("c", 2.0)
    assert mark(one) == mark(alike) == mark(np.array(one))
    assert mark(one) != mark(other)
    monkeypatch.setattr(prints, "WHOLE_BYTES", 100)  # as if they were large: their times count, and rows of a sample
    assert mark(one) == mark(one)
    assert len({mark(one), mark(other), mark(alike)}) == 3
    x = np.ones((5, 1), np.float32)
    modules = [linen.Dense(4), linen.Dense(5), linen.Sequential([linen.Dense(4), jnp.tanh])]
    modules += [linen.Sequential([linen.Dense(4), linen.relu])]
    networks = [credo.adapters.from_linen(module) for module in modules]
    assert len({mark(x, network) for network in networks}) == 4
    assert mark(x, networks[0]) == mark(x, credo.adapters.from_linen(linen.Dense(4)))
    functions = (jax.nn.relu, relu, jax.tree_util.Partial(relu), [relu], {"a": 1}, {"a": 1.0}, jax.random.key(1))
    assert len({mark(x, f) for f in functions}) == len(functions)
    assert mark(x, functions) == mark(x, functions)


@pytest.mark.full
def test_resuming_a_finished_run_changes_nothing(tmp_path):
    x = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
    model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    method = credo.then("map", credo.methods.HMC(chains=2, warmup=30, num_steps=5))
    fits = [
        credo.fit(
            jax.random.key(0),
            model,
            (x, x[:, 0]),
            method,
            steps=40,
            checkpoint=credo.Checkpoint(tmp_path / "c", every=0.0),
        )
        for _ in range(2)
    ]
    equal = jax.tree.map(lambda a, b: np.array_equal(a, b), fits[0].posterior.params, fits[1].posterior.params)
    assert all(jax.tree.leaves(equal))
