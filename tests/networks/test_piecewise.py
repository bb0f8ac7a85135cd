"""Pieces of numbers: the formula, functions that they hold exactly, and what methods make of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.capabilities import DenseNetwork, FlipoutNetwork, LocalNetwork, MaskedNetwork, capability
from credo.errors import InputError
from credo.networks import embedded, mlp, piecewise, piecewise_mlp, quantile_knots, shallow
from credo.registry import find

KEY = jax.random.key(0)
KNOTS = [[-1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]
ROWS = jnp.array([[-3.0, 7.0, 0.5], [-0.5, 7.0, -2.0], [1.5, 7.0, 0.25], [9.0, 7.0, 4.0]])


def test_pieces_are_their_formula():
    pieces = piecewise(mlp([3]), KNOTS, [0, 2]).pieces(ROWS)
    np.testing.assert_array_equal(pieces[:, :3], ROWS)
    np.testing.assert_allclose(pieces[:, 3:5], [[-1, -1], [0, -1], [1, 0.5], [1, 1]])
    np.testing.assert_allclose(pieces[:, 5:], [[0, 0], [0, -1], [0, -0.5], [0, 1]])  # equal knots make no piece


def test_knots_of_standardised_rows_are_normal_quantiles():
    x = jax.random.normal(KEY, (20_000, 1))
    pieces = np.asarray(piecewise(mlp([3]), bins=4).pieces(x))[:, 1:]
    assert np.abs((pieces > -1).mean(0) - [0.9375, 0.75, 0.5, 0.25]).max() < 0.02


def test_quantile_knots_of_columns():
    x = np.column_stack([np.arange(9.0), np.r_[np.zeros(8), 1]])
    np.testing.assert_allclose(quantile_knots(x, 4), [[0, 2, 4, 6, 8], [0, 0, 0, 0, 1]])


def test_a_linear_layer_on_pieces_is_a_step():
    """A sharp step that a network of plain numbers of this size cannot hold under the same prior."""
    x = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
    y = np.where(x[:, 0] > 0.3, 1.0, -1.0).astype(np.float32)
    errors = []
    for network in (piecewise(mlp([]), [[-1.0, 0.295, 0.305, 1.0]]), mlp([])):
        model = credo.Model(network, credo.priors.normal(3.0), credo.likelihoods.gaussian(0.1))
        fit = credo.fit(KEY, model, (x, y), credo.methods.MAP(), steps=1500, progress=False)
        errors.append(float(np.sqrt(np.mean((credo.predict(KEY, fit, x).mean.ravel() - y) ** 2))))
    assert errors[0] < 0.1 < 0.4 < errors[1]


@pytest.mark.parametrize("kind", [DenseNetwork, FlipoutNetwork, LocalNetwork, MaskedNetwork])
def test_it_offers_what_its_network_offers(kind):
    assert (capability(piecewise_mlp([3]), kind) is None) == (capability(mlp([3]), kind) is None)
    assert (capability(piecewise(shallow(3)), kind) is None) == (capability(shallow(3), kind) is None)


@pytest.mark.parametrize("method", ["bayes_by_backprop", "laplace", "mc_dropout", "swag", "hmc"])
def test_methods_fit_it(method):
    x = np.asarray(jax.random.normal(KEY, (40, 2)), np.float32)
    model = credo.Model(
        piecewise(mlp([5], "tanh"), quantile_knots(x, 3)), credo.priors.fan_in_normal(1.0),
        credo.likelihoods.gaussian(0.3),
    )  # fmt: skip
    fit = credo.fit(KEY, model, (x, np.abs(x[:, 0])), find(method).load()(), steps=30, progress=False)
    assert np.isfinite(np.asarray(credo.predict(KEY, fit, x).mean)).all()


def test_laplace_taps_the_layers_behind_the_pieces():
    """Curvature through the taps is that of autodiff: the same fit of rows that are cut beforehand."""
    x = np.asarray(jax.random.normal(KEY, (30, 2)), np.float32)
    network = piecewise(mlp([4], "tanh"), quantile_knots(x, 3))
    y = np.sin(2 * x[:, 0])
    stds = []
    for one, rows in ((network, x), (network.network, np.asarray(network.pieces(jnp.asarray(x))))):
        model = credo.Model(one, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.3))
        fit = credo.fit(KEY, model, (rows, y), credo.methods.Laplace(), steps=300, progress=False)
        stds.append(np.asarray(credo.predict(KEY, fit, rows).std))
    np.testing.assert_allclose(stds[0], stds[1], rtol=1e-4)


def test_codes_of_categories_keep_their_places():
    inner = embedded(mlp([3]), [(1, 4)])
    network = piecewise(inner, [[-1.0, 0.0, 1.0]], [0])
    rows = jnp.array([[0.5, 2.0], [0.5, 3.0]])
    outputs = network.apply(network.init(KEY, rows, 1), rows)[0]
    assert outputs.shape == (2, 1)
    assert outputs[0] != outputs[1]


@pytest.mark.parametrize(
    ("knots", "columns", "bins"),
    [
        ([[1.0, 0.0]], None, 8), ([[0.0]], None, 8), ([[0.0, np.nan]], None, 8), ([[0.0, 1.0]], [0, 1], 8),
        (None, [0, 0], 8), (None, None, 0), (None, None, 1000), ([0.0, 1.0], None, 8),
    ],
)  # fmt: skip
def test_wrong_arguments_get_a_sentence(knots, columns, bins):
    with pytest.raises(InputError):
        piecewise(mlp([3]), knots, columns, bins)
