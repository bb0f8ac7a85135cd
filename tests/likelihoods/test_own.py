"""A likelihood of one's own: survival times, of which some are censored, without a curvature of its own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.likelihood import Likelihood, has_posterior
from credo.core.tree import struct
from credo.errors import InputError, Refusal
from credo.evaluation.diagnostics import loo
from credo.likelihoods import Overdispersed, Stretched, gaussian, mislabelled, poisson, student_t, zero_inflated_poisson
from credo.likelihoods.base import NoParameters
from credo.methods.laplace.curvature import output_columns, output_curvature

KEY = jax.random.key(0)


@struct
class Exponential(NoParameters):
    """A time t with rate e^(−f), of which only P(T > t) is known where the event has not happened: y = (t, event)."""

    kind = "real"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        array = np.asarray(targets, np.float32)
        if array.ndim != 2 or array.shape[1] != 2 or (array[:, 0] <= 0).any():
            raise InputError("Targets are pairs (time, event) with times above 0.")
        return array

    def num_outputs(self, targets: Any) -> int:
        return 1

    def log_prob(self, params, outputs, targets):
        time, event = targets[:, 0], targets[:, 1]
        return -event * outputs[:, 0] - time * jnp.exp(-outputs[:, 0])

    def mean(self, params, outputs):
        return jnp.exp(outputs)

    def variance(self, params, outputs):
        return jnp.exp(2 * outputs)

    def cdf(self, params, outputs, targets):
        return -jnp.expm1(-targets[:, :1] * jnp.exp(-outputs))

    def sample(self, key, params, outputs):
        return jnp.exp(outputs) * jax.random.exponential(key, outputs.shape)


class Without:
    """A likelihood that keeps its curvature to itself."""

    def __init__(self, inner):
        self.inner, self.kind = inner, inner.kind

    def __getattr__(self, name):
        if name in ("curvature", "curvature_columns"):
            raise AttributeError(name)
        return getattr(self.inner, name)


@pytest.fixture(scope="module")
def survival():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2)).astype(np.float32)
    time = np.exp(0.5 + x[:, 0]) * rng.exponential(size=100)
    event = time < 4
    return x, np.column_stack([np.minimum(time, 4) + 1e-6, event]).astype(np.float32)


@pytest.fixture(scope="module")
def fitted(survival):
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), Exponential())
    return credo.fit(KEY, model, survival, credo.methods.Laplace(learning_rate=0.05), steps=800)


def test_the_curvature_of_a_survival_time_is_that_of_its_own_row(survival):
    """−∂² log p/∂f² = t e^(−f), whether the event happened or not."""
    x, y = survival
    outputs = jnp.asarray(x[:, :1])
    found = output_curvature(Exponential(), {}, outputs, jnp.asarray(y))
    np.testing.assert_allclose(found[:, 0, 0], y[:, 0] * np.exp(-x[:, 0]), rtol=1e-5)
    assert isinstance(Exponential(), Likelihood)


def test_a_likelihood_that_does_not_say_whether_it_is_inferred_is_not():
    class Silent:
        pass

    assert not has_posterior(Silent())
    assert not has_posterior(gaussian("learned"))
    assert has_posterior(gaussian("inferred"))


def test_laplace_of_a_survival_model_is_the_inverse_hessian(survival, fitted):
    """Linear f: the posterior covariance is (X'diag(t e^(−f))X + I)⁻¹ at the mode, by hand."""
    x, y = survival
    draws = fitted.posterior.sample(KEY, 4000)["network"]["output"]
    theta = np.concatenate([np.asarray(draws["bias"]), np.asarray(draws["kernel"])[:, 0]], -1)
    design, centre = np.column_stack([np.ones(100), x]), theta.mean(0)
    weight = y[:, 0] * np.exp(-design @ centre)
    wanted = np.linalg.inv(design.T @ (weight[:, None] * design) + np.eye(3))
    # 4,000 draws: the standard error of a variance is 2.2 %, so that five of them are a false alarm below 1e-5 in all.
    np.testing.assert_allclose(np.cov(theta.T), wanted, atol=0.11 * np.diag(wanted).max())


def test_scores_take_targets_of_the_likelihoods_own_shape(survival, fitted):
    x, y = survival
    predictive = credo.predict(KEY, fitted, x, num_samples=50)
    outputs = np.concatenate([np.asarray(d.outputs)[:, : r.stop - r.start, 0] for r, d in predictive.chunks()], 1)
    each = -y[:, 1] * outputs - y[:, 0] * np.exp(-outputs)
    np.testing.assert_allclose(predictive.log_prob(y), np.log(np.exp(each).mean(0)), rtol=1e-3, atol=1e-4)
    with pytest.raises(InputError, match="2 targets"):
        predictive.log_prob(y[:, 0])
    with pytest.raises(Refusal, match="cannot be rescaled"):
        predictive.rescaled(0.0, 2.0)
    assert np.isfinite(loo(fitted, (x, y)).elpd)


@pytest.mark.parametrize("likelihood", [mislabelled(3, 0.1), credo.likelihoods.categorical(3)])
def test_classes_get_the_exact_expectation(likelihood):
    outputs = jax.random.normal(KEY, (6, likelihood.num_outputs(np.zeros(6, int))))
    labels, params = jnp.zeros(6, jnp.int32), {}
    found = output_curvature(Without(likelihood), params, outputs, labels)
    np.testing.assert_allclose(found, likelihood.curvature(params, outputs), rtol=1e-4, atol=1e-5)
    columns = output_columns("ggn", KEY, Without(likelihood), params, outputs, labels, jnp.ones(6))
    np.testing.assert_allclose(jnp.einsum("cni,cnj->nij", columns, columns), found, rtol=1e-4, atol=1e-5)


def test_where_the_hessian_is_constant_it_is_the_expectation():
    outputs, targets = jax.random.normal(KEY, (5, 2)), jnp.ones((5, 2))
    for likelihood in (gaussian(0.4), poisson()):  # −∂² log p/∂f² is free of y for both
        found = output_curvature(Without(likelihood), {}, outputs, targets)
        np.testing.assert_allclose(found, likelihood.curvature({}, outputs), rtol=1e-4, atol=1e-5)


def test_an_outlier_tells_nothing_rather_than_less():
    """Far out a Student-t is convex in f: its curvature counts as 0, and derivatives of it are finite."""
    likelihood = Without(student_t(df=4.0, noise=0.5))
    targets, outputs = jnp.array([[0.1, 50.0], [9.0, 9.0]]), jnp.zeros((2, 2))
    found = np.asarray(output_curvature(likelihood, {}, outputs, targets))
    assert found[0, 0, 0] > 0
    np.testing.assert_allclose(found[0, 1, 1], 0, atol=1e-6)
    np.testing.assert_allclose(found[1], 0, atol=1e-6)
    assert np.linalg.eigvalsh(found).min() > -1e-6
    slope = jax.grad(lambda f: output_curvature(likelihood, {}, f, targets).sum())(outputs)
    step = 1e-3 * np.eye(2)[[0]] * np.array([[1.0], [0.0]])
    numeric = (output_curvature(likelihood, {}, outputs + step, targets).sum() - found.sum()) / 1e-3
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[0, 0], numeric, rtol=0.05)


