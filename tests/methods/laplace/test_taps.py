"""Taps: inputs and backward signals of dense layers, in every kind of network."""

import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.network import Variables
from credo.errors import InputError, Refusal
from credo.methods.laplace.curvature import find_taps, output_layer, require_all, tapped

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3)).astype(np.float32)
W1, B1, W2, B2 = (RNG.normal(size=s).astype(np.float32) for s in ((5, 3), (5,), (2, 5), (2,)))


class NnxNet(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(3, 5, rngs=rngs)
        self.outer = nnx.Linear(5, 2, rngs=rngs)

    def __call__(self, x):
        return self.outer(jax.nn.relu(self.inner(x)))


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2, name="outer")(nn.relu(nn.Dense(5, name="inner")(x)))


def plain_apply(p, x):
    return (p["v"] @ jax.nn.relu(x @ p["w"] + p["b"]).T).T + p["c"]


def jitted_apply(p, x):
    layer = jax.jit(lambda w, b, a: a @ w + b)
    hidden = jax.checkpoint(lambda w, b, a: jax.nn.relu(layer(w, b, a)))(p["w"], p["b"], x)
    return layer(p["v"].T, p["c"], hidden)


def functions(apply):
    return credo.from_functions(init=lambda key, inputs: {}, apply=apply)


# network, weights in its own layout, and (first kernel, first bias, last kernel, last bias)
CASES = {
    "mlp": (
        credo.networks.mlp([5]),
        {"hidden_0": {"kernel": W1, "bias": B1}, "output": {"kernel": W2, "bias": B2}},
        ("hidden_0/kernel", "hidden_0/bias", "output/kernel", "output/bias"),
    ),
    "nnx": (
        credo.from_flax(lambda rngs: NnxNet(rngs)),
        {"inner": {"kernel": W1.T, "bias": B1}, "outer": {"kernel": W2.T, "bias": B2}},
        ("inner/kernel", "inner/bias", "outer/kernel", "outer/bias"),
    ),
    "linen": (
        credo.from_linen(LinenNet()),
        {"inner": {"kernel": W1.T, "bias": B1}, "outer": {"kernel": W2.T, "bias": B2}},
        ("inner/kernel", "inner/bias", "outer/kernel", "outer/bias"),
    ),
    "equinox": (
        credo.from_equinox(lambda key: eqx.nn.MLP(3, 2, 5, 1, key=key)),
        {"layers": {"0": {"weight": W1, "bias": B1}, "1": {"weight": W2, "bias": B2}}},
        ("layers/0/weight", "layers/0/bias", "layers/1/weight", "layers/1/bias"),
    ),
    "functions": (functions(plain_apply), {"w": W1.T, "b": B1, "v": W2, "c": B2}, ("w", "b", "v", "c")),
    "jitted": (functions(jitted_apply), {"w": W1.T, "b": B1, "v": W2, "c": B2}, ("w", "b", "v", "c")),
}


