"""The Laplace approximation: against scikit-learn's, against the truth, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special
from sklearn.gaussian_process import GaussianProcessClassifier

import credo
from credo.methods.function_space.infinite import kernel, laplace
from credo.methods.function_space.infinite.laplace import Observations, find_mode, smooth_evidence
from credo.methods.function_space.infinite.regression import regression

from .nets import BIAS, SCALE, model
from .peers import Wide

RNG = np.random.default_rng(2)
X = RNG.normal(size=(25, 2)).astype(np.float32)
LABELS = (X[:, 0] + 0.5 * RNG.normal(size=25) > 0).astype(np.int32)
NEW = RNG.normal(size=(10, 2)).astype(np.float32)
K = kernel(1, "erf", weight=SCALE**2, bias=BIAS**2)


def classifier(likelihood, targets, weight=None, inputs=X):
    base = model([20])
    given = credo.Model(base.network, base.prior, likelihood)
    data = (inputs, targets) if weight is None else (inputs, targets, weight)
    return credo.fit(jax.random.key(0), given, data, "infinite_width")


@pytest.fixture(scope="module")
def binary():
    return classifier(credo.likelihoods.bernoulli(), LABELS)


def test_two_classes_are_those_of_scikit_learn(binary):
    """The mode, the evidence and the latent moments to 1e-6; probabilities to the error of its formula for them."""
    peer = GaussianProcessClassifier(Wide(binary.posterior.kernel), optimizer=None).fit(X.astype(np.float64), LABELS)
    latent = peer.base_estimator_
    np.testing.assert_allclose(binary.posterior.moments(X)[0][:, 0], latent.f_cached, atol=1e-6)
    np.testing.assert_allclose(binary.posterior.log_evidence, latent.log_marginal_likelihood_value_, rtol=1e-6)
    mean, variance = (v[:, 0] for v in binary.posterior.moments(NEW))
    their_mean, their_variance = latent.latent_mean_and_variance(NEW.astype(np.float64))
    np.testing.assert_allclose(mean, their_mean, atol=1e-6)
    np.testing.assert_allclose(variance, their_variance, atol=1e-6)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    probability = special.expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights / weights.sum()
    np.testing.assert_allclose(probability, peer.predict_proba(NEW.astype(np.float64))[:, 1], atol=1e-3)
    drawn = credo.predict(jax.random.key(1), binary, NEW, num_samples=20_000).probs[:, 1]
    # A probability from 20,000 draws has an error below 0.5/√20000; five of them, for ten numbers: below 1e-5.
    np.testing.assert_allclose(drawn, probability, atol=5 * 0.5 / np.sqrt(20_000))


def test_close_to_the_truth_on_five_rows():
    """Truth by importance sampling: 100,000 draws of Student-t around the mode, whose error is below 0.003."""
    x, y = X[:5], LABELS[:5]
    fit = classifier(credo.likelihoods.bernoulli(), y, inputs=x)
    gram, cross = K(x.astype(np.float64)), K(x.astype(np.float64), NEW.astype(np.float64))
    mode, covariance = fit.posterior.moments(x, covariance=True)
    root = np.linalg.cholesky(covariance[:, 0, :, 0])
    rng = np.random.default_rng(0)
    z = rng.standard_normal((100_000, 5)) / np.sqrt(rng.chisquare(8, (100_000, 1)) / 8)
    f = mode[:, 0] + z @ root.T
    proposal = -0.5 * 13 * np.log1p((z * z).sum(1) / 8) - np.log(np.diag(root)).sum()
    constant = special.gammaln(6.5) - special.gammaln(4) - 2.5 * np.log(8 * np.pi)
    solved = np.linalg.solve(gram, f.T).T
    log_prior = -0.5 * (f * solved).sum(1) - 0.5 * np.linalg.slogdet(2 * np.pi * gram)[1]
    log_weights = special.log_expit((2 * y - 1) * f).sum(1) + log_prior - proposal - constant
    evidence = special.logsumexp(log_weights) - np.log(len(z))
    weights = np.exp(log_weights - special.logsumexp(log_weights))
    assert 1 / (weights**2).sum() > 30_000
    spread = K.diagonal(NEW.astype(np.float64)) - (cross * np.linalg.solve(gram, cross)).sum(0)
    nodes, quadrature = np.polynomial.hermite_e.hermegauss(30)
    means = solved @ cross
    each = special.expit(means[..., None] + np.sqrt(spread)[:, None] * nodes) @ quadrature / quadrature.sum()
    truth = weights @ each
    mean, variance = (v[:, 0] for v in fit.posterior.moments(NEW))
    found = special.expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ quadrature / quadrature.sum()
    np.testing.assert_allclose(found, truth, atol=0.03)  # what Laplace costs here
    np.testing.assert_allclose(fit.posterior.log_evidence, evidence, atol=0.1)


def test_weights_are_rows():
    weight = np.ones(25, np.float32)
    weight[:3] = 3.0
    rows = np.repeat(np.arange(25), weight.astype(int))
    weighted = classifier(credo.likelihoods.bernoulli(), LABELS, weight)
    repeated = classifier(credo.likelihoods.bernoulli(), LABELS[rows], inputs=X[rows])
    for a, b in zip(weighted.posterior.moments(NEW), repeated.posterior.moments(NEW)):
        np.testing.assert_allclose(a, b, atol=1e-7)
    np.testing.assert_allclose(weighted.posterior.log_evidence, repeated.posterior.log_evidence, rtol=1e-9)


NOISY = X[:, :1].astype(np.float64) + 0.3 * RNG.normal(size=(25, 1))
CASES = {
    "categorical": (credo.likelihoods.categorical(3), (np.digitize(X[:, 0], [-0.5, 0.5])).astype(np.int32), {}, 3),
    "student_t": (credo.likelihoods.student_t(noise="learned"), NOISY, {"log_scale": -1.0}, 1),
    "poisson": (credo.likelihoods.poisson(), np.floor(3 + NOISY).clip(0), {}, 1),
    "heteroscedastic": (credo.likelihoods.heteroscedastic(), NOISY, {}, 2),
}
QUICK = ("categorical", "student_t")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in CASES])
def test_mode_and_derivatives_of_the_evidence(name):
    """f = K∇log p at the mode; the evidence's derivative is that of finite differences, the mode's move included."""
    likelihood, targets, params, outputs = CASES[name]
    with jax.enable_x64(True):
        x, y = jnp.asarray(X, jnp.float64), jnp.asarray(targets)
        weight = jnp.ones(25).at[3].set(0.0).at[4].set(2.0)
        rows = Observations(likelihood, y, weight)

        def at(theta):
            gram = kernel(1, "erf", weight=jnp.exp(theta[0]), bias=jnp.exp(theta[1]))(x)
            return gram, {n: jnp.full(1, theta[2]) for n in params}

        @jax.jit
        def solve(theta):
            gram, nu = at(theta)
            found = find_mode(gram, rows, nu, jnp.zeros((25, outputs)))
            return found, gram @ jax.grad(rows.log_prob, 1)(nu, found.mode), gram @ found.coefficients

        @jax.jit
        @jax.value_and_grad
        def smooth(theta, found):
            gram, nu = at(theta)
            return smooth_evidence(gram, rows, nu, found)

        theta = jnp.array([0.8, -0.5, -1.0])
        found, fixed, again = solve(theta)
        np.testing.assert_allclose(fixed, found.mode, atol=1e-4)  # K is large: steeper than the mode is uncertain
        np.testing.assert_allclose(again, found.mode, atol=1e-9)
        value, gradient = smooth(theta, found)
        np.testing.assert_allclose(value, found.log_evidence, rtol=1e-6)
        step = 1e-4
        for i in range(3 if params else 2):
            move = step * jnp.eye(3)[i]
            slope = (solve(theta + move)[0].log_evidence - solve(theta - move)[0].log_evidence) / (2 * step)
            np.testing.assert_allclose(gradient[i], slope, rtol=1e-3, atol=1e-4)


def test_a_search_that_stops_early_tells_how_far_it_is(monkeypatch):
    """½ g'(K⁻¹ + W)⁻¹g by dense algebra after no, one and all rounds of Newton's method."""
    likelihood, targets, _, outputs = CASES["poisson"]
    found = {}
    with jax.enable_x64(True):
        gram = kernel(1, "erf", weight=2.0, bias=0.5)(jnp.asarray(X, jnp.float64))
        rows = Observations(likelihood, jnp.asarray(targets), jnp.ones(25))
        for rounds in (0, 1, 200):
            monkeypatch.setattr(laplace, "ROUNDS", rounds)
            at = jax.jit(lambda gram: find_mode(gram, rows, {}, 0.1 * jnp.ones((25, outputs))))(gram)
            mean = np.exp(np.asarray(at.mode)[:, 0])  # of a Poisson, and its curvature in the logarithm
            gradient = targets[:, 0] - mean - np.asarray(at.coefficients)[:, 0]
            moved = np.linalg.solve(np.eye(25) + np.asarray(gram) * mean, np.asarray(gram) @ gradient)
            np.testing.assert_allclose(at.decrement, 0.5 * gradient @ moved, rtol=1e-6, atol=1e-12)
            found[rounds] = float(at.decrement)
    assert found[0] > found[1] > 1 > found[200]
    assert found[200] < 1e-9


def test_gaussian_noise_makes_laplace_exact():
    with jax.enable_x64(True):
        gram = jnp.asarray(K(X.astype(np.float64)))
        y = jnp.asarray(np.stack([X[:, 0], X[:, 1] ** 2], 1), jnp.float64)
        weight = jnp.ones(25).at[0].set(0.5).at[1].set(0.0)
        exact = jax.jit(regression)(gram, y, weight, jnp.log(jnp.array([0.2, 0.5])))
        rows, params = (
            Observations(credo.likelihoods.gaussian(), y, weight),
            {"log_scale": jnp.log(jnp.array([0.2, 0.5]))},
        )
        found = jax.jit(find_mode)(gram, rows, params, jnp.zeros((25, 2)))
        for a, b in zip(found, exact):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_three_classes_predict_and_keep_the_order_of_classes():
    likelihood, targets, _, _ = CASES["categorical"]
    fit = classifier(likelihood, targets)
    predictive = credo.predict(jax.random.key(0), fit, X)
    assert (predictive.probs.argmax(1) == targets).mean() > 0.8
    np.testing.assert_allclose(predictive.probs.sum(1), 1, atol=1e-5)
    _, covariance = fit.posterior.moments(X[:4], covariance=True)
    flat = covariance.reshape(12, 12)
    np.testing.assert_allclose(flat, flat.T, atol=1e-12)
    assert np.linalg.eigvalsh(flat).min() > 0
    assert np.abs(covariance[0, 0, 0, 1]) > 1e-3  # logits of one row are coupled
