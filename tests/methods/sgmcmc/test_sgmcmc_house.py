"""D5, the house: settings, retries, many fits at once, resuming, combinators, and a small network."""

import jax
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.errors import InputError
from credo.registry import find
from credo.training.many import fit_many
from oracles import coefficients, linear

SMALL = linear()
CLASSES = {name: find(name).load() for name in ("sgld", "psgld", "sghmc", "sgnht")}
CYCLICAL = {name: find(name).load() for name in ("cyclical_sgld", "cyclical_sghmc")}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"chains": 0}, "chains of SGHMC is a whole number of at least 1"),
        ({"step_size": -1.0}, "step_size of SGHMC is a positive"),
        ({"pilot_steps": 3}, "at least 6 steps"),
        ({"schedule": "linear"}, "schedule must be one of"),
        ({"tolerance": 0.0}, "tolerance of SGHMC is a positive"),
        ({"tolerance": 1.5}, "between 0 and 1"),
        ({"boost": 0.5}, "boost"),
    ],
)
def test_bad_settings_are_told(settings, words):
    with pytest.raises(InputError, match=words):
        credo.fit(jax.random.key(0), SMALL.model(), (SMALL.inputs, SMALL.targets), CLASSES["sghmc"](**settings))


def test_a_step_that_is_too_large_is_lowered():
    method = CLASSES["sgld"](chains=2, step_size=1.0, burn_in=0, map_steps=0)
    fit = credo.fit(jax.random.key(0), SMALL.model(), (SMALL.inputs, SMALL.targets), method, steps=600)
    assert fit.status.ok
    assert "it began again with step_scale lowered to" in str(fit.status)
    assert np.isfinite(coefficients(fit.posterior.params["network"])).all()


def _short(name):
    return {"cycle_length": 200} if name in CYCLICAL else {}


def kept(key, model, found, extra):
    return found


@pytest.mark.full
@pytest.mark.parametrize("name", [*CLASSES, *CYCLICAL])
def test_many_fits_at_once(name):
    """Three data sets as one program: means within 0.3 standard deviations, spreads within 20 % (300 effective
    draws)."""
    problems = [linear(num_rows=40, dims=2, seed=s) for s in range(3)]
    inputs, targets = (np.stack([getattr(p, f) for p in problems]) for f in ("inputs", "targets"))
    data = Batch(inputs, targets[..., None], np.ones((3, 40), np.float32), np.full(3, 40, np.float32))
    method = (CLASSES | CYCLICAL)[name](chains=8)
    found = fit_many(jax.random.key(1), method, problems[0].model(), data, kept, steps=20_000, thin=20, batch_size=20)
    draws = coefficients(found.params["network"])
    weights = np.ones(draws.shape[:-1]) if found.weights is None else np.exp(found.weights)
    for i, problem in enumerate(problems):
        share = (weights[i] / weights[i].sum())[..., None]
        mean = (share * draws[i]).sum((0, 1))
        variance = (share * (draws[i] - problem.mean) ** 2).sum((0, 1))
        spread = np.sqrt(np.diag(problem.covariance))
        np.testing.assert_allclose((mean - problem.mean) / spread, 0, atol=0.3)
        np.testing.assert_allclose(np.sqrt(variance) / spread, 1, atol=0.2)


@pytest.mark.full
@pytest.mark.parametrize("name", [*CLASSES, *CYCLICAL])
def test_stopped_and_resumed_is_the_same(name, tmp_path):
    """Stopped in the chain, resumed from the checkpoint, saved and loaded: the same bits."""
    x = np.linspace(-2, 2, 80, dtype=np.float32)[:, None]
    data = (x, np.sin(2 * x[:, 0]))
    model = credo.Model(credo.networks.mlp([5], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian())
    method = (CLASSES | CYCLICAL)[name](chains=2, map_steps=200, control_variates=name == "sghmc", **_short(name))
    call = {"steps": 3000, "thin": 3, "batch_size": 16}
    whole = credo.fit(jax.random.key(0), model, data, method, **call)
    seen = []

    def stop(event):
        seen.append(event.phase)
        return seen.count("sample") == 2

    folder = credo.Checkpoint(tmp_path / "checkpoint", every=0.0)
    credo.fit(jax.random.key(0), model, data, method, **call, callbacks=[stop], checkpoint=folder)
    again = credo.fit(jax.random.key(0), model, data, method, **call, checkpoint=folder)
    assert seen.count("sample") <= 2
    again.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    for other in (again, loaded):
        same = jax.tree.map(np.array_equal, whole.posterior.params, other.posterior.params)
        assert all(jax.tree.leaves(same))


@pytest.mark.full
@pytest.mark.parametrize("name", [*CLASSES, *CYCLICAL])
def test_combinators(name):
    x = np.linspace(-2, 2, 80, dtype=np.float32)[:, None]
    data = (x, np.sin(2 * x[:, 0]))
    model = credo.Model(credo.networks.mlp([5], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian())
    method = (CLASSES | CYCLICAL)[name](chains=2, map_steps=0, burn_in=50, **_short(name))
    for whole in (credo.then("map", method), credo.replicate(method, 2), credo.subset(method, "output/*")):
        fit = credo.fit(jax.random.key(0), model, data, whole, steps=400, batch_size=16)
        assert fit.status.ok
        assert np.isfinite(credo.predict(jax.random.key(1), fit, x).std).all()


@pytest.mark.full
@pytest.mark.parametrize("name", list(CLASSES))
def test_a_small_network_agrees_with_nuts(name):
    """Predictive means within 0.25 of NUTS's spread and spreads within 25 % on average over inputs: the pilot looks
    at the mode alone, so nothing exact is claimed away from Gaussian posteriors."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (200, 1)).astype(np.float32)
    y = np.tanh(1.5 * x[:, 0]) + 0.2 * rng.normal(size=200)
    model = credo.Model(credo.networks.mlp([3], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.2))
    exact = credo.fit(jax.random.key(0), model, (x, y), credo.methods.NUTS(chains=4), steps=2000)
    method = CLASSES[name](chains=8)
    fit = credo.fit(jax.random.key(1), model, (x, y), method, steps=200_000, thin=100, batch_size=50)
    places = np.linspace(-2, 2, 21, dtype=np.float32)[:, None]
    a, b = (credo.predict(jax.random.key(2), f, places, num_samples=4000) for f in (exact, fit))
    spread = np.sqrt(a.epistemic)
    assert np.abs((b.mean - a.mean) / spread).mean() < 0.25
    assert np.abs(np.sqrt(b.epistemic) / spread - 1).mean() < 0.25
