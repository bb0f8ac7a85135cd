"""The prior predictive: every prior, network and likelihood, against what is known in closed form."""

import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.report import prior_functions

X = np.linspace(-2, 2, 9, dtype=np.float32)[:, None]
LIKELIHOODS = {
    "known": credo.likelihoods.gaussian(0.1),
    "learned": credo.likelihoods.gaussian(),
    "inferred": credo.likelihoods.gaussian("inferred"),
    "heteroscedastic": credo.likelihoods.heteroscedastic(),
    "student_t": credo.likelihoods.student_t(),
    "bernoulli": credo.likelihoods.bernoulli(),
    "categorical": credo.likelihoods.categorical(3),
    "mislabelled": credo.likelihoods.mislabelled(3),
    "poisson": credo.likelihoods.poisson(),
    "negative_binomial": credo.likelihoods.negative_binomial(),
}
PRIORS = {
    "normal": credo.priors.normal(1.0),
    "fan_in_normal": credo.priors.fan_in_normal(1.0),
    "laplace": credo.priors.laplace(1.0),
    "hierarchical": credo.priors.hierarchical(),
    "horseshoe": credo.priors.horseshoe(),
    "scale_mixture": credo.priors.scale_mixture(),
}
QUICK = ("heteroscedastic", "categorical", "horseshoe")


def some(names):
    """Few in `make test`, all in `make test-full`."""
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in names]


class Net(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(1, 6, rngs=rngs)
        self.outer = nnx.Linear(6, 1, rngs=rngs)

    def __call__(self, x):
        return self.outer(jnp.tanh(self.inner(x)))


def model(likelihood="known", prior="fan_in_normal", network=None):
    network = credo.networks.mlp([6], "tanh") if network is None else network
    return credo.Model(network, PRIORS[prior], LIKELIHOODS[likelihood])


def test_a_linear_model_in_closed_form():
    """f(x) ~ N(0, s²(1 + x²)) and y − f ~ N(0, σ²). Variances of 4,000 draws are right to 2.2 %: five of it, and the
    same for means (false alarms below 1e-4 over all)."""
    given = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.5), credo.likelihoods.gaussian(0.3))
    prior = credo.prior_predictive(jax.random.key(0), given, X, num_samples=4000)
    truth = 1.5**2 * (1 + X[:, 0] ** 2)
    np.testing.assert_allclose(prior.epistemic, truth, rtol=5 * np.sqrt(2 / 4000))
    np.testing.assert_allclose(prior.aleatoric, 0.09, rtol=1e-5)
    np.testing.assert_allclose(prior.mean / np.sqrt(truth), 0, atol=5 / np.sqrt(4000))
    assert prior.functions.shape == (4000, 9)
    np.testing.assert_allclose(prior.functions.var(0), prior.epistemic, rtol=1e-3)
    # A draw is one function of all inputs: here a straight line.
    np.testing.assert_allclose(np.diff(prior.functions, 2, axis=1), 0, atol=1e-4)


@pytest.mark.parametrize("likelihood", some(LIKELIHOODS))
def test_every_likelihood(likelihood):
    prior = credo.prior_predictive(jax.random.key(0), model(likelihood), X, num_samples=20)
    shape = {"bernoulli": (20, 9, 2), "categorical": (20, 9, 3)}.get(likelihood, (20, 9))
    assert prior.functions.shape == shape
    assert np.isfinite(prior.functions).all()
    assert prior.sample(jax.random.key(1), 5).shape == (5, 9)


@pytest.mark.parametrize("prior", some(PRIORS))
def test_every_prior(prior):
    found = credo.prior_predictive(jax.random.key(0), model(prior=prior), X, num_samples=20)
    assert np.isfinite(found.functions).all()
    assert (found.functions.std(0) > 0).all()


def test_networks_of_others_and_several_outputs():
    net = credo.from_flax(lambda rngs: Net(rngs))
    assert credo.prior_predictive(jax.random.key(0), model(network=net), X, num_samples=7).functions.shape == (7, 9)
    two = credo.prior_predictive(jax.random.key(0), model(), X, num_samples=7, outputs=2)
    assert two.functions.shape == (7, 9, 2)
    assert two.mean.shape == (9, 2)


def test_learned_noise_is_drawn_from_its_default_prior():
    prior = credo.prior_predictive(jax.random.key(0), model("learned"), X, num_samples=4000)
    noises = prior._each(lambda likelihood, d: jnp.broadcast_to(d.params["log_scale"][:, 0], (64, 4000)))[0]
    # log σ ~ N(−1, 2²): five standard errors, below 1e-5
    np.testing.assert_allclose(noises.mean(), -1, atol=5 * 2 / np.sqrt(4000))
    np.testing.assert_allclose(noises.std(), 2, rtol=5 / np.sqrt(8000))


def test_keys_scales_and_chunks():
    first, again = (credo.prior_predictive(jax.random.key(0), model(), X, num_samples=9) for _ in range(2))
    np.testing.assert_array_equal(first.functions, again.functions)
    other = credo.prior_predictive(jax.random.key(1), model(), X, num_samples=9)
    assert not np.array_equal(first.functions, other.functions)
    scaled = first.rescaled(5.0, 2.0)
    np.testing.assert_allclose(scaled.functions, 5 + 2 * first.functions, rtol=1e-6)
    # The same functions at more inputs: draws do not depend on where one looks.
    many = credo.prior_predictive(jax.random.key(0), model(), np.tile(X, (200, 1)), num_samples=9)
    np.testing.assert_allclose(many.functions[:, :9], first.functions, rtol=1e-4, atol=1e-5)


def test_bad_input_gets_a_sentence():
    with pytest.raises(InputError, match="at least 1"):
        credo.prior_predictive(jax.random.key(0), model(), X, num_samples=0)
    with pytest.raises(InputError, match="shape"):
        credo.prior_predictive(jax.random.key(0), model(), X[:, 0])
    with pytest.raises(InputError, match="columns of targets"):
        credo.prior_predictive(jax.random.key(0), model("bernoulli"), X, outputs=2)
    with pytest.raises(InputError, match="along one input"):
        prior_functions(credo.prior_predictive(jax.random.key(0), model(), X, num_samples=5), np.zeros((9, 2)))


@pytest.mark.parametrize(
    ("likelihood", "outputs"), [("known", None), ("known", 2), ("categorical", None), ("poisson", None)]
)
def test_pictures_have_titles_labels_and_a_legend(likelihood, outputs):
    prior = credo.prior_predictive(jax.random.key(0), model(likelihood), X, num_samples=20, outputs=outputs)
    figure = prior_functions(prior, X, output=1 if likelihood == "categorical" or outputs else 0, input_name="dose")
    area = figure.axes[0]
    assert "20 functions" in area.get_title(loc="left")
    assert area.get_xlabel() == "dose"
    assert area.get_ylabel() == ("probability of class 1" if likelihood == "categorical" else "target")
    assert "single functions" in [text.get_text() for text in figure.legends[0].get_texts()]
