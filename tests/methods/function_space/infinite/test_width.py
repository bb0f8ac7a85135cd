"""How finite networks approach their limit: covariance, excess kurtosis, prior and posterior.

Given its hidden units a network is normal over the output's weights, so moments over those weights are taken in closed
form (`given_hidden`): what is left to chance is the hidden units alone. Keys are fixed; false-alarm rates are those
that fresh keys would have.
"""

import jax
import numpy as np
import pytest
from scipy import stats

import credo
from credo.methods.function_space.infinite import kernel_of
from credo.methods.function_space.infinite.kernels import erf_moment

from .nets import POINTS, SCALE, given_hidden, hidden_units, model

WIDTHS = (4, 16, 64, 256)


def slope(widths, values):
    return np.polyfit(np.log(widths), np.log(values), 1)[0]


@pytest.mark.parametrize("activation", ["erf", pytest.param("relu", marks=pytest.mark.full)])
def test_one_layer_has_the_kernel_at_every_width_and_kurtosis_falls_as_one_over_width(activation):
    """Covariances: all z-scores below the Bonferroni bound for 1e-4. Excess kurtosis 3 Var[s²]/E[s²]² of f(x), s² its
    variance given the hidden units: from 3,000 networks its relative error is 4 %, that of the slope
    0.01; it must be within 0.1."""
    truth = kernel_of(model([4], activation), 2)(POINTS.astype(np.float64))
    scores, kurtosis = [], []
    for i, width in enumerate(WIDTHS):
        found = given_hidden(hidden_units(jax.random.key(i), [width], 3000, activation))
        scores.append((found.mean(0) - truth) / (found.std(0) / np.sqrt(len(found))))
        own = np.diagonal(found, axis1=1, axis2=2)
        kurtosis.append(3 * own.var(0) / own.mean(0) ** 2)
    upper = np.abs(np.array(scores)[(slice(None), *np.triu_indices(3))])
    assert upper.max() < stats.norm.isf(1e-4 / 2 / upper.size)
    slopes = [slope(WIDTHS, k) for k in np.transpose(kurtosis)]
    np.testing.assert_allclose(slopes, -1, atol=0.1)


@pytest.mark.full
def test_two_layers_are_off_by_one_over_width():
    """E[F(Q)] − F(E[Q]) with Q the covariance of the second layer's inputs given the first and F the erf moment.

    The linear part of F(Q) − F(K) has mean 0 and is taken off: the rest is of the size of the bias itself, so that
    10,000 networks tell it to 3 % at every width, and the slope to 0.02."""
    with jax.enable_x64(True):
        truth = kernel_of(model([4]), 2)(POINTS.astype(np.float64))

        def moment(q):
            own = jax.numpy.diagonal(q)
            return SCALE**2 * erf_moment(q, own[:, None], own[None, :])

        @jax.jit
        @jax.vmap
        def rest(q):
            value, linear = jax.jvp(moment, (jax.numpy.asarray(truth),), (q - truth,))
            return moment(q) - value - linear

        bias = []
        for i, width in enumerate(WIDTHS[:-1]):
            with jax.enable_x64(False):
                found = given_hidden(hidden_units(jax.random.key(10 + i), [width], 10_000))
            bias.append(np.abs(np.asarray(rest(found)).mean(0))[np.triu_indices(3)])
    slopes = [slope(WIDTHS[:-1], b) for b in np.transpose(bias)]
    # The largest entries; where an error happens to be near 0 its own slope says nothing.
    large = np.transpose(bias)[:, 0] > 0.2 * np.max(bias[0])
    np.testing.assert_allclose(np.array(slopes)[large], -1, atol=0.15)


