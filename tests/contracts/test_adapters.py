"""Registry × adapters: a user's own network runs under every method, predicts, and is never changed in place."""

import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
import registered
from credo.errors import Refusal
from credo.methods.combine import stages
from credo.registry import ROWS

X = np.linspace(-2, 2, 64).astype(np.float32)[:, None] * np.array([[1.0, -0.5]], np.float32)
Y = np.sin(2 * X[:, 0])
LABELS = (X[:, 0] > 0).astype(np.int32) + (X[:, 0] > 1)


class NnxNet(nnx.Module):
    def __init__(self, outputs=1, *, rngs):
        self.inner = nnx.Linear(2, 6, rngs=rngs)
        self.norm = nnx.LayerNorm(6, rngs=rngs)
        self.outer = nnx.Linear(6, outputs, rngs=rngs)

    def __call__(self, x):
        return self.outer(jnp.tanh(self.norm(self.inner(x))))


class LinenNet(nn.Module):
    outputs: int = 1

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.outputs)(jnp.tanh(nn.Dense(6)(x)))


def mlp_init(key, inputs):
    a, b = jax.random.split(key)
    return {"w": jax.random.normal(a, (inputs.shape[-1], 6)), "v": jax.random.normal(b, (6, 1)) / 3}


NETWORKS = {
    "mlp": lambda: credo.networks.mlp([6], activation="tanh"),
    "nnx": lambda: credo.from_flax(lambda rngs: NnxNet(rngs=rngs)),
    "linen": lambda: credo.from_linen(LinenNet()),
    "equinox": lambda: credo.from_equinox(lambda key: eqx.nn.MLP(2, 1, 6, 1, activation=jnp.tanh, key=key)),
    "functions": lambda: credo.from_functions(init=mlp_init, apply=lambda p, x: jnp.tanh(x @ p["w"]) @ p["v"]),
}


REFUSED = {"nodes": "sum of nodes", "wide": "infinite"}  # the perceptron above has tanh, which has no known limit


MOST = {"warmup": 40, "prior_draws": 100}  # of other settings at most 5; a covariance of functions needs its draws


def small(row):
    return row.load()(**{name: min(value, MOST.get(name, 5)) for name, value in row.quick_settings().items()})


def brief(row, phases):
    """One stage of at most so many phases on any network: few programs to compile."""
    parts = stages(small(row))
    return row.networks == "any" and len(parts) == 1 and len(parts[0].phases(64, 5)) <= phases


