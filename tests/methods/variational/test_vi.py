"""Options of Bayes by Backprop: starts, estimators, warm-up of the KL, hyper-parameters under q."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.tree import leaf, struct
from credo.errors import InputError, Refusal
from credo.methods.variational.bayes_by_backprop import BayesByBackprop
from credo.networks.mlp import MLP
from credo.priors.elementwise import ElementwisePrior
from credo.priors.normal import NormalDensity
from oracles import coefficients, linear

PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)
X = np.linspace(-1, 1, 48, dtype=np.float32)[:, None]
Y = np.sin(3 * X[:, 0])


def fit(steps=None, start=None, **options):
    return credo.fit(jax.random.key(0), PROBLEM.model(), DATA, BayesByBackprop(**options), steps=steps, start=start)


@pytest.mark.parametrize(
    "options",
    [
        {"antithetic": True, "num_samples": 2},
        {"mean": "map", "map_steps": 300},
        {"mean": "prior", "kl_warmup": 0.3},
        {"path_gradient": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_way_leads_to_the_same_optimum(options):
    found = fit(**options).posterior
    np.testing.assert_allclose(
        coefficients(found.mean["network"])[0], PROBLEM.mean, atol=0.2 * PROBLEM.mean_field_std.min()
    )
    np.testing.assert_allclose(coefficients(found.std["network"])[0], PROBLEM.mean_field_std, rtol=0.05)


def test_pairs_leave_no_noise_in_the_means_of_a_linear_model():
    """Pairs ε, −ε average to the gradient at the mean where log p is quadratic: only rounding is left."""
    apart, pairs = (fit(steps=3000, num_samples=2, antithetic=a).posterior for a in (False, True))
    error = [np.abs(coefficients(q.mean["network"])[0] - PROBLEM.mean).max() for q in (apart, pairs)]
    assert error[1] < 1e-5
    assert error[0] > 10 * error[1]


def test_a_phase_of_map_comes_first():
    found = fit(steps=5, mean="map", map_steps=2000)
    assert list(found.phases) == ["map", "optimise"]
    assert found.phases["map"]["loss"].shape == (1, 2000)
    assert found.trace["loss"].shape == (1, 5)
    # Five steps of the main phase move the means by at most 5 learning rates.
    np.testing.assert_allclose(coefficients(found.posterior.mean["network"])[0], PROBLEM.mean, atol=0.03)
    np.testing.assert_allclose(coefficients(found.posterior.std["network"]), 0.05, rtol=0.1)


def test_starts():
    """One step hardly moves the means: they are where they were told to start."""
    given = credo.fit(jax.random.key(5), PROBLEM.model(), DATA, "map", steps=1)
    here = coefficients(given.point().params["network"])[0]
    start, fresh, prior = (
        coefficients(fit(1, given, mean=name).posterior.mean["network"])[0] for name in ("start", "init", "prior")
    )
    np.testing.assert_allclose(start, here, atol=0.02)
    assert np.abs(fresh - here).max() > 0.05
    assert np.abs(prior - here).max() > 0.05
    assert abs(prior[0]) > 0.02  # the network starts biases at 0, the prior does not


def test_components_of_a_mixture_start_apart():
    q = fit(1, family="mixture", components=3).posterior
    means = coefficients(q.mean["network"])
    assert means.shape == (3, 5)
    assert (np.abs(means[:, None, 1:] - means[None, :, 1:]).max(-1) > 0.05).sum() == 6


def test_warm_up_of_the_kl_is_shown_and_raises_beta():
    found = fit(steps=200, kl_warmup=0.5)
    assert found.config["settings"]["kl_warmup"] == 0.5
    loss, likelihood, kl = (found.trace[k][0].astype(float) for k in ("loss", "log_likelihood", "kl"))
    beta = (-loss - likelihood) * -len(PROBLEM.inputs) / kl
    expected = np.minimum(1, (np.arange(200) + 1) / 100)
    np.testing.assert_allclose(beta, expected, atol=0.02)


def test_local_and_flipout_draw_the_same_outputs():
    """Mean and variance of f(x) for fixed q, over 4,000 draws; two rows of flipout are uncorrelated, as its signs are.
    Bounds are five standard errors."""
    network = MLP((), "relu")
    rng = np.random.default_rng(0)
    mean, std = (
        {"output": {"kernel": jnp.asarray(rng.normal(size=(1, 3)), jnp.float32), "bias": jnp.ones(1)}} for _ in range(2)
    )
    inputs = jnp.asarray(rng.normal(size=(2, 3)), jnp.float32)

    def flipout(key):
        key_eps, key_net = jax.random.split(key)
        leaves, treedef = jax.tree.flatten(std)
        keys = jax.random.split(key_eps, len(leaves))
        moved = treedef.unflatten([s * jax.random.normal(k, s.shape) for k, s in zip(keys, leaves)])
        return network.apply_flipout(mean, moved, inputs, key_net)

    keys = jax.random.split(jax.random.key(0), 4000)
    centre = inputs @ mean["output"]["kernel"][0] + 1
    variance = inputs**2 @ std["output"]["kernel"][0] ** 2 + 1
    for draw in (flipout, lambda k: network.apply_local(mean, std, inputs, k)):
        values = np.asarray(jax.vmap(draw)(keys))[..., 0]
        np.testing.assert_allclose(values.mean(0), centre, atol=5 * float(np.sqrt(variance.max() / 4000)))
        np.testing.assert_allclose(values.var(0), variance, rtol=5 * np.sqrt(3 / 4000))
        assert abs(np.corrcoef(values.T)[0, 1]) < 5 / np.sqrt(4000)


def test_flipout_under_a_subset_and_local_refuses_it():
    inner = BayesByBackprop(estimator="flipout")
    model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    found = credo.fit(jax.random.key(0), model, (X, Y), credo.subset(inner, "output/*"), steps=50)
    assert found.status.outcome == "finished"
    with pytest.raises(Refusal, match="Held weights"):
        credo.fit(jax.random.key(0), model, (X, Y), credo.subset(BayesByBackprop(estimator="local"), "output/*"))


def test_estimators_that_a_network_does_not_offer():
    network = credo.from_functions(
        init=lambda key, x: {"w": jnp.zeros((x.shape[-1], 1))}, apply=lambda p, x: x @ p["w"]
    )
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    for estimator in ("local", "flipout"):
        with pytest.raises(Refusal, match="does not offer"):
            credo.fit(jax.random.key(0), model, (X, Y), BayesByBackprop(estimator=estimator), steps=1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"antithetic": True}, "even num_samples"),
        ({"kl_warmup": 0.8}, "at most 0.5"),
        ({"mean": "zero"}, "mean must be"),
        ({"estimator": "banana"}, "estimator must be"),
    ],
)
def test_wrong_options_are_sentences(options, match):
    with pytest.raises((InputError, Refusal), match=match):
        fit(1, **options)


@struct
class Hierarchical(ElementwisePrior):
    """θ_i ~ N(0, τ²) with log τ ~ N(0, 1)."""

    spread: float = leaf(default=1.0)

    def init(self, info=None):
        return {"log_scale": jnp.zeros(())}

    def log_hyperprior(self, params):
        return jax.scipy.stats.norm.logpdf(params["log_scale"], 0.0, self.spread)

    def bind_part(self, info, params):
        scale = jnp.exp(params["log_scale"])
        found = super().bind_part(info, params)
        densities = jax.tree.map(
            lambda d: NormalDensity(d.loc, scale), found.densities, is_leaf=lambda d: isinstance(d, NormalDensity)
        )
        return type(found)(densities, found.shapes)

    def density(self, info):
        return NormalDensity(0.0, 1.0)


@pytest.mark.parametrize("name", ["bayes_by_backprop", "black_box_vi", "ivon"])
def test_hyper_parameters_of_a_prior_join_q(name):
    """q(log τ) on the linear model, beside its exact marginal posterior on a grid."""
    model = PROBLEM.model().with_prior(Hierarchical())
    q = credo.fit(jax.random.key(0), model, DATA, name).posterior
    found = float(q.mean["prior"]["log_scale"][0])
    grid = np.linspace(-3, 3, 2001)
    # log p(D|τ) of the conjugate model, up to what does not depend on τ
    columns = PROBLEM.design
    log_posterior = []
    for t in grid:
        precision = columns.T @ columns / PROBLEM.noise**2 + np.eye(5) * np.exp(-2 * t)
        fitted = columns.T @ PROBLEM.targets / PROBLEM.noise**2
        log_posterior.append(
            0.5 * fitted @ np.linalg.solve(precision, fitted) - 0.5 * np.linalg.slogdet(precision)[1] - 5 * t - t**2 / 2
        )
    weights = np.exp(np.array(log_posterior) - max(log_posterior))
    weights /= weights.sum()
    mean = float(weights @ grid)
    std = float(np.sqrt(weights @ (grid - mean) ** 2))
    assert abs(found - mean) < 0.4 * std  # the posterior of log τ is skewed, q is not
    assert float(q.std["prior"]["log_scale"][0]) == pytest.approx(std, rel=0.25)