@pytest.mark.full
def test_deep_networks_themselves_are_off_by_one_over_width():
    """The same without closed forms for the second layer: covariance given both hidden layers, 200,000 networks of each
    width. The error of a bias is then below a tenth of it up to width 32, and that of the slope about 0.05; three of
    them are 0.15."""
    truth = kernel_of(model([4, 4]), 2)(POINTS.astype(np.float64))
    bias, widths = [], (4, 8, 16, 32)
    for i, width in enumerate(widths):
        parts = [given_hidden(hidden_units(jax.random.key(100 * i + j), [width, width], 10_000)) for j in range(20)]
        bias.append(np.abs(np.concatenate(parts).mean(0) - truth).trace())
    np.testing.assert_allclose(slope(widths, bias), -1, atol=0.15)


@pytest.mark.full
def test_draws_of_functions_have_the_kurtosis_that_their_hidden_units_say():
    """f itself, output weights drawn too: 200,000 networks of width 8; five standard errors √(24/n) (below 1e-5)."""
    given = model([8])
    drawn = credo.prior_predictive(jax.random.key(5), given, POINTS, num_samples=200_000).functions
    own = np.diagonal(given_hidden(hidden_units(jax.random.key(6), [8], 100_000)), axis1=1, axis2=2)
    expected = 3 * own.var(0) / own.mean(0) ** 2
    # Kurtosis of a heavier tail varies more than that of a normal: twice as much is ample at 0.3.
    np.testing.assert_allclose(stats.kurtosis(drawn), expected, atol=10 * np.sqrt(24 / 200_000))


@pytest.mark.parametrize("activation", ["relu", pytest.param("erf", marks=pytest.mark.full)])
def test_wide_random_networks_have_the_kernel(activation):
    """Two hidden layers of 200: within five standard errors (below 1e-5) and a bias of 1 % for the finite width."""
    truth = kernel_of(model([4, 4], activation), 2)(POINTS.astype(np.float64))
    found = given_hidden(hidden_units(jax.random.key(3), [200, 200], 200, activation))
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - truth) < 5 * error + 0.01 * np.diag(truth).max()).all()


def test_a_wide_prior_predictive_is_that_of_the_limit():
    """Variance of 4,000 draws: relative error √(2/4000) = 2.2 %, and five of it (below 1e-5). The mean: likewise."""
    given = model([256], "relu")
    prior = credo.prior_predictive(jax.random.key(4), given, POINTS, num_samples=4000)
    truth = kernel_of(given, 2).diagonal(POINTS.astype(np.float64))
    np.testing.assert_allclose(prior.epistemic, truth, rtol=5 * np.sqrt(2 / 4000))
    np.testing.assert_allclose(prior.mean / np.sqrt(truth), 0, atol=5 / np.sqrt(4000))
    np.testing.assert_allclose(prior.aleatoric, 0.01, rtol=1e-5)


@pytest.mark.full
def test_the_posterior_of_a_wide_network_is_close_to_the_limit_and_closer_than_a_narrow_one():
    """NUTS on one hidden layer and ten rows; chains of 1,000 draws know means to about 0.05 standard deviations."""
    rng = np.random.default_rng(1)
    x = np.linspace(-1.5, 1.5, 10, dtype=np.float32)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=10)
    new = np.linspace(-2.5, 2.5, 21, dtype=np.float32)[:, None]
    options = {"noise": 0.1, "scale": 2.0, "bias": 1.0}
    limit = credo.fit(jax.random.key(0), model([1], **options), (x, y), "infinite_width")
    mean, variance = (v[:, 0] for v in limit.posterior.moments(new))
    off = {}
    for width in (3, 256):
        chains = credo.methods.NUTS(chains=4, warmup=500)
        fit = credo.fit(jax.random.key(1), model([width], **options), (x, y), chains, steps=1000)
        found = credo.predict(jax.random.key(2), fit, new)
        shift = (found.mean - mean) / np.sqrt(variance)
        ratio = np.log(np.sqrt(found.epistemic / variance))
        off[width] = (np.sqrt((shift**2).mean()), np.sqrt((ratio**2).mean()))
    assert off[256][0] < 0.15, off
    assert off[256][1] < 0.1, off
    assert off[256][0] < 0.5 * off[3][0], off
    assert off[256][1] < 0.5 * off[3][1], off
