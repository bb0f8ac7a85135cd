"""The reference surrogate against scikit-learn; standardised targets (H1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from credo.applications.optimise.belief import as_numpy, moments, posterior_covariance
from credo.applications.optimise.gp import GaussianProcess, posterior
from credo.applications.optimise.hyper import log_evidence, log_prior, maximise, sample, starts, unpacked
from credo.applications.optimise.targets import room, standardised

RNG = np.random.default_rng(2)
X, NEW = RNG.random((15, 3)), RNG.random((7, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=15)
CHOSEN = {"length": np.log([0.5, 1.5, 3.0]), "scale": np.log(1.7), "noise": np.log(0.02), "constant": 0.0}


def padded(size=32):
    fill = lambda a: np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]))])  # noqa: E731
    return [jnp.asarray(fill(a), jnp.float64) for a in (X, Y, np.ones(15))]


@pytest.fixture(scope="module")
def peer():
    kernel = ConstantKernel(1.7) * Matern([0.5, 1.5, 3.0], nu=2.5) + WhiteKernel(0.02)
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)


def test_evidence_and_its_slope_are_scikit_learns(peer):
    theta = np.concatenate([[np.log(1.7)], np.log([0.5, 1.5, 3.0]), [np.log(0.02)]])
    value, slope = peer.log_marginal_likelihood(theta, eval_gradient=True)
    with jax.enable_x64(True):
        found, own = jax.jit(jax.value_and_grad(log_evidence))(jax.tree.map(jnp.asarray, CHOSEN), *padded())
    np.testing.assert_allclose(float(found), value, rtol=1e-5)
    own = np.concatenate([[own["scale"]], own["length"], [own["noise"]]])
    np.testing.assert_allclose(own, slope, rtol=1e-4, atol=1e-4)


def test_the_posterior_is_scikit_learns(peer):
    mean, covariance = peer.predict(NEW, return_cov=True)
    with jax.enable_x64(True):
        belief = as_numpy(posterior(jax.tree.map(jnp.asarray, CHOSEN), *padded()))
    found = moments(belief, NEW, NEW[:0])
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1] ** 2, np.diagonal(covariance) - 0.02, rtol=1e-4, atol=1e-6)


def test_the_search_ends_at_a_maximum():
    fitted = GaussianProcess(draws=1).fit(jax.random.key(0), X, Y)
    belief = fitted.belief.part(0)
    y, shift, scale = standardised(Y)
    chosen = {
        "length": np.log(belief.kernel.length), "scale": 2 * np.log(belief.kernel.scale), "noise": np.log(belief.noise),
        "constant": belief.constant,
    }  # fmt: skip
    with jax.enable_x64(True):
        x, _, weight = padded()
        target = jnp.asarray(np.concatenate([y, np.zeros(17)]))
        total = jax.jit(lambda c: log_evidence(c, x, target, weight) + log_prior(c))
        best = float(total(chosen))
        for name, value in chosen.items():
            for step in (-0.05, 0.05):
                assert float(total(chosen | {name: value + step})) < best + 1e-4, name
    assert (shift, scale) == (fitted.shift, fitted.scale)
    # The third column does nothing: its length scale is the longest.
    assert np.argmax(belief.kernel.length) == 2


def test_length_scales_are_independent_around_a_common_level():
    """The density of log ℓ up to a constant: that of N(μ, 11' + ¼I), whose covariance is written out here."""
    covariance = np.ones((3, 3)) + 0.25 * np.eye(3)
    peer = stats.multivariate_normal(np.full(3, 0.4 + 0.5 * np.log(3)), covariance)
    places = RNG.normal(size=(4, 3))
    with jax.enable_x64(True):
        found = [float(log_prior(CHOSEN | {"length": jnp.asarray(p)})) for p in places]
    np.testing.assert_allclose(np.diff(found), np.diff(peer.logpdf(places)), rtol=1e-9)


def test_draws_of_hyper_parameters_are_those_of_the_posterior():
    """One row says nothing of length scales: their draws are the prior's, with mean and spread within four errors.

    Chains start at the maximum, the prior's mean, so that half-way draws are narrower: the ends alone are judged.
    """
    with jax.enable_x64(True):
        data = [jnp.asarray(a) for a in (np.zeros((4, 2)), np.zeros(4), np.array([1.0, 0, 0, 0]))]
        ends, values = maximise(jnp.asarray(starts(2)), *data, None)
        found, taken = sample(jax.random.key(0), ends[int(np.argmax(values))], *data, None, 200)
    length = np.asarray(found)[1::2, :2]
    level, variance = 0.4 + 0.5 * np.log(2), 1.25
    assert 0.4 < float(taken) <= 1
    assert abs(length.mean() - level) < 4 * np.sqrt(1.125 / len(length))
    assert 0.7 < length.std() / np.sqrt(variance) < 1.2
    assert unpacked(found[0], 2)["length"].shape == (2,)


def test_a_mixture_has_the_moments_of_its_parts():
    belief = GaussianProcess(draws=3).fit(jax.random.key(0), X, Y).belief
    parts = [posterior_covariance(belief.part(k), NEW) for k in range(3)]
    mean, covariance = posterior_covariance(belief, NEW)
    means = np.array([m for m, _ in parts])
    np.testing.assert_allclose(mean, means.mean(0), atol=1e-12)
    expected = np.mean([c for _, c in parts], 0) + np.cov(means.T, bias=True)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    np.testing.assert_allclose(moments(belief, NEW, NEW[:0])[1] ** 2, np.diagonal(expected), atol=1e-10)


def test_known_noise_is_kept():
    fitted = GaussianProcess(noise=0.2).fit(jax.random.key(0), X, Y)
    assert np.sqrt(fitted.belief.noise) * fitted.scale == pytest.approx(0.2, rel=1e-6)


def test_bad_outliers_do_not_rule_the_scale():
    gains = np.concatenate([RNG.normal(size=30), [-1e6]])
    values, shift, scale = standardised(gains)
    assert abs(values).max() < 6
    np.testing.assert_allclose(shift + scale * values[:30], gains[:30])
    good, _, _ = standardised(np.concatenate([gains[:30], [1e3]]))
    assert good.max() > 5
    assert standardised(np.full(4, 3.0))[0].tolist() == [0.0] * 4
    assert [room(n) for n in (1, 32, 33, 64, 65)] == [32, 32, 64, 64, 128]
