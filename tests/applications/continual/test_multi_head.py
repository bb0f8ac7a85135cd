"""One trunk and several heads: the same numbers as the network with that head's arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.network import Variables, is_info
from credo.core.tree import paths
from credo.errors import InputError
from credo.networks import mlp, multi_head

INNER = mlp([5], "tanh")
NETWORK = multi_head(INNER, 3)
X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
ROWS = {"inputs": X, "head": np.arange(12, dtype=np.int32)[:, None] % 3}
VARIABLES = NETWORK.init(jax.random.key(0), ROWS, 2)


def alone(function):
    """Each row's output by the inner network with the arrays of that row's head."""
    found = np.zeros((12, 2))
    for t in range(3):
        params = {"hidden_0": VARIABLES.params["trunk"]["hidden_0"], "output": VARIABLES.params[f"head_{t}"]}
        own = ROWS["head"][:, 0] == t
        found[own] = np.asarray(function(params))[own]
    return found


def test_paths_and_facts():
    expected = {f"head_{t}/{kind}" for t in range(3) for kind in ("bias", "kernel")}
    expected |= {"trunk/hidden_0/bias", "trunk/hidden_0/kernel"}
    assert set(paths(VARIABLES.params)) == expected
    info = NETWORK.info(VARIABLES.params)
    infos = {i.path: i for i in jax.tree.leaves(info, is_leaf=is_info)}
    assert set(infos) == expected
    assert infos["head_1/kernel"].fan_in == 5
    assert infos["trunk/hidden_0/kernel"].input_axis == 1
    assert jax.tree.structure(info, is_leaf=is_info) == jax.tree.structure(VARIABLES.params)


def test_outputs_are_those_of_each_rows_head():
    outputs, state = NETWORK.apply(VARIABLES, ROWS)
    np.testing.assert_allclose(outputs, alone(lambda p: INNER.apply(Variables(p, {}), X)[0]), rtol=1e-5, atol=1e-6)
    assert state == {}


def test_draws_of_pre_activations_and_flipout():
    key = jax.random.key(3)
    std = jax.tree.map(lambda x: jnp.full_like(x, 0.3), VARIABLES.params)
    inner_std = {name: {"kernel": jnp.full((n, m), 0.3), "bias": jnp.full(n, 0.3)} for name, n, m in
                 (("hidden_0", 5, 4), ("output", 2, 5))}  # fmt: skip
    for name in ("apply_local", "apply_flipout"):
        inner = jax.jit(getattr(INNER, name))
        found = jax.jit(getattr(NETWORK, name))(VARIABLES.params, std, ROWS, key)
        np.testing.assert_allclose(found, alone(lambda p: inner(p, inner_std, X, key)), rtol=1e-4, atol=1e-5)  # noqa: B023


def test_taps_move_the_outputs_of_their_own_rows():
    shifts = {path: jnp.zeros((12, 5 if "trunk" in path else 2)) for path, *_ in NETWORK.dense_layers()}
    outputs, seen = NETWORK.apply_tapped(VARIABLES.params, ROWS, shifts)
    np.testing.assert_allclose(outputs, NETWORK.apply(VARIABLES, ROWS)[0], rtol=1e-5, atol=1e-6)
    assert seen["head_2/kernel"].shape == (12, 5)
    moved, _ = NETWORK.apply_tapped(VARIABLES.params, ROWS, shifts | {"head_1/kernel": jnp.ones((12, 2))})
    change = np.asarray(moved - outputs)
    np.testing.assert_allclose(change, (ROWS["head"] == 1) * np.ones(2), atol=1e-5)


def test_heads_on_a_network_of_plain_functions():
    network = credo.from_functions(
        init=lambda key, inputs, num_outputs: {
            "body": jax.random.normal(key, (4, 3)), "top": jax.random.normal(key, (3, num_outputs))
        },
        apply=lambda params, inputs: jnp.tanh(inputs @ params["body"]) @ params["top"],
    )  # fmt: skip
    several = multi_head(network, 2, select="top")
    variables = several.init(jax.random.key(0), ROWS, 2)
    assert paths(variables.params) == ["head_0/top", "head_1/top", "trunk/body"]
    rows = {"inputs": X, "head": np.ones((12, 1), np.int32)}
    expected = np.tanh(X @ variables.params["trunk"]["body"]) @ variables.params["head_1"]["top"]
    np.testing.assert_allclose(several.apply(variables, rows)[0], expected, rtol=1e-4, atol=1e-5)
    assert not hasattr(several, "apply_local")


def test_sentences():
    with pytest.raises(InputError, match="num_heads"):
        multi_head(INNER, 0)
    with pytest.raises(InputError, match="must match some arrays"):
        multi_head(INNER, 2, select="nowhere").init(jax.random.key(0), ROWS, 2)
