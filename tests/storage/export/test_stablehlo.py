"""The exported program gives the numbers of `credo.predict`, for every number of rows, without credo."""

import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import credo
from credo.errors import Refusal
from credo.storage.export.portable.cells import PortableError
from exported import KEY, X, drawn, fitted, same


def both(fit, folder, num=None, mode=None, rows=X, **options):
    credo.export(fit, folder, key=KEY, num_samples=num, mode=mode, **options)
    return credo.load_exported(folder).predict(rows), credo.predict(KEY, fit, rows, num_samples=num, mode=mode)


def test_numbers_of_rows_and_platforms(tmp_path):
    fit = drawn()
    found, wanted = both(fit, tmp_path / "p", block=16)
    same(found, wanted)
    predictor = credo.load_exported(tmp_path / "p")
    assert predictor.document["platforms"] == ["cpu", "cuda"]
    program = jax.export.deserialize(bytearray((tmp_path / "p" / "predictor.stablehlo").read_bytes()))
    for rows in (1, 17):
        raw = program.call(X[:rows])
        np.testing.assert_allclose(raw["mean"][:, 0], wanted.mean[:rows], rtol=1e-5, atol=1e-6)
        assert raw["quantiles"].shape == (rows, 1, 3)
    with pytest.raises(PortableError, match=r"levels \[0.05, 0.5, 0.95\]"):
        found.quantile(0.3)
    with pytest.raises(PortableError, match='form="numpy"'):
        found.log_prob(wanted.mean)


def test_classes_and_weighted_draws(tmp_path):
    weights = np.log(np.random.default_rng(1).dirichlet(np.ones(7)))[None].astype(np.float32)
    same(*both(drawn("categorical", weights=weights), tmp_path / "p"))


@pytest.mark.parametrize(
    "likelihood",
    ["ordinal", "gamma"]
    + [pytest.param(name, marks=pytest.mark.full) for name in ("log_normal", "zero_inflated_negative_binomial")],
)
def test_likelihoods_with_formulas_of_their_own(likelihood, tmp_path):
    same(*both(drawn(likelihood, draws=3), tmp_path / "p", block=40))


@pytest.mark.full
def test_counts(tmp_path):
    same(*both(drawn("poisson"), tmp_path / "p"))


def test_many_rows_are_few_calls(tmp_path, monkeypatch):
    """Rows beyond the longest call, which is made short here, go into several."""
    fit = drawn("bernoulli")
    found, _ = both(fit, tmp_path / "p", block=16)
    monkeypatch.setattr("credo.storage.export.portable.load.MOST_ROWS", 32)
    again = credo.load_exported(tmp_path / "p").predict(np.concatenate([X, X[:20]]))
    np.testing.assert_allclose(again.probs, np.concatenate([found.probs, found.probs[:20]]), rtol=1e-6)


@pytest.mark.full
def test_a_gaussian_stored_linearised_and_drawn_inside(tmp_path, monkeypatch):
    """A posterior too large to store its draws goes into the program itself, with its key."""
    gaussian = drawn("bernoulli", spread=0.2)
    same(*both(gaussian, tmp_path / "stored", num=7))
    linear = dataclasses.replace(gaussian, posterior=credo.posteriors.Linearised(gaussian.posterior))
    same(*both(linear, tmp_path / "linear", num=7))
    monkeypatch.setattr("credo.storage.export.stablehlo.MOST_BYTES", 0)
    same(*both(gaussian, tmp_path / "inside", num=7))


@pytest.mark.full
def test_convolutions_and_inputs_of_several_parts(tmp_path):
    images = np.random.default_rng(0).normal(size=(40, 28, 28, 1)).astype(np.float32)
    fit = drawn("categorical", credo.networks.lenet(), inputs=images, draws=2)
    same(*both(fit, tmp_path / "images", rows=images, block=8))
    rows = {"inputs": X, "head": np.arange(40)[:, None] % 2}
    heads = credo.networks.multi_head(credo.networks.mlp([5]), 2)
    same(*both(drawn("bernoulli", heads, inputs=rows), tmp_path / "heads", rows=rows))


@pytest.mark.full
def test_networks_of_flax(tmp_path):
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.one, self.two = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)

        def __call__(self, x):
            return self.two(nnx.tanh(self.one(x)))

    fit = fitted("bayes_by_backprop", network=credo.from_flax(lambda rngs: Net(rngs)))
    same(*both(fit, tmp_path / "p", num=7))


@pytest.mark.full
def test_laplace_in_every_mode(tmp_path):
    fit = fitted("laplace", "bernoulli")
    for mode in ("linearised", "sampled", "probit"):
        same(*both(fit, tmp_path / mode, num=9, mode=mode))


def test_it_runs_without_credo(tmp_path):
    fit = drawn("bernoulli")
    folder = credo.export(fit, tmp_path / "p", key=KEY)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, json\n"
        "sys.modules['credo'] = None\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "import numpy as np, portable\n"
        f"found = portable.load({str(folder)!r}).predict(np.load({str(tmp_path / 'x.npy')!r}))\n"
        "print(json.dumps(found.probs.tolist()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(json.loads(done.stdout), credo.predict(KEY, fit, X).probs, rtol=1e-5)


@pytest.mark.full
def test_infinite_width_is_refused(tmp_path):
    model = credo.Model(credo.networks.mlp([5]), credo.priors.fan_in_normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(jax.random.key(0), model, (X, X[:, 0]), "infinite_width", progress=False)
    for form in ("numpy", "stablehlo"):
        with pytest.raises(Refusal, match="training rows"):
            credo.export(fit, tmp_path / "p", form)
