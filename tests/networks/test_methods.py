"""Methods on networks of images and sequences: each fits and predicts, or refuses with a sentence."""

import jax
import numpy as np
import pytest

import credo
from credo.errors import Refusal
from credo.methods import BayesByBackprop, Laplace, MCDropout
from credo.networks import augmented, gru, lenet, lstm, resnet20
from credo.registry import METHODS, ROWS

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(48, 8, 8, 2)).astype(np.float32)
LABELS = (IMAGES[:, :4].mean((1, 2, 3)) > IMAGES[:, 4:].mean((1, 2, 3))).astype(np.int32)
SERIES = IMAGES.reshape(48, 16, 8)[:, :6, :2]
TINY = {"channels": (2, 3), "widths": (5,), "window": 3, "activation": "tanh"}
REFUSED = {"nodes": "sum of nodes", "wide": "infinite"}


def fit(network, method, data=IMAGES, steps=8):
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.bernoulli())
    found = credo.fit(jax.random.key(0), model, (data, LABELS), method, steps=steps)
    assert found.status.outcome == "finished"
    assert np.isfinite(credo.predict(jax.random.key(1), found, data[:5], num_samples=3).mean).all()
    return found


def small(row):
    settings = {k: min(v, 20) if k == "warmup" else min(v, 6) for k, v in row.quick_settings().items()}
    return row.load()(**settings | ({"prior_draws": 30} if "prior_draws" in settings else {}))


QUICK = ("map", "last_layer")


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=r.name, marks=[] if r.name in QUICK else [pytest.mark.full]) for r in ROWS]
)
def test_every_method_on_images(row):
    if row.networks != "any":
        with pytest.raises(Refusal, match=REFUSED[row.networks]):
            fit(lenet(**TINY), small(row))
        return
    fit(lenet(**TINY), small(row))


FEW = ("map", "bayes_by_backprop", "mc_dropout", "deep_ensemble", "last_layer", "swag", "sghmc", "nuts")


@pytest.mark.full
@pytest.mark.parametrize("name", ["map", "bayes_by_backprop", "mc_dropout", "last_layer"])
@pytest.mark.parametrize("network", [resnet20(8, 2), resnet20(8, 2, "group", "silu")], ids=["frn", "group"])
def test_methods_on_residual_networks(name, network):
    fit(network, small(METHODS[name]))


@pytest.mark.full
@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("network", [lstm(3), gru(3, layers=2)], ids=["lstm", "gru"])
def test_methods_on_sequences(name, network):
    fit(network, small(METHODS[name]), SERIES)


@pytest.mark.parametrize("estimator", ["local", pytest.param("flipout", marks=pytest.mark.full)])
def test_estimators_of_lower_variance(estimator):
    fit(lenet(**TINY), BayesByBackprop(estimator=estimator))


def test_estimators_on_sequences():
    with pytest.raises(Refusal, match="Recurrent does not offer"):
        fit(lstm(3), BayesByBackprop(estimator="local"), SERIES)


@pytest.mark.full
def test_flipout_on_sequences_and_on_changed_images():
    fit(lstm(3), BayesByBackprop(estimator="flipout"), SERIES)
    fit(augmented(lenet(**TINY), shift=1), BayesByBackprop(estimator="flipout"))


@pytest.mark.full
@pytest.mark.parametrize("structure", ["auto", "full", "diagonal", "last_layer", "low_rank"])
def test_curvature_of_convolutions(structure):
    fit(lenet(**TINY), Laplace(structure=structure))


def test_kronecker_factors_are_for_dense_layers():
    with pytest.raises(Refusal, match="no rule for 'conv_0/"):
        fit(lenet(**TINY), Laplace(structure="kfac"))


@pytest.mark.full
def test_own_masks_and_changed_images_together():
    """Changes of the images are not taken for masks: the rate is that of the network's own layers."""
    masked = lenet(**TINY, dropout=0.2, masked="all")
    assert fit(masked, "mc_dropout").config["method"] == "mc_dropout"
    for network in (augmented(masked, shift=1), masked):
        found = fit(network, MCDropout(masks="activations"))
        np.testing.assert_allclose(found.trace["rate"], 0.2)
    with pytest.raises(Refusal, match="no dropout layers"):
        fit(augmented(lenet(**TINY), shift=1), MCDropout(masks="activations"))


def test_saved_networks_are_found_again(tmp_path):
    network = augmented(lenet(**TINY, dropout=0.1), shift=1)
    found = fit(network, "map")
    found.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    assert again.model.network == network
    before, after = (credo.predict(jax.random.key(1), f, IMAGES[:5]).mean for f in (found, again))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("network", [lstm(4), gru(4, 2), resnet20(8, 4), credo.networks.vgg([(4,)], [3], "frn")])
def test_networks_have_a_form_in_a_file(network):
    from credo.storage import serialisation as codec

    assert codec.decode(codec.encode(network, {}), {}) == network
