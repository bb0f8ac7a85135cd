"""Layers against Flax's with the same weights, and filter-response normalisation by its formula."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.network import Variables
from credo.errors import InputError
from credo.networks import layers

RNG = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def inside(images):
    return images.transpose(3, 1, 2, 0)


def outside(hidden):
    return hidden.transpose(3, 1, 2, 0)


@pytest.mark.parametrize("limit", [0, 3000, 9000, layers.PATCH_BYTES])  # windows one by one, row by row, all at once
@pytest.mark.parametrize(("window", "stride", "padding"), [(5, 1, "SAME"), (3, 2, "SAME"), (3, 1, "VALID")])
def test_convolutions_are_those_of_flax(window, stride, padding, limit, monkeypatch):
    monkeypatch.setattr(layers, "PATCH_BYTES", limit)
    images, kernel, bias = normal(3, 9, 8, 2), normal(window, window, 2, 4), normal(4)
    layer = nn.Conv(4, (window, window), stride, padding)
    expected = layer.apply({"params": {"kernel": kernel, "bias": bias}}, images)
    got = layers.conv(kernel, bias, inside(images), stride, padding)
    np.testing.assert_allclose(outside(got), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        outside(layers.conv(kernel, None, inside(images), stride, padding)), expected - bias, rtol=1e-4, atol=1e-5
    )


def test_accelerators_take_another_way_to_the_same_numbers(monkeypatch):
    kernel, bias, hidden = normal(3, 3, 2, 4), normal(4), normal(2, 7, 6, 3)
    expected = layers.conv(kernel, bias, hidden, 2)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    np.testing.assert_allclose(layers.conv(kernel, bias, hidden, 2), expected, rtol=1e-4, atol=1e-5)


def test_pooling_is_that_of_flax():
    images = normal(3, 9, 7, 2)
    for ours, theirs in ((layers.max_pool, nn.max_pool), (layers.mean_pool, nn.avg_pool)):
        for window in (2, 3):
            expected = theirs(images, (window, window), (window, window))
            np.testing.assert_allclose(outside(ours(inside(images), window)), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layers.global_mean(inside(images)).T, images.mean((1, 2)), atol=1e-6)
    np.testing.assert_array_equal(layers.flatten(inside(images)).T, images.reshape(3, -1))


def test_group_norm_is_that_of_flax():
    images, scale, bias = normal(3, 4, 5, 6), normal(6), normal(6)
    expected = nn.GroupNorm(num_groups=2).apply({"params": {"scale": scale, "bias": bias}}, images)
    np.testing.assert_allclose(
        outside(layers.group_norm(scale, bias, inside(images), 2)), expected, rtol=1e-4, atol=1e-4
    )


def test_filter_response_norm_is_its_formula():
    images, scale, bias, threshold = (np.asarray(normal(*s)) for s in ((3, 4, 5, 6), (6,), (6,), (6,)))
    square = (images.astype(np.float64) ** 2).mean((1, 2), keepdims=True)
    expected = scale * images / np.sqrt(square + 1e-6) + bias
    got = layers.filter_response_norm(jnp.asarray(scale), jnp.asarray(bias), inside(jnp.asarray(images)))
    np.testing.assert_allclose(outside(got), expected, rtol=1e-5, atol=1e-5)
    got = layers.thresholded(jnp.asarray(threshold), got)
    np.testing.assert_allclose(outside(got), np.maximum(expected, threshold), rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="one place"):
        layers.filter_response_norm(jnp.ones(2), jnp.ones(2), jnp.ones((2, 1, 1, 3)))


def stacked(params, names):
    """Kernels of Flax's gates, [in, out] each, as ours: [gates · out, in]."""
    return jnp.concatenate([params[name]["kernel"].T for name in names])


def biases(params, names):
    return jnp.concatenate([params[name]["bias"] for name in names])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_recurrent_layers_are_those_of_flax(cell):
    series = normal(3, 6, 2)
    rnn = nn.RNN(nn.LSTMCell(4) if cell == "lstm" else nn.GRUCell(4))
    theirs = rnn.init(jax.random.key(0), series)["params"]
    flat = jax.tree.map(lambda x: x + 0.1 * normal(*x.shape), theirs)  # their biases are 0
    expected = rnn.apply({"params": flat}, series)[:, -1]
    (inner,) = flat.values()
    if cell == "lstm":
        own = {
            "lstm_0_input": {
                "kernel": stacked(inner, ("ii", "if", "ig", "io")),
                "bias": biases(inner, ("hi", "hf", "hg", "ho")),
            },
            "lstm_0_state": {"kernel": stacked(inner, ("hi", "hf", "hg", "ho"))},
        }
    else:
        own = {
            "gru_0_input": {"kernel": stacked(inner, ("ir", "iz", "in")), "bias": biases(inner, ("ir", "iz", "in"))},
            "gru_0_state": {"kernel": stacked(inner, ("hr", "hz"))},
            "gru_0_candidate": {"kernel": stacked(inner, ("hn",)), "bias": biases(inner, ("hn",))},
        }
    own["output"] = {"kernel": jnp.eye(4), "bias": jnp.zeros(4)}
    network = credo.networks.lstm(4) if cell == "lstm" else credo.networks.gru(4)
    shapes = jax.tree.map(jnp.shape, network.init(jax.random.key(0), series, 4).params)
    assert jax.tree.map(jnp.shape, own) == shapes
    np.testing.assert_allclose(network.apply(Variables(own, {}), series)[0], expected, rtol=1e-4, atol=1e-5)
