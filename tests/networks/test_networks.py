"""Built-in networks of images and sequences: shapes, facts about parameters, masks, estimators, augmentation."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo.core.capabilities import DropoutNetwork, LocalNetwork, ask, capability
from credo.core.network import Variables, is_info
from credo.core.tree import paths, size
from credo.errors import InputError
from credo.networks import augmented, gru, lenet, lstm, residual_mlp, resnet20, vgg
from credo.registry import NETWORKS as ROWS

KEY = jax.random.key(0)
IMAGES = jax.random.normal(jax.random.key(3), (4, 8, 8, 2))
SERIES = jax.random.normal(jax.random.key(4), (4, 7, 3))
TINY = {"channels": (3, 4), "widths": (6, 5), "window": 3}
NETWORKS = {
    "lenet": (lenet(**TINY, dropout=0.2, masked="all"), IMAGES),
    "lenet_grey": (lenet(**TINY, pool="mean", activation="tanh"), IMAGES[..., 0]),
    "vgg_group": (vgg([(4, 4), (8,)], [6], "group", dropout=0.2), IMAGES),
    "vgg_frn": (vgg([(4, 4), (8,)], [6], "frn", activation="silu"), IMAGES),
    "vgg_plain": (vgg([(4, 4), (8,)], [], None), IMAGES),
    "resnet_frn": (resnet20(depth=8, width=4, dropout=0.2), IMAGES),
    "resnet_group": (resnet20(depth=8, width=4, normalisation="group"), IMAGES),
    "lstm": (lstm(5, layers=2, dropout=0.2), SERIES),
    "gru": (gru(5), SERIES[..., 0]),
    "residual_mlp": (residual_mlp(5, 2, dropout=0.2), SERIES[:, 0]),
    "augmented": (augmented(lenet(**TINY), shift=1), IMAGES),
}


def start(name):
    network, inputs = NETWORKS[name]
    return network, inputs, jax.jit(network.init, static_argnums=2)(KEY, inputs, 3)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_is_told(name):
    network, inputs, variables = start(name)
    infos = jax.tree.leaves(network.info(variables.params), is_leaf=is_info)
    arrays = jax.tree.leaves(variables.params)
    assert [i.path for i in infos] == paths(variables.params)
    for info, array in zip(infos, arrays):
        assert info.shape == array.shape
        if info.kind == "kernel":
            out = 0 if info.input_axis == 1 else -1
            assert info.fan_in == array.size // array.shape[out]
            assert array.shape[info.input_axis] in (info.fan_in, info.fan_in // 9)
        elif "norm" in info.path:
            assert (info.fan_in, info.fan_out) == (None, None)
            assert info.kind == {"scale": "scale", "bias": "bias"}.get(info.path.rpartition("/")[2], "other")
        else:
            assert info.kind == "bias"
    outputs, state = jax.eval_shape(network.apply, variables, inputs)
    assert outputs.shape == (4, 3)
    assert state == {}


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "augmented"])
def test_masks_act_in_training_with_a_key(name):
    network, inputs, variables = start(name)

    @jax.jit
    def ways(variables, inputs):
        seen = [
            network.apply(variables, inputs, key=key, train=train)[0] for key, train in ((None, True), (KEY, False))
        ]
        trained = network.apply(variables, inputs, key=KEY, train=True)[0]
        return network.apply(variables, inputs)[0], *seen, trained, network.apply_masked(variables, inputs, KEY)

    plain, *seen, trained, masked = ways(variables, jnp.concatenate([inputs, inputs]))
    assert np.isfinite(plain).all()
    for other in seen:
        np.testing.assert_allclose(plain, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(masked[:4], masked[4:], rtol=1e-5, atol=1e-6)  # one mask for all rows
    assert bool(network.dropout_rates) == (network.dropout > 0)
    assert [np.allclose(plain, x, atol=1e-5) for x in (trained, masked)] == [network.dropout == 0] * 2


def test_every_network_of_the_registry_is_here():
    """But those that have files of tests of their own."""
    here = {type(network).__name__ for network, _ in NETWORKS.values()}
    assert {row.makes for row in ROWS.values()} <= here | {"MLP", "Shallow", "Embedded", "Piecewise"}


def test_a_residual_network_is_its_formula():
    network, inputs, variables = start("residual_mlp")
    params = jax.tree.map(lambda x: np.asarray(x, np.float64) + 0.1, variables.params)

    def dense(name, h):
        return params[name]["kernel"] @ h + params[name]["bias"][:, None]

    h = dense("stem", np.asarray(inputs, np.float64).T)
    for i in range(2):
        h = h + dense(f"block_{i}_out", np.maximum(dense(f"block_{i}_in", h), 0))
    found = network.apply(Variables(jax.tree.map(jnp.float32, params), {}), inputs)[0]
    np.testing.assert_allclose(found, dense("output", h).T, rtol=1e-4)


@pytest.mark.parametrize("method", ["map", "laplace"])
def test_a_residual_network_is_fitted(method):
    x = np.linspace(-2, 2, 60, dtype=np.float32)[:, None]
    model = credo.Model(residual_mlp(8, 2, "tanh"), credo.priors.fan_in_normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (x, np.sin(2 * x[:, 0])), method, steps=400)
    found = credo.predict(KEY, fit, x, num_samples=50)
    assert float(np.abs(found.mean - np.sin(2 * x[:, 0])).mean()) < 0.1


def test_sizes_are_those_of_the_papers():
    images = jnp.ones((1, 28, 28))
    assert size(jax.eval_shape(lambda: lenet().init(KEY, images, 10)).params) == 61_706
    images = jnp.ones((1, 32, 32, 3))
    assert size(jax.eval_shape(lambda: resnet20().init(KEY, images, 10)).params) == 270_410
    assert size(jax.eval_shape(lambda: resnet20(normalisation="group").init(KEY, images, 10)).params) == 269_722
    infos = lenet().info(jax.eval_shape(lambda: lenet().init(KEY, jnp.ones((1, 28, 28)), 10)).params)
    assert infos["conv_1"]["kernel"][1:] == ("kernel", 150, 400, (5, 5, 6, 16), 2)
    assert infos["hidden_0"]["kernel"][1:] == ("kernel", 400, 120, (120, 400), 1)
    assert infos["conv_1"]["bias"][1:4] == ("bias", 150, 400)


class FlaxLeNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.relu(nn.Conv(6, (5, 5), name="conv_0")(x)), (2, 2), (2, 2))
        x = nn.max_pool(nn.relu(nn.Conv(16, (5, 5), padding="VALID", name="conv_1")(x)), (2, 2), (2, 2))
        x = x.reshape(len(x), -1)
        for i, width in enumerate((120, 84)):
            x = nn.relu(nn.Dense(width, name=f"hidden_{i}")(x))
        return nn.Dense(10, name="output")(x)


def test_lenet_is_that_of_flax():
    images = jnp.asarray(np.random.default_rng(0).integers(0, 5, (2, 28, 28)), jnp.uint8)
    variables = jax.jit(lenet().init, static_argnums=2)(KEY, images, 10)
    theirs = jax.tree.map(lambda x: x.T if x.ndim == 2 else x, variables.params)
    expected = jax.jit(FlaxLeNet().apply)({"params": theirs}, images[..., None].astype(jnp.float32))
    got = jax.jit(lambda v, x: lenet().apply(v, x)[0])(variables, images)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


WRONG = {
    "vectors": (lambda: lenet().init(KEY, jnp.ones((3, 4)), 2), r"\[n, height, width, channels\].*\(3, 4\)"),
    "small": (lambda: lenet().init(KEY, IMAGES, 2), "smaller than a window of 5 × 5"),
    "pooled": (lambda: vgg([(2,)] * 4).init(KEY, IMAGES, 2), "Nothing is left to pool"),
    "series": (lambda: lstm().init(KEY, IMAGES, 2), r"\[n, time, features\]"),
    "activation": (lambda: lenet(activation="step"), "Unknown activation"),
    "masked": (lambda: lenet(masked="some"), "masked must be one of"),
    "rate": (lambda: lenet(dropout=1.0), r"\[0, 1\)"),
    "widths": (lambda: lenet(widths=[0]), "whole numbers"),
    "none": (lambda: lenet(channels=[]), "at least one convolution"),
    "blocks": (lambda: vgg([()]), "at least one convolution"),
    "norm": (lambda: vgg(normalisation="batch"), "normalisation must be"),
    "depth": (lambda: resnet20(depth=10), "6n"),
    "residual": (lambda: resnet20(normalisation="batch"), "frn"),
    "layers": (lambda: gru(layers=0), "whole numbers"),
    "shift": (lambda: augmented(lenet(), shift=-1), "shift"),
    "noise": (lambda: augmented(lenet(), noise=-1.0), "noise"),
    "no_images": (lambda: augmented(lenet()).init(KEY, {"x": IMAGES}, 2), "got dict"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_sentences(name):
    call, match = WRONG[name]
    with pytest.raises(InputError, match=match):
        call()


# ---------------------------------------------------------------------- estimators of variational inference
class OneLayer(credo.networks.layered.Images):
    """A convolution whose places are the outputs."""

    activation, dropout, dtype = "relu", 0.0, "float32"

    def _layers(self, run, hidden):
        hidden = self._conv(run, "conv", hidden, 2, 3, padding="VALID")
        return hidden.reshape(-1, hidden.shape[-1])


def perturbed(key, std):
    leaves, treedef = jax.tree.flatten(std)
    keys = jax.random.split(key, len(leaves))
    return treedef.unflatten([s * jax.random.normal(k, s.shape) for k, s in zip(keys, leaves)])


def test_local_and_flipout_have_the_moments_of_weight_draws():
    """Mean and variance of a convolution's outputs over 4,000 draws against closed form: of 48 z-scores for each way
    none is beyond the bound for a false-alarm rate of 1e-4 in all. Flipout keeps the covariance of places; rows are
    uncorrelated."""
    network, images = OneLayer(), IMAGES[:2, :4, :5]
    mean = network.init(KEY, images, 1).params
    std = jax.tree.map(lambda x: 0.3 + 0.1 * jnp.cos(jnp.arange(x.size)).reshape(x.shape), mean)
    centre = network.apply(Variables(mean, {}), images)[0]
    variance = network.apply(Variables(jax.tree.map(jnp.square, std), {}), images**2)[0]
    num = 4000
    ways = {
        "weights": lambda k: network.apply(Variables(jax.tree.map(jnp.add, mean, perturbed(k, std)), {}), images)[0],
        "local": lambda k: network.apply_local(mean, std, images, k),
        "flipout": lambda k: network.apply_flipout(mean, perturbed(k, std), images, jax.random.fold_in(k, 1)),
    }
    found = {}
    for name, way in ways.items():
        values = np.asarray(jax.jit(jax.vmap(way))(jax.random.split(jax.random.key(7), num)), np.float64)
        scores = [(values.mean(0) - centre) / np.sqrt(variance / num)]
        scores += [(((values - centre) ** 2).mean(0) - variance) / (variance * np.sqrt(2 / num))]
        bound = stats.norm.isf(1e-4 / 2 / (3 * 2 * scores[0].size))
        assert max(np.abs(s).max() for s in scores) < bound, name
        found[name] = np.corrcoef(values.reshape(num, -1).T)
    half = len(found["weights"]) // 2
    assert np.abs(found["flipout"][:half, half:]).max() < 6 / np.sqrt(num)
    np.testing.assert_allclose(found["flipout"][:half, :half], found["weights"][:half, :half], atol=6 / np.sqrt(num))
    assert np.abs(found["local"] - np.eye(2 * half)).max() < 6 / np.sqrt(num)  # places are drawn apart


@pytest.mark.parametrize("name", ["lenet", "lstm", "augmented", pytest.param("resnet_frn", marks=pytest.mark.full)])
def test_without_spread_every_way_is_the_mean(name):
    network, inputs, variables = start(name)
    if name == "augmented":
        network = augmented(network.network, flip=False, shift=0)
    assert hasattr(network, "apply_local") == (name != "lstm")

    @jax.jit
    def ways(mean, none):
        found = [network.apply(Variables(mean, {}), inputs)[0], network.apply_flipout(mean, none, inputs, KEY)]
        return [*found, network.apply_local(mean, none, inputs, KEY)] if name != "lstm" else found

    mean, none = variables.params, jax.tree.map(jnp.zeros_like, variables.params)
    expected, *found = ways(mean, none)
    for outputs in found:
        np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)


def test_gradients_of_spreads_are_finite_where_nothing_reaches_a_kernel():
    """Of a black image through a kernel without bias the variance is 0, at which the root has no derivative."""
    network, images = vgg([(2,)], [], "group"), jnp.zeros((2, 4, 4, 1))
    mean = network.init(KEY, images, 1).params
    std = jax.tree.map(jnp.ones_like, mean)
    found = jax.jit(jax.grad(lambda std: network.apply_local(mean, std, images, KEY).sum()))(std)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))


def test_flipout_gives_a_row_one_set_of_weights_for_all_times():
    """Signs leave h_t = o tanh(c) of a cell with weights 0 but one alone: were they new at each time, the sum over
    times of ± the same number would be something else than ± that sum."""
    network, series = lstm(1), jnp.ones((64, 5, 1))
    mean = jax.tree.map(jnp.zeros_like, network.init(KEY, series, 1).params)
    mean["lstm_0_input"]["bias"] = jnp.array([0.0, 50.0, 0.0, 0.0])  # never forgets
    mean["output"]["kernel"] = jnp.ones((1, 1))
    moved = jax.tree.map(jnp.zeros_like, mean)
    moved["lstm_0_input"]["kernel"] = jnp.array([[0.0], [0.0], [0.3], [0.0]])
    outputs = np.asarray(jax.jit(network.apply_flipout)(mean, moved, series, KEY))[:, 0]
    expected = 0.5 * np.tanh(5 * 0.5 * np.tanh(0.3))
    np.testing.assert_allclose(np.abs(outputs), expected, rtol=1e-4)
    assert {-1.0, 1.0} == set(np.sign(outputs))


# ---------------------------------------------------------------------- augmentation
def test_images_change_in_training_with_a_key_alone():
    inner = lenet(**TINY)
    network = augmented(inner, shift=2, noise=0.1)
    variables = network.init(KEY, IMAGES, 3)
    plain = inner.apply(variables, IMAGES)[0]
    for options in ({}, {"key": KEY}, {"train": True}):
        np.testing.assert_array_equal(network.apply(variables, IMAGES, **options)[0], plain)
    changed = network.apply(variables, IMAGES, key=KEY, train=True)[0]
    assert (np.abs(changed - plain).max(1) > 1e-4).all()
    assert (ask(network, DropoutNetwork).dropout_rates or ()) == ()
    assert capability(augmented(lstm(3)), LocalNetwork) is None


def test_flips_and_shifts_are_those_of_single_images():
    images = jax.random.normal(KEY, (64, 6, 7, 2))
    flipped = augmented(lenet(), shift=0).change(KEY, images)
    ways = [np.abs(flipped - x).max((1, 2, 3)) == 0 for x in (images, images[:, :, ::-1])]
    assert (ways[0] ^ ways[1]).all()
    assert 10 < ways[0].sum() < 54
    shifted = np.asarray(augmented(lenet(), flip=False, shift=1).change(KEY, images))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.stack([padded[:, i : i + 6, j : j + 7] for i in range(3) for j in range(3)])
    equal = (windows == shifted).all((2, 3, 4))
    assert (equal.sum(0) == 1).all()
    assert (equal.sum(1) > 0).all()
    grey = augmented(lenet(), shift=1).change(KEY, images[..., 0])
    assert grey.shape == (64, 6, 7)