def pairs(names, refused, phases):
    """Every method with every name in `make test-full`; `make test` has each name once, with brief methods from all
    over the registry (every method is in `test_registry.py`), and all that is refused."""
    rows = [j for j, row in enumerate(ROWS) if brief(row, phases)]
    quick = {(i, rows[i * len(rows) // len(names)]) for i in range(len(names))}
    for i, name in enumerate(names):
        for j, row in enumerate(ROWS):
            marks = [] if (i, j) in quick or refused(row, name) else [pytest.mark.full]
            yield pytest.param(row, name, id=f"{row.name}-{name}", marks=marks)


def no_network(row, network):
    return row.networks == "wide" or (row.networks == "nodes" and network != "mlp")


@pytest.mark.parametrize(("row", "network"), list(pairs(NETWORKS, no_network, 2)))
def test_every_method_on_every_kind_of_network(row, network):
    model = credo.Model(NETWORKS[network](), credo.priors.normal(1.0), credo.likelihoods.gaussian())
    if no_network(row, network):
        with pytest.raises(Refusal, match=REFUSED[row.networks]):
            credo.fit(jax.random.key(0), model, (X, Y), small(row), steps=40)
        return
    fit = credo.fit(jax.random.key(0), model, (X, Y), small(row), steps=40)
    assert fit.status.ok
    predictive = credo.predict(jax.random.key(1), fit, X[:5], num_samples=10)
    assert predictive.mean.shape == (5,)
    assert np.isfinite(predictive.std).all()


LIKELIHOODS = registered.cases(Y, np.floor(3 + 2 * Y), LABELS > 0, LABELS) | {
    "gaussian": (credo.likelihoods.gaussian(0.1), Y),
    "gaussian_inferred": (credo.likelihoods.gaussian("inferred"), Y),
    "multi_output": (credo.likelihoods.gaussian(), np.stack([Y, -Y], 1)),
}
NORMAL = ("gaussian", "gaussian_inferred", "multi_output", "bernoulli")  # the last given Pólya-gamma variates


def no_likelihood(row, name):
    return row.likelihoods == "normal" and name not in NORMAL


@pytest.mark.parametrize(("row", "name"), list(pairs(LIKELIHOODS, no_likelihood, 1)))
def test_every_method_on_every_likelihood(row, name):
    likelihood, targets = LIKELIHOODS[name]
    model = credo.Model(credo.networks.mlp([4], activation="tanh"), credo.priors.normal(1.0), likelihood)
    if row.networks == "wide":
        model = credo.Model(credo.networks.mlp([4], activation="erf"), credo.priors.fan_in_normal(1.0), likelihood)
    if no_likelihood(row, name):
        with pytest.raises(Refusal, match="closed form"):
            credo.fit(jax.random.key(0), model, (X, targets), small(row), steps=40)
        return
    fit = credo.fit(jax.random.key(0), model, (X, targets), small(row), steps=40)
    predictive = credo.predict(jax.random.key(1), fit, X[:7], num_samples=6)
    assert fit.status.ok
    assert np.isfinite(predictive.log_prob(targets[:7])).all()
    assert predictive.mean.shape[0] == 7
    if predictive.kind != "classes":
        low, high = predictive.interval(0.9)
        assert (low <= high).all()
        assert low.shape == targets[:7].shape


def starts():
    """Every method; `make test` has the first of each kind of start."""
    seen, found = set(), []
    for row in ROWS:
        kind = (small(row).members > 1, small(row).several_starts)
        found.append(pytest.param(row, id=row.name, marks=[pytest.mark.full] if kind in seen else []))
        seen.add(kind)
    return found


@pytest.mark.parametrize("row", starts())
def test_a_given_instance_starts_every_method_that_can_use_it(row):
    instance = NnxNet(rngs=nnx.Rngs(0))
    before = np.array(instance.inner.kernel[...])
    model = credo.Model(credo.from_flax(instance), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    method = small(row)
    if row.networks in REFUSED:
        with pytest.raises(Refusal, match=REFUSED[row.networks]):
            credo.fit(jax.random.key(0), model, (X, Y), method, steps=5)
    elif method.members > 1 and method.several_starts:
        with pytest.raises(Refusal, match="different start"):
            credo.fit(jax.random.key(0), model, (X, Y), method, steps=5)
    else:
        assert credo.fit(jax.random.key(0), model, (X, Y), method, steps=5).status.ok
    np.testing.assert_array_equal(before, instance.inner.kernel[...])


class Normed(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(2, 6, rngs=rngs)
        self.norm = nnx.BatchNorm(6, rngs=rngs)
        self.outer = nnx.Linear(6, 1, rngs=rngs)

    def __call__(self, x):
        return self.outer(jnp.tanh(self.norm(self.inner(x))))


def test_batch_statistics_are_learned_by_map_and_frozen_by_samplers():
    model = credo.Model(
        credo.from_flax(lambda rngs: Normed(rngs)), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1)
    )
    best = credo.fit(jax.random.key(0), model, (X, Y), "map", steps=200, batch_size=16)
    fresh = model.init(jax.random.key(0), best.loop.data()).state
    learned = jax.tree.map(lambda x: x[0], best.posterior.state)
    moved = jax.tree.map(lambda a, b: float(np.abs(a - b).max()), learned, fresh)
    assert max(jax.tree.leaves(moved)) > 0.01
    chain = credo.fit(
        jax.random.key(1), model, (X, Y), credo.methods.HMC(chains=1, warmup=10, num_steps=3), steps=10, start=best
    )
    same = jax.tree.map(lambda a, b: np.array_equal(a[0], b), chain.posterior.state, learned)
    assert all(jax.tree.leaves(same))
