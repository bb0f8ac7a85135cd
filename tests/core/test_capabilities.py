"""What a part may offer: asked by protocol, with defaults, also of parts that derive from nothing of credo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.capabilities import (
    DenseNetwork,
    DropoutNetwork,
    FlipoutNetwork,
    GaussianDistribution,
    InferredLikelihood,
    LocalNetwork,
    MaskedNetwork,
    NamedLikelihood,
    NodeNetwork,
    NormalLikelihood,
    PredictingLikelihood,
    PretrainedNetwork,
    StoredPosterior,
    ask,
    capability,
    require,
)
from credo.core.network import ParamInfo, Variables
from credo.errors import InputError, Refusal

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
Y = X[:, 0]


class OwnNetwork:
    """The contract of a network and no more: f(x) = xw."""

    def __eq__(self, other):
        return isinstance(other, OwnNetwork)

    def __hash__(self):
        return 0

    def init(self, key, inputs, num_outputs):
        return Variables({"w": jnp.zeros((inputs.shape[1], num_outputs))}, {})

    def apply(self, variables, inputs, *, key=None, train=False):
        return inputs @ variables.params["w"], variables.state

    def info(self, params):
        return {"w": ParamInfo("w", "kernel", *params["w"].shape, tuple(params["w"].shape), 0)}


jax.tree_util.register_static(OwnNetwork)


def model(network):
    return credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))


def test_what_is_not_offered_has_the_default():
    nothing = OwnNetwork()
    for kind in (PretrainedNetwork, DropoutNetwork, MaskedNetwork, LocalNetwork, FlipoutNetwork, DenseNetwork):
        assert capability(nothing, kind) is None
    assert ask(nothing, PretrainedNetwork).pretrained is False
    assert ask(nothing, DropoutNetwork).dropout_rates == ()
    assert ask(nothing, NodeNetwork).nodes() is None
    assert ask(nothing, GaussianDistribution).gaussian() is None
    assert ask(nothing, NormalLikelihood).normal is False
    assert ask(nothing, InferredLikelihood).inferred is False
    assert ask(nothing, NamedLikelihood).learns == "noise"
    assert ask(nothing, PredictingLikelihood).predicts is True
    stored = ask(nothing, StoredPosterior)
    assert (stored.available, stored.log_weights, stored.on_disk) == (None, None, False)


def test_what_is_offered_is_the_part_itself_also_behind_getattr():
    class Around:
        def __getattr__(self, name):
            return getattr(credo.networks.mlp([3], dropout=0.5), name)

    network = credo.networks.mlp([3])
    assert capability(network, DenseNetwork) is network
    assert ask(Around(), DropoutNetwork).dropout_rates == (0.5,)
    with pytest.raises(Refusal, match="OwnNetwork does not offer: apply_masked"):
        require(OwnNetwork(), MaskedNetwork)


def test_a_wrapper_offers_what_is_inside():
    images = credo.networks.augmented(credo.networks.lenet([2], [4], window=3))
    assert capability(images, LocalNetwork) is images  # it changes the images first
    assert capability(images, MaskedNetwork) is images.network
    heads = credo.networks.multi_head(credo.networks.mlp([3]), 2)
    assert capability(heads, DenseNetwork) is heads
    assert capability(credo.networks.multi_head(OwnNetwork(), 2), MaskedNetwork) is None


@pytest.mark.parametrize("method", ["laplace", "bayes_by_backprop"])
def test_a_network_of_the_contract_alone_is_enough(method):
    fit = credo.fit(KEY, model(OwnNetwork()), (X, Y), method, steps=20, progress=False)
    assert np.isfinite(credo.predict(KEY, fit, X).mean).all()


def test_estimators_need_what_they_name():
    with pytest.raises(Refusal, match="OwnNetwork does not offer"):
        credo.fit(KEY, model(OwnNetwork()), (X, Y), credo.methods.BayesByBackprop(estimator="local"), steps=2)


def test_all_that_is_wrong_with_a_model_is_said_at_once():
    class Half:
        kind = "real"

        def log_prob(self, params, outputs, targets):
            return outputs[:, 0]

    wrong = credo.Model("mlp", credo.priors.normal, Half())
    with pytest.raises(InputError) as error:
        credo.fit(KEY, wrong, (X, Y), "map")
    said = str(error.value)
    assert "The network of a model is one of credo.networks or an adapter's, got a str." in said
    assert "The prior of a model is one of credo.priors, got a function." in said
    assert "a Half lacks point, prepare, num_outputs, init, log_prior" in said