def case(network, params, likelihood=None):
    model = credo.Model(network, credo.priors.normal(1.0), likelihood or credo.likelihoods.gaussian(1.0))
    network = jax.tree.map(jnp.asarray, params)
    return model, Variables({"network": network, "likelihood": {}, "prior": {}}, {})


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_network_gives_the_same_taps(name):
    network, params, (w, b, v, c) = CASES[name]
    model, variables = case(network, params)
    taps = find_taps(model, variables, X)
    assert not taps.problems
    assert {(layer.kernel, layer.bias) for layer in taps.layers} == {(w, b), (v, c)}
    assert taps.last.kernel == v
    run = tapped(model, variables, jnp.asarray(X), taps.layers)
    hidden = np.maximum(X @ W1.T + B1, 0)
    np.testing.assert_allclose(run.outputs, hidden @ W2.T + B2, rtol=1e-5)
    np.testing.assert_allclose(run.inputs[w], X)
    np.testing.assert_allclose(run.inputs[v], hidden, rtol=1e-5)
    u = RNG.normal(size=(7, 2)).astype(np.float32)
    g = run.pull(jnp.asarray(u))
    np.testing.assert_allclose(g[v], u, rtol=1e-6)
    np.testing.assert_allclose(g[w], (u @ W2) * (hidden > 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["nnx", "functions"])
def test_one_row_and_one_output(name):
    network = credo.from_functions(init=lambda k, x: {}, apply=lambda p, x: jnp.tanh(x @ p["w"])[:, :1] + 0 * x[:, :1])
    model, variables = case(network, {"w": W1.T})
    taps = find_taps(model, variables, X)
    assert [layer.kernel for layer in taps.layers] == ["w"]
    assert taps.last is None
    network, params, names = CASES[name]
    model, variables = case(network, params)
    one = tapped(model, variables, jnp.asarray(X[:1]), find_taps(model, variables, X[:1]).layers)
    np.testing.assert_allclose(one.inputs[names[0]], X[:1])


def test_a_squeezed_kernel_of_one_output_is_a_layer():
    network = credo.from_functions(init=lambda k, x: {}, apply=lambda p, x: x @ p["w"][:, 0] + p["b"])
    model, variables = case(network, {"w": W1.T[:, :1], "b": B1[:1]})
    taps = find_taps(model, variables, X)
    assert taps.last.paths == ("w", "b")
    run = tapped(model, variables, jnp.asarray(X), taps.layers)
    np.testing.assert_allclose(run.pull(jnp.ones((7, 1)))["w"], np.ones((7, 1)))


PROBLEMS = {
    "twice": (lambda p, x: jnp.tanh(x @ p["w"]) @ p["w"].T, {"w": W1.T}, "used twice"),
    "scale": (lambda p, x: (x @ p["w"]) * p["s"], {"w": W1.T, "s": B1}, "'s'"),
    "embedding": (lambda p, x: p["e"][x[:, 0].astype(int)] @ p["w"], {"e": W1, "w": W1.T}, "'e', .*an embedding"),
    "convolution": (
        lambda p, x: jax.lax.conv_general_dilated(x[:, None], p["k"], (1,), "VALID")[:, 0],
        {"k": W1[:1, None, :2]}, "'k', because.*a convolution",
    ),
    "places": (lambda p, x: jnp.tanh(x[:, :, None] @ p["w"]).sum(1), {"w": B1[None]}, "one vector for each row"),
    "late": (lambda p, x: jnp.tanh(x @ p["w"]) + p["b"], {"w": W1.T, "b": B1}, "'b'.*something else"),
    "two": (
        lambda p, x: jnp.tanh((x @ p["w"]) * p["s"]) + p["b"],
        {"w": W1.T, "s": B1, "b": B1}, "'[bs]'.*, because .*; nor for '[bs]', because|'b', 's', because",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_layer_without_a_rule_is_named(name):
    apply, params, match = PROBLEMS[name]
    model, variables = case(functions(apply), params)
    taps = find_taps(model, variables, X)
    with pytest.raises(Refusal, match=match):
        require_all(taps, "kfac")


def test_the_output_layer_is_found_or_refused():
    network, params, names = CASES["functions"]
    model, variables = case(network, params)
    taps = find_taps(model, variables, X)
    assert output_layer(taps).kernel == names[2]
    assert output_layer(taps, "v").kernel == names[2]
    with pytest.raises(Refusal, match="must be the last one, 'v'"):
        output_layer(taps, "w")
    with pytest.raises(InputError, match="the last one is 'v'"):
        output_layer(taps, "nothing")
    ends = functions(lambda p, x: jnp.tanh(x @ p["w"]))
    with pytest.raises(Refusal, match="not those of a dense layer"):
        output_layer(find_taps(*case(ends, {"w": W1.T}), X))


def test_held_parameters_are_no_layers_of_interest():
    network, params, _ = CASES["mlp"]
    model, variables = case(network, params)
    held = model.frozen(variables.params, "hidden_0/*")
    free = Variables(held.free(variables.params), {})
    taps = find_taps(held, free, X)
    assert [layer.kernel for layer in taps.layers] == ["output/kernel"]
    assert not taps.problems
    run = tapped(held, free, jnp.asarray(X), taps.layers)
    np.testing.assert_allclose(run.inputs["output/kernel"], np.maximum(X @ W1.T + B1, 0), rtol=1e-5)
