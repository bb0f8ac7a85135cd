"""A likelihood from one function: moments, distribution, draws and fits against SciPy and the built-in ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import credo
from credo.core.likelihood import Likelihood
from credo.errors import InputError
from credo.likelihoods import categorical, from_log_prob, gaussian

INFINITE = float("inf")


def normal(f, y):
    return jax.scipy.stats.norm.logpdf(y, f[:, 0], jnp.exp(f[:, 1]))


def gamma(f, y):
    return jax.scipy.stats.gamma.logpdf(y, jnp.exp(f[:, 0]), scale=jnp.exp(f[:, 1]))


def beta(f, y):
    return jax.scipy.stats.beta.logpdf(y, jnp.exp(f[:, 0]), jnp.exp(f[:, 1]))


def poisson(f, y):
    return jax.scipy.stats.poisson.logpmf(y, jnp.exp(f[:, 0]))


CASES = {
    "normal": (normal, (-INFINITE, INFINITE), "real", lambda a, b: scipy.stats.norm(a, np.exp(b)), [
        (0.0, 0.0), (100.0, -3.0), (-2e4, 2.0), (3.0, 8.0), (0.5, -9.0),
    ]),
    "gamma": (gamma, (0.0, INFINITE), "real", lambda a, b: scipy.stats.gamma(np.exp(a), scale=np.exp(b)), [
        (0.0, 0.0), (3.0, -2.0), (1.0, 9.0), (6.0, -6.0),
    ]),
    "beta": (beta, (0.0, 1.0), "real", lambda a, b: scipy.stats.beta(np.exp(a), np.exp(b)), [
        (0.0, 0.0), (2.0, -0.4), (5.0, 5.5),
    ]),
    "poisson": (poisson, None, "counts", lambda a, b: scipy.stats.poisson(np.exp(a)), [
        (0.0, 0.0), (-4.0, 0.0), (5.0, 0.0),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_moments_and_distribution_are_those_of_the_density(name):
    density, support, kind, truth, rows = CASES[name]
    likelihood = from_log_prob(density, 2, kind, support=support)
    assert isinstance(likelihood, Likelihood)
    outputs = jnp.asarray(rows, jnp.float32)
    truths = [truth(*np.asarray(row, float)) for row in np.asarray(outputs)]
    mean, variance = (np.asarray(x)[:, 0] for x in (likelihood.mean({}, outputs), likelihood.variance({}, outputs)))
    std = np.array([t.std() for t in truths])
    np.testing.assert_allclose(mean, [t.mean() for t in truths], atol=2e-3 * std.max(), rtol=2e-4)
    np.testing.assert_allclose(np.sqrt(variance), std, rtol=5e-3)
    for level in (0.02, 0.3, 0.5, 0.97):
        y = np.array([t.ppf(level) for t in truths], np.float32)[:, None]
        expected = [t.cdf(v) for t, v in zip(truths, y[:, 0].astype(float))]
        np.testing.assert_allclose(likelihood.cdf({}, outputs, jnp.asarray(y))[:, 0], expected, atol=1e-3)


@pytest.mark.parametrize("name", ["gamma", "poisson"])
def test_draws_are_of_the_density(name):
    """False-alarm budget: 1e-6 each, one Kolmogorov-Smirnov or χ² test."""
    density, support, kind, truth, rows = CASES[name]
    outputs = jnp.tile(jnp.asarray(rows[:1], jnp.float32), (4000, 1))
    draws = np.asarray(from_log_prob(density, 2, kind, support=support).sample(jax.random.key(0), {}, outputs))[:, 0]
    if kind == "real":
        assert scipy.stats.kstest(draws, truth(*rows[0]).cdf).pvalue > 1e-6
    else:
        seen = np.bincount(np.minimum(draws.astype(int), 5), minlength=6)
        mass = np.append(truth(*rows[0]).pmf(np.arange(5)), truth(*rows[0]).sf(4))
        assert scipy.stats.chisquare(seen, 4000 * mass).pvalue > 1e-6


def test_a_fit_is_that_of_the_built_in_likelihood():
    """Laplace with curvature by autodiff, of a density whose curvature does not depend on y."""
    x = np.linspace(-1, 1, 50, dtype=np.float32)[:, None]
    y = 2 * x[:, 0] + 0.3 * np.random.default_rng(0).normal(size=50)
    own = from_log_prob(lambda f, y: jax.scipy.stats.norm.logpdf(y, f[:, 0], 0.3), 1)
    found = []
    for likelihood in (own, gaussian(0.3)):
        model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), likelihood)
        fit = credo.fit(jax.random.key(0), model, (x, y), "laplace", steps=300)
        predictive = credo.predict(jax.random.key(1), fit, x[:5], num_samples=100)
        low, high = predictive.interval(0.9)
        found.append([predictive.mean, predictive.std, low, high, predictive.log_prob(y[:5])])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=2e-3)


def test_classes_and_what_is_given():
    outputs = jnp.array([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
    own = from_log_prob(
        lambda f, y: jnp.take_along_axis(jax.nn.log_softmax(f), y[:, None], 1)[:, 0], 3, "classes", num_classes=3
    )
    plain = categorical(3)
    for piece in ("mean", "variance", "entropy"):
        np.testing.assert_allclose(getattr(own, piece)({}, outputs), getattr(plain, piece)({}, outputs), rtol=1e-5)
    given = from_log_prob(
        normal, 2, mean=lambda f: f[:, 0], variance=lambda f: jnp.exp(2 * f[:, 1]), cdf=lambda f, y: 0 * y + 0.25,
        sample=lambda key, f: f[:, 0],
    )  # fmt: skip
    pair = jnp.array([[1.0, 0.5]])
    assert given.mean({}, pair) == given.sample(jax.random.key(0), {}, pair) == 1.0
    assert float(given.variance({}, pair)[0, 0]) == pytest.approx(np.e)
    assert given.cdf({}, pair, pair[:, :1]) == 0.25


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: from_log_prob(normal, 0), "num_outputs must be"),
        (lambda: from_log_prob(normal, 2, "numbers"), "Unknown kind 'numbers'"),
        (lambda: from_log_prob(normal, 2, "classes"), "num_classes must be"),
        (lambda: from_log_prob(normal, 2, support=(1.0, 0.0)), "support is"),
        (
            lambda: from_log_prob(gamma, 2, support=(0.0, INFINITE)).prepare(np.array([1.0, -2.0])),
            "from 0 to inf, got -2",
        ),
        (lambda: from_log_prob(normal, 2).prepare(np.ones((3, 2))), "one target a row"),
        (lambda: from_log_prob(poisson, 1, "counts").prepare(np.array([0.5])), "needs counts"),
    ],
)
def test_what_does_not_fit(make, words):
    with pytest.raises(InputError, match=words):
        make()