def test_a_corrected_likelihood_of_ones_own_has_the_curvature_of_its_density(survival):
    """Under Laplace a stretched density without a curvature of its own is differentiated: here by hand in f."""
    x, y = survival
    widened = Stretched(Without(gaussian(0.4)), 1.5)
    outputs, targets = jnp.asarray(x), jnp.ones((100, 2))
    found = output_curvature(widened, {}, outputs, targets)
    np.testing.assert_allclose(found, np.tile(np.eye(2) / (0.4 * 1.5) ** 2, (100, 1, 1)), rtol=1e-5)
    np.testing.assert_allclose(Stretched(gaussian(0.4), 1.5).curvature({}, outputs), found, rtol=1e-5)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), Stretched(Exponential(), 1.5))
    data = (x, np.column_stack([y[:, 0], np.ones(100)]))
    assert credo.fit(KEY, model, data, credo.methods.Laplace(learning_rate=0.05), steps=50).status.ok


def test_counts_of_ones_own_are_widened_by_their_mean_and_variance():
    inner = zero_inflated_poisson()
    outputs = jnp.array([[1.0, -0.5], [3.0, 1.0]])
    widened = Overdispersed(inner, 1.5)
    np.testing.assert_allclose(widened.mean({}, outputs), inner.mean({}, outputs))
    np.testing.assert_allclose(widened.variance({}, outputs), 1.5**2 * inner.variance({}, outputs), rtol=1e-5)
    counts = jnp.arange(400.0)[:, None]
    for row in outputs:
        mass = np.exp(widened.log_prob({}, jnp.tile(row, (400, 1)), counts))
        np.testing.assert_allclose(mass @ np.arange(400.0), inner.mean({}, row[None])[0, 0], rtol=1e-4)
        np.testing.assert_allclose(widened.cdf({}, jnp.tile(row, (400, 1)), counts)[:, 0], mass.cumsum(), atol=2e-4)
