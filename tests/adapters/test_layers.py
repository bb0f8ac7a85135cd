"""Facts about the parameters of each library's layers, and what is special to a library."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from credo import adapters
from credo.core.network import is_info
from credo.errors import InputError

KEY = jax.random.key(0)
IMAGES = jax.random.normal(jax.random.key(3), (4, 8, 8, 2))
TOKENS = jnp.arange(12).reshape(4, 3)
SERIES = jax.random.normal(jax.random.key(4), (4, 7, 3))


def facts(network, inputs, num_outputs):
    variables = jax.eval_shape(lambda x: network.init(KEY, x, num_outputs), inputs)
    found = jax.tree.leaves(network.info(variables.params), is_leaf=is_info)
    assert [i.shape for i in found] == [x.shape for x in jax.tree.leaves(variables.params)]
    assert jax.eval_shape(network.apply, variables, inputs)[0].shape == (len(inputs), num_outputs)
    return {i.path: (i.kind, i.fan_in, i.fan_out) for i in found}


class FlaxImages(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([
            nnx.Conv(2, 6, (3, 5), rngs=rngs),
            nnx.Conv(6, 4, (3, 3), feature_group_count=2, rngs=rngs),
            nnx.ConvTranspose(4, 6, (2, 2), rngs=rngs),
        ])  # fmt: skip
        self.norms = nnx.List([nnx.GroupNorm(6, num_groups=2, rngs=rngs), nnx.LayerNorm(6, rngs=rngs)])
        self.output = nnx.Linear(6, 3, rngs=rngs)
        self.temperature = nnx.Param(jnp.ones(()))

    def __call__(self, x):
        for layer in (*self.layers, *self.norms):
            x = layer(x)
        return self.output(x.mean((1, 2))) * self.temperature


class LinenImages(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(6, (3, 5))(x)
        x = nn.Conv(4, (3, 3), feature_group_count=2)(x)
        x = nn.ConvTranspose(6, (2, 2))(x)
        x = nn.LayerNorm()(nn.GroupNorm(num_groups=2)(x))
        temperature = self.param("temperature", nn.initializers.ones, ())
        return nn.Dense(3)(x.mean((1, 2))) * temperature


class EquinoxImages(eqx.Module):
    layers: list
    norm: eqx.nn.GroupNorm
    output: eqx.nn.Linear
    temperature: jax.Array

    def __init__(self, *, key):
        keys = jax.random.split(key, 4)
        self.layers = [
            eqx.nn.Conv2d(2, 6, (3, 5), padding="SAME", key=keys[0]),
            eqx.nn.Conv2d(6, 4, 3, groups=2, key=keys[1]),
            eqx.nn.ConvTranspose2d(4, 6, 2, key=keys[2]),
        ]
        self.norm = eqx.nn.GroupNorm(2, 6)
        self.output = eqx.nn.Linear(6, 3, key=keys[3])
        self.temperature = jnp.ones(())

    def __call__(self, x):
        x = jnp.moveaxis(x, -1, 0)
        for layer in (*self.layers, self.norm):
            x = layer(x)
        return self.output(x.mean((1, 2))) * self.temperature


CONVS = [("kernel", 30, 90), ("kernel", 27, 18), ("kernel", 16, 24)]


def check_images(found, names, norms, weight, output):
    for name, (_, fan_in, fan_out) in zip(names, CONVS):
        assert found[f"{name}/{weight}"] == ("kernel", fan_in, fan_out)
        assert found[f"{name}/bias"] == ("bias", fan_in, fan_out)
    for norm in norms:
        assert found[f"{norm}/{'scale' if weight == 'kernel' else weight}"] == ("scale", None, None)
        assert found[f"{norm}/bias"] == ("bias", None, None)
    assert found[f"{output}/{weight}"] == ("kernel", 6, 3)
    assert found["temperature"] == ("other", None, None)


def test_nnx_images():
    found = facts(adapters.from_flax(FlaxImages), IMAGES, 3)
    check_images(found, ["layers/0", "layers/1", "layers/2"], ["norms/0", "norms/1"], "kernel", "output")


def test_linen_images():
    found = facts(adapters.from_linen(LinenImages()), IMAGES, 3)
    names = ["Conv_0", "Conv_1", "ConvTranspose_0"]
    check_images(found, names, ["GroupNorm_0", "LayerNorm_0"], "kernel", "Dense_0")


def test_equinox_images():
    found = facts(adapters.from_equinox(EquinoxImages), IMAGES, 3)
    check_images(found, ["layers/0", "layers/1", "layers/2"], ["norm"], "weight", "output")


class FlaxTokens(nnx.Module):
    def __init__(self, *, rngs):
        self.embed = nnx.Embed(12, 6, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 6, decode=False, rngs=rngs)
        self.product = nnx.Einsum("bti,io->bto", (6, 5), (5,), rngs=rngs)
        self.output = nnx.Linear(5, 2, rngs=rngs)

    def __call__(self, x):
        return self.output(self.product(self.attention(self.embed(x))).mean(1))


class LinenTokens(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Embed(12, 6, name="embed")(x)
        x = nn.MultiHeadDotProductAttention(2, name="attention")(x)
        x = nn.Einsum((6, 5), "bti,io->bto", name="product")(x)
        return nn.Dense(2, name="output")(x.mean(1))


class EquinoxTokens(eqx.Module):
    embed: eqx.nn.Embedding
    attention: eqx.nn.MultiheadAttention
    output: eqx.nn.MLP

    def __init__(self, *, key):
        keys = jax.random.split(key, 3)
        self.embed = eqx.nn.Embedding(12, 6, key=keys[0])
        self.attention = eqx.nn.MultiheadAttention(2, 6, key=keys[1])
        self.output = eqx.nn.MLP(6, 2, 5, 1, key=keys[2])

    def __call__(self, x):
        x = jax.vmap(self.embed)(x)
        return self.output(self.attention(x, x, x).mean(0))


@pytest.mark.parametrize("network", [adapters.from_flax(FlaxTokens), adapters.from_linen(LinenTokens())])
def test_flax_tokens(network):
    found = facts(network, TOKENS, 2)
    assert found["embed/embedding"] == ("embedding", 1, 6)
    assert found["attention/query/kernel"] == ("kernel", 6, 6)
    assert found["attention/query/bias"] == ("bias", 6, 6)
    assert found["attention/out/kernel"] == ("kernel", 6, 6)
    assert found["product/kernel"] == ("kernel", 6, 5)
    assert found["product/bias"] == ("bias", 6, 5)


def test_equinox_tokens():
    found = facts(adapters.from_equinox(EquinoxTokens), TOKENS, 2)
    assert found["embed/weight"] == ("embedding", 1, 6)
    assert found["attention/query_proj/weight"] == ("kernel", 6, 6)
    assert found["output/layers/0/weight"] == ("kernel", 6, 5)
    assert found["output/layers/1/bias"] == ("bias", 5, 2)


class FlaxSeries(nnx.Module):
    def __init__(self, *, rngs):
        self.cells = nnx.List([nnx.RNN(c(3, 3, rngs=rngs)) for c in (nnx.GRUCell, nnx.OptimizedLSTMCell)])
        self.last = nnx.RNN(nnx.LSTMCell(3, 5, rngs=rngs))
        self.output = nnx.Linear(5, 1, rngs=rngs)

    def __call__(self, x):
        for cell in self.cells:
            x = cell(x)
        return self.output(self.last(x)[:, -1])


class LinenSeries(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.RNN(nn.GRUCell(5, name="gru"))(x)
        x = nn.RNN(nn.OptimizedLSTMCell(4, name="lstm"))(x)
        return nn.Dense(1)(x[:, -1])


class EquinoxSeries(eqx.Module):
    cell: eqx.nn.GRUCell
    output: eqx.nn.Linear

    def __init__(self, *, key):
        one, two = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(3, 5, key=one)
        self.output = eqx.nn.Linear(5, 1, key=two)

    def __call__(self, x):
        last, _ = jax.lax.scan(lambda h, row: (self.cell(row, h), None), jnp.zeros(5), x)
        return self.output(last)


def test_nnx_recurrent():
    found = facts(adapters.from_flax(FlaxSeries), SERIES, 1)
    assert all(kind in ("kernel", "bias") and fan_in in (3, 5) for kind, fan_in, _ in found.values())


def test_linen_recurrent():
    found = facts(adapters.from_linen(LinenSeries()), SERIES, 1)
    assert found["gru/ir/kernel"] == ("kernel", 3, 5)
    assert found["gru/hn/kernel"] == ("kernel", 5, 5)
    assert found["lstm/ii/kernel"] == ("kernel", 5, 4)
    assert found["lstm/hf/bias"] == ("bias", 4, 4)


def test_equinox_recurrent():
    found = facts(adapters.from_equinox(EquinoxSeries), SERIES, 1)
    assert found["cell/weight_ih"] == ("kernel", 3, 5)
    assert found["cell/weight_hh"] == ("kernel", 5, 5)
    assert found["cell/bias"] == ("bias", 8, 5)


class WithTable(nnx.Module):
    """An array as a plain attribute is a leaf of a real module and a static attribute of a traced one."""

    def __init__(self, *, rngs):
        self.table = jnp.arange(3.0)
        self.layer = nnx.Linear(3, 1, rngs=rngs)

    def __call__(self, x):
        return self.layer(x + self.table)


def test_nnx_keeps_plain_arrays_as_state():
    network, x = adapters.from_flax(WithTable), jnp.ones((2, 3))
    traced, real = jax.jit(lambda k: network.init(k, x, 1))(KEY), network.init(KEY, x, 1)
    assert list(traced.params) == ["layer"]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), traced, real)
    np.testing.assert_allclose(
        jax.jit(lambda n, v: n.apply(v, x)[0])(network, traced),
        (x + jnp.arange(3.0)) @ traced.params["layer"]["kernel"] + traced.params["layer"]["bias"],
        rtol=1e-5,
    )


class Flagged(nnx.Module):
    def __init__(self, *, rngs):
        self.layer = nnx.Linear(3, 1, rngs=rngs)
        self.dropout = nnx.Dropout(0.5)

    def __call__(self, x, train, *, rngs=None):
        return self.dropout(self.layer(x), deterministic=not train, rngs=rngs)


def test_nnx_call_with_switches():
    network, x = adapters.from_flax(Flagged), jnp.ones((8, 3))
    variables = network.init(KEY, x, 1)
    noisy = network.apply(variables, x, key=KEY, train=True)[0]
    assert (noisy == 0).any()
    assert (noisy != 0).any()
    assert (network.apply(variables, x)[0] != 0).all()


def test_the_two_flax_worlds_are_told_apart():
    with pytest.raises(InputError, match="take from_linen"):
        adapters.from_flax(nn.Dense(1))
    with pytest.raises(InputError, match="take from_flax"):
        adapters.from_linen(nnx.Linear(1, 1, rngs=nnx.Rngs(0)))
    with pytest.raises(InputError, match=r"must return an nnx.Module, got int"):
        adapters.from_flax(lambda rngs: 3)


def test_linen_modules_with_lists_are_one_program():
    def build():
        return adapters.from_linen(nn.Sequential([nn.Dense(3), nn.tanh, nn.Dense(1)]))

    assert build() == build()
    assert hash(build().module) == hash(build().module)
    found = facts(build(), jnp.ones((2, 4)), 1)
    assert found["layers_0/kernel"] == ("kernel", 4, 3)


def test_linen_checks_given_variables():
    good = nn.Dense(2).init(KEY, jnp.ones((1, 3)))
    assert adapters.from_linen(nn.Dense(2), good["params"]).init(KEY, jnp.ones((1, 3)), 2).state == {}
    with pytest.raises(InputError, match=r"'kernel' has shape \(3, 2\) in place of \(4, 2\)"):
        adapters.from_linen(nn.Dense(2), good).init(KEY, jnp.ones((1, 4)), 2)
    with pytest.raises(InputError, match="has seen inputs"):
        adapters.from_linen(nn.Dense(17)).info(good["params"])


def test_equinox_pairs_and_lost_states():
    def build(key):
        return eqx.nn.Sequential([eqx.nn.BatchNorm(3, "batch", mode="ema"), eqx.nn.Linear(3, 1, key=key)])

    x = jax.random.normal(KEY, (5, 3))
    module, state = eqx.nn.make_with_state(build)(KEY)
    own, _ = jax.vmap(module, (0, None), (0, None), axis_name="batch")(x, state)
    module, state = eqx.nn.make_with_state(build)(KEY)
    for given in ((module, state), build(KEY), build):
        network = adapters.from_equinox(given)
        assert network.pretrained is (given is not build)
        variables = network.init(KEY, x, 1)
        np.testing.assert_allclose(network.apply(variables, x, train=True)[0], own, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"lost its state"):
        adapters.from_equinox(module)
    with pytest.raises(InputError, match=r"expects an equinox.Module, got int"):
        adapters.from_equinox(lambda key: 3)


def test_functions_say_their_facts():
    def init(key, inputs, num_outputs):
        return {
            "layer": {"w": jax.random.normal(key, (inputs.shape[-1], num_outputs))},
            "shift": jnp.zeros(()),
        }

    def apply(params, inputs, key=None, train=False):
        noise = 0.0 if key is None else jax.random.normal(key)
        return inputs @ params["layer"]["w"] + params["shift"] + noise

    x = jnp.ones((2, 3))
    network = adapters.from_functions(init, apply)
    assert facts(network, x, 4) == {"layer/w": ("other", None, None), "shift": ("other", None, None)}
    network = adapters.from_functions(init, apply, {"*/w": ("kernel", 3, 4), "*": ("bias", 3, 4)})
    assert facts(network, x, 4) == {"layer/w": ("kernel", 3, 4), "shift": ("bias", 3, 4)}
    network = adapters.from_functions(init, apply, lambda path, shape: ("kernel", *(shape or (1, 1))))
    assert facts(network, x, 4)["layer/w"] == ("kernel", 3, 4)
    variables = network.init(KEY, x, 4)
    quiet = network.apply(variables, x)[0]
    np.testing.assert_array_equal(network.apply(variables, x, key=KEY)[0], quiet)
    assert (network.apply(variables, x, key=KEY, train=True)[0] != quiet).all()


def test_functions_are_checked():
    with pytest.raises(InputError, match="expects a function for init"):
        adapters.from_functions(3, lambda p, x: x)
    with pytest.raises(InputError, match="must be \\(kind, fan_in, fan_out\\)"):
        adapters.from_functions(lambda k, x: {}, lambda p, x: x, {"*": ("weights", 1, 1)})
