"""What every adapter must do, for the same small networks written in each library."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from credo import adapters, likelihoods, priors
from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Network, Variables, is_info
from credo.core.tree import paths
from credo.errors import InputError
from credo.networks import mlp

INPUTS = jax.random.normal(jax.random.key(9), (6, 3))
KEY = jax.random.key(0)


class FlaxNet(nnx.Module):
    def __init__(self, outputs=2, rate=0.0, norm=False, *, rngs):
        self.hidden = nnx.Linear(3, 5, rngs=rngs)
        self.norm = nnx.BatchNorm(5, rngs=rngs) if norm else None
        self.dropout = nnx.Dropout(rate, rngs=rngs)
        self.output = nnx.Linear(5, outputs, rngs=rngs)

    def __call__(self, x):
        x = jnp.tanh(self.hidden(x))
        x = x if self.norm is None else self.norm(x)
        return self.output(self.dropout(x))


class LinenNet(nn.Module):
    outputs: int = 2
    rate: float = 0.0
    norm: bool = False

    @nn.compact
    def __call__(self, x, train=False):
        x = jnp.tanh(nn.Dense(5, name="hidden")(x))
        x = nn.BatchNorm(use_running_average=not train, name="norm")(x) if self.norm else x
        x = nn.Dropout(self.rate, deterministic=not train)(x)
        return nn.Dense(self.outputs, name="output")(x)


class EquinoxNet(eqx.Module):
    hidden: eqx.nn.Linear
    norm: eqx.nn.BatchNorm | None
    dropout: eqx.nn.Dropout
    output: eqx.nn.Linear

    def __init__(self, outputs=2, rate=0.0, norm=False, *, key):
        one, two = jax.random.split(key)
        self.hidden = eqx.nn.Linear(3, 5, key=one)
        self.norm = eqx.nn.BatchNorm(5, axis_name="rows", mode="batch") if norm else None
        self.dropout = eqx.nn.Dropout(rate)
        self.output = eqx.nn.Linear(5, outputs, key=two)

    def __call__(self, x, state=None, *, key=None):
        x = jnp.tanh(self.hidden(x))
        if self.norm is None:
            return self.output(self.dropout(x, key=key))
        x, state = self.norm(x, state)
        return self.output(self.dropout(x, key=key)), state


def functional_init(key, inputs):
    one, two = jax.random.split(key)
    return {"w": jax.random.normal(one, (inputs.shape[-1], 5)), "v": jax.random.normal(two, (5, 2))}


def functional_apply(params, inputs):
    return jnp.tanh(inputs @ params["w"]) @ params["v"]


def flax_own(module, inputs):
    module.eval()
    return module(inputs)


KITS = {
    "nnx": SimpleNamespace(
        build=lambda **o: adapters.from_flax(lambda rngs: FlaxNet(**o, rngs=rngs)),
        kernel="hidden/kernel",
        arrays={
            "hidden/kernel": ("kernel", 3, 5, (3, 5)),
            "hidden/bias": ("bias", 3, 5, (5,)),
            "output/kernel": ("kernel", 5, 2, (5, 2)),
            "output/bias": ("bias", 5, 2, (2,)),
        },
        norm={"norm/scale": "scale", "norm/bias": "bias"},
    ),
    "linen": SimpleNamespace(
        build=lambda **o: adapters.from_linen(LinenNet(**o)),
        kernel="hidden/kernel",
        arrays={
            "hidden/kernel": ("kernel", 3, 5, (3, 5)),
            "hidden/bias": ("bias", 3, 5, (5,)),
            "output/kernel": ("kernel", 5, 2, (5, 2)),
            "output/bias": ("bias", 5, 2, (2,)),
        },
        norm={"norm/scale": "scale", "norm/bias": "bias"},
    ),
    "equinox": SimpleNamespace(
        build=lambda **o: adapters.from_equinox(lambda key: EquinoxNet(**o, key=key)),
        kernel="hidden/weight",
        arrays={
            "hidden/weight": ("kernel", 3, 5, (5, 3)),
            "hidden/bias": ("bias", 3, 5, (5,)),
            "output/weight": ("kernel", 5, 2, (2, 5)),
            "output/bias": ("bias", 5, 2, (2,)),
        },
        norm={"norm/weight": "scale", "norm/bias": "bias"},
    ),
    "functions": SimpleNamespace(
        build=lambda: adapters.from_functions(
            functional_init, functional_apply, {"w": ("kernel", 3, 5), "v": ("kernel", 5, 2)}
        ),
        kernel="w",
        arrays={"w": ("kernel", 3, 5, (3, 5)), "v": ("kernel", 5, 2, (5, 2))},
    ),
}
LIBRARIES = ["nnx", "linen", "equinox"]


@pytest.fixture(params=KITS)
def kit(request):
    return KITS[request.param]


@pytest.fixture(params=LIBRARIES)
def library(request):
    return KITS[request.param]


def infos(network, variables):
    return {i.path: i for i in jax.tree.leaves(network.info(variables.params), is_leaf=is_info)}


def at(tree, path):
    for name in path.split("/"):
        tree = tree[name]
    return tree


def plain_dicts(tree):
    return isinstance(tree, jax.Array) or (
        type(tree) is dict and all(type(k) is str and plain_dicts(v) for k, v in tree.items())
    )


def test_params_are_plain_and_described(kit):
    network = kit.build()
    assert isinstance(network, Network)
    assert network.pretrained is False
    variables = jax.jit(network.init, static_argnums=2)(KEY, INPUTS, 2)
    assert plain_dicts(variables.params)
    assert plain_dicts(variables.state)
    assert sorted(paths(variables.params)) == sorted(kit.arrays)
    found = {path: (i.kind, i.fan_in, i.fan_out, i.shape) for path, i in infos(network, variables).items()}
    assert found == kit.arrays
    outputs, state = network.apply(variables, INPUTS)
    assert outputs.shape == (6, 2)
    assert jax.tree.structure(state) == jax.tree.structure(variables.state)


def test_every_key_is_another_start(kit):
    network = kit.build()
    keys = jax.random.split(KEY, 3)
    batched = jax.jit(jax.vmap(lambda k: network.init(k, INPUTS, 2)))(keys)
    kernel = at(batched.params, kit.kernel)
    assert len(np.unique(np.asarray(kernel[:, 0, 0]))) == 3
    alone = jax.jit(lambda k: network.init(k, INPUTS, 2))(keys[1])
    np.testing.assert_allclose(kernel[1], at(alone.params, kit.kernel), rtol=1e-5, atol=1e-6)
    outputs, _ = jax.jit(jax.vmap(lambda v: network.apply(v, INPUTS)))(batched)
    np.testing.assert_allclose(outputs[1], network.apply(alone, INPUTS)[0], rtol=1e-4, atol=1e-5)


def test_model_under_jit_with_gradients(kit):
    model = Model(kit.build(), priors.by_path({"*bias": priors.normal(1.0), "*": priors.fan_in_normal(1.0)}),
                  likelihoods.gaussian(noise="learned"))  # fmt: skip
    batch = Batch(INPUTS, jnp.ones((6, 2)), jnp.ones(6), jnp.asarray(6.0))
    variables = jax.jit(lambda m, b: m.init(KEY, b))(model, batch)

    def value(params, m):
        return m.log_joint(Variables(params, variables.state), batch, key=KEY, train=True)[0]

    joint, grads = jax.jit(jax.value_and_grad(value))(variables.params, model)
    assert jnp.isfinite(joint)
    assert all(float(jnp.abs(g).sum()) > 0 for g in jax.tree.leaves(grads))


def test_equal_adapters_share_one_program(kit):
    builds = {
        "functions": lambda: kit.build(),
        "linen": lambda: kit.build(),
        "nnx": lambda: adapters.from_flax(FlaxNet),
        "equinox": lambda: adapters.from_equinox(EquinoxNet),
    }
    build = builds[next(name for name, k in KITS.items() if k is kit)]
    traces = []

    @jax.jit
    def run(network, variables, inputs):
        traces.append(1)
        return network.apply(variables, inputs)[0]

    first, second = build(), build()
    assert first == second
    variables = first.init(KEY, INPUTS, 2)
    a, b = run(first, variables, INPUTS), run(second, variables, INPUTS)
    np.testing.assert_array_equal(a, b)
    assert len(traces) == 1


def test_wrong_number_of_outputs(kit):
    with pytest.raises(InputError, match=r"must return outputs of shape \(6, 4\).*got \(6, 2\); give its last layer 4"):
        kit.build().init(KEY, INPUTS, 4)


def test_wrong_inputs(kit):
    network = kit.build()
    variables = network.init(KEY, INPUTS, 2)
    if network.pretrained is False and hasattr(network, "structure"):
        with pytest.raises(InputError, match=r"cannot take inputs of shape \(6, 7\)"):
            network.init(KEY, jnp.ones((6, 7)), 2)
    assert network.apply(variables, INPUTS)[0].shape == (6, 2)


def test_dropout(library):
    network = library.build(rate=0.5)
    variables = network.init(KEY, INPUTS, 2)
    run = jax.jit(network.apply, static_argnames="train")
    one, two = (run(variables, INPUTS, key=jax.random.key(k), train=True)[0] for k in (1, 2))
    again = run(variables, INPUTS, key=jax.random.key(1), train=True)[0]
    assert not np.allclose(one, two)
    assert not np.allclose(one[0] - one[1], two[0] - two[1])
    np.testing.assert_array_equal(one, again)
    quiet = run(variables, INPUTS)[0]
    for other in ({"key": KEY}, {"train": True}):
        np.testing.assert_allclose(run(variables, INPUTS, **other)[0], quiet, rtol=1e-6)
    np.testing.assert_allclose(quiet, library.build().apply(variables, INPUTS)[0], rtol=1e-6)


def test_dropout_keeps_the_mean(library):
    """Mean over 2,000 masks of a linear read-out; 4.8 standard errors each; false alarms 2e-5 for 12 outputs."""
    network = library.build(rate=0.5)
    variables = network.init(KEY, INPUTS, 2)
    keys = jax.random.split(jax.random.key(5), 2000)
    draws = jax.jit(jax.vmap(lambda k: network.apply(variables, INPUTS, key=k, train=True)[0]))(keys)
    error = draws.mean(0) - network.apply(variables, INPUTS)[0]
    assert (jnp.abs(error) < 4.8 * draws.std(0) / 2000**0.5).all()


def test_batch_norm_is_learned_and_frozen(library):
    network = library.build(norm=True)
    variables = network.init(KEY, INPUTS, 2)
    assert jax.tree.leaves(variables.state)
    assert plain_dicts(variables.state)
    assert {p: infos(network, variables)[p].kind for p in library.norm} == library.norm
    assert all(infos(network, variables)[p].fan_in is None for p in library.norm)
    run = jax.jit(network.apply, static_argnames="train")
    shifted = INPUTS + 1
    trained, _ = run(variables, shifted, train=True)

    def step(_, state):
        return network.apply(Variables(variables.params, state), shifted, train=True)[1]

    state = jax.lax.fori_loop(0, 2000, step, variables.state)
    assert jax.tree.structure(state) == jax.tree.structure(variables.state)
    moved = jax.tree.map(lambda a, b: not np.allclose(a, b), state, variables.state)
    assert any(jax.tree.leaves(moved))
    frozen, same = run(Variables(variables.params, state), shifted)
    jax.tree.map(np.testing.assert_array_equal, same, state)
    # The running variance may be the unbiased one, 6/5 of the batch's: a tenth in the normalised values.
    np.testing.assert_allclose(frozen, trained, atol=0.1 * float(jnp.abs(trained).max()))
    assert not np.allclose(run(variables, shifted)[0], frozen, atol=1e-2)


def test_batch_norm_in_a_model(library):
    model = Model(library.build(norm=True), priors.normal(1.0), likelihoods.gaussian(noise=1.0))
    batch = Batch(INPUTS, jnp.ones((6, 2)), jnp.ones(6), jnp.asarray(6.0))
    variables = jax.jit(lambda m: m.init(KEY, batch))(model)
    value, state = jax.jit(lambda m, v: m.log_joint(v, batch, train=True))(model, variables)
    assert jnp.isfinite(value)
    assert jax.tree.structure(state) == jax.tree.structure(variables.state)


def instance(name, **options):
    if name == "nnx":
        module = FlaxNet(**options, rngs=nnx.Rngs(4))
        return module, adapters.from_flax(module), lambda: flax_own(module, INPUTS)
    if name == "linen":
        module = LinenNet(**options)
        variables = module.init(jax.random.key(4), INPUTS)
        return module, adapters.from_linen(module, variables), lambda: module.apply(variables, INPUTS)
    module = EquinoxNet(**options, key=jax.random.key(4))
    return module, adapters.from_equinox(module), lambda: jax.vmap(module)(INPUTS)


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_instance_keeps_its_weights_and_forward(name):
    _, network, own = instance(name)
    assert network.pretrained is True
    assert len(jax.tree.leaves(network)) == 4  # weights are leaves, never static
    one, two = (network.init(jax.random.key(k), INPUTS, 2) for k in (1, 2))
    jax.tree.map(np.testing.assert_array_equal, one, two)
    np.testing.assert_allclose(network.apply(one, INPUTS)[0], own(), rtol=1e-5, atol=1e-6)
    batched = jax.vmap(lambda k: network.init(k, INPUTS, 2))(jax.random.split(KEY, 3))
    assert {x.shape[0] for x in jax.tree.leaves(batched)} == {3}
    with pytest.raises(InputError, match="give its last layer 1 output,"):
        network.init(KEY, INPUTS, 1)


@pytest.mark.parametrize("name", LIBRARIES)
def test_instances_of_other_weights_share_one_program(name):
    traces = []

    @jax.jit
    def run(network, inputs):
        traces.append(1)
        return network.apply(network.start, inputs)[0]

    _, network, own = instance(name)
    np.testing.assert_allclose(run(network, INPUTS), own(), rtol=1e-5, atol=1e-6)
    other = jax.tree.map(lambda x: x + 1, network)
    assert not np.allclose(run(other, INPUTS), own())
    assert len(traces) == 1


@pytest.mark.parametrize("name", LIBRARIES)
def test_one_output_may_be_a_vector(name):
    networks = {
        "nnx": adapters.from_flax(lambda rngs: Squeezed(rngs=rngs)),
        "linen": adapters.from_linen(SqueezedLinen()),
        "equinox": adapters.from_equinox(lambda key: eqx.nn.Linear(3, "scalar", key=key)),
    }
    network = networks[name]
    variables = network.init(KEY, INPUTS, 1)
    assert network.apply(variables, INPUTS)[0].shape == (6, 1)
    with pytest.raises(InputError, match=r"\(6, 2\).*got \(6, 1\)"):
        network.init(KEY, INPUTS, 2)


class Squeezed(nnx.Module):
    def __init__(self, *, rngs):
        self.layer = nnx.Linear(3, 1, rngs=rngs)

    def __call__(self, x):
        return self.layer(x)[:, 0]


class SqueezedLinen(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(x)[:, 0]


def test_the_built_in_network_is_not_pretrained():
    assert mlp([3]).pretrained is False


@pytest.mark.parametrize("name", ["from_flax", "from_linen", "from_equinox"])
def test_missing_library(name, monkeypatch):
    extra = "equinox" if name == "from_equinox" else "flax"

    def missing(module):
        raise ImportError(module)

    monkeypatch.setattr("credo.adapters.plain.importlib.import_module", missing)
    with pytest.raises(InputError, match=rf"pip install 'credo\[{extra}\]'"):
        getattr(adapters, name)(lambda key: None)


@pytest.mark.parametrize("name", ["from_flax", "from_linen", "from_equinox"])
def test_not_a_network(name):
    with pytest.raises(InputError, match=f"{name} expects"):
        getattr(adapters, name)(3)
