"""Scores from draws have no bias, however few draws: the mean over 2,000 keys against closed forms.

|z| < 5 in each of 18 cases: false alarms below 2·10⁻⁵.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from credo import likelihoods
from credo.core.mixture import Flat
from credo.evaluation import metrics
from credo.evaluation.metrics import arrays
from credo.evaluation.metrics.distances import _crps_draws, _energy_draws
from predictives import predictive

KEYS = 2000
MEANS = np.array([-1.0, 0.2, 0.3, 1.5, 4.0])
WEIGHTS = {"equal": np.full(5, 0.2), "weighted": np.array([0.05, 0.4, 0.15, 0.3, 0.1])}
either = pytest.mark.parametrize("mass", WEIGHTS.values(), ids=WEIGHTS)
few = pytest.mark.parametrize("draws", [2, 7, 40])


@partial(jax.jit, static_argnums=(0, 1))
def estimates(function, num, likelihood, flat, y):
    """One estimate for each key, at one row."""
    keys = jax.random.split(jax.random.key(0), KEYS)
    return jax.vmap(lambda key: function(likelihood, flat, y, jnp.ones_like(y), key, num))(keys)


def check(function, num, likelihood, outputs, mass, y, exact):
    flat = Flat(jnp.asarray(outputs, jnp.float32)[:, None], {}, jnp.log(jnp.asarray(mass, jnp.float32)))
    found = np.asarray(estimates(function, num, likelihood, flat, jnp.asarray(y, jnp.float32)[None])).ravel()
    assert len(found) == KEYS
    assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(KEYS)


@few
@either
def test_crps_of_counts(mass, draws):
    """Σ_y (F(y) − 1[y ≥ t])²."""
    y = np.arange(400)
    below = mass @ stats.poisson(np.exp(MEANS)[:, None]).cdf(y)
    exact = ((below - (y >= 3)) ** 2).sum()
    check(_crps_draws, draws, likelihoods.poisson(), MEANS[:, None], mass, [3.0], exact)


def normal_crps(mass):
    column, spread = MEANS[:, None], np.full((5, 1), 0.3)
    return float(arrays.crps_normal_mixture(column, spread, mass, np.array([0.5]))[0])


@few
@either
def test_energy_score_of_one_output_is_the_crps_of_normals(mass, draws):
    check(_energy_draws, draws, likelihoods.gaussian(noise=0.3), MEANS[:, None], mass, [0.5], normal_crps(mass))


def mean_length(distance, spread):
    """E‖m + s ε‖ in the plane, ε standard normal (Rice)."""
    return spread * np.sqrt(np.pi / 2) * special.hyp1f1(-0.5, 1.0, -(distance**2) / (2 * spread**2))


@few
@either
def test_energy_score_of_two_outputs(mass, draws):
    """E‖Y − y‖ − ½ E‖Y − Y'‖ by the mean of a Rice distribution."""
    centres, y = np.column_stack([MEANS, MEANS**2 / 4]), np.array([0.5, -0.5])
    near = mass @ mean_length(np.linalg.norm(centres - y, axis=1), 0.3)
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    exact = near - 0.5 * mass @ mean_length(apart, 0.3 * np.sqrt(2)) @ mass
    check(_energy_draws, draws, likelihoods.gaussian(noise=0.3), centres, mass, y, exact)


def test_two_samples_by_hand():
    rng = np.random.default_rng(0)
    first, second, y = rng.normal(size=(3, 4)).round(1), rng.normal(size=(5, 4)).round(1), rng.normal(size=4)
    near = np.abs(np.concatenate([first, second]) - y).mean(0)
    wanted = near - 0.5 * np.abs(first[:, None] - second).mean((0, 1))
    np.testing.assert_allclose(arrays.crps_two_samples(first, second, y), wanted, rtol=1e-5)
    columns = (first[..., None], second[..., None], y[:, None])
    np.testing.assert_allclose(arrays.energy_two_samples(*columns), wanted, rtol=1e-5)


def test_the_mean_over_many_rows():
    """Rows of one block share the components that were drawn: 1,000 draws leave an error of some 0.1 %."""
    p = predictive(likelihoods.student_t(df=1e6, noise=0.3), np.repeat(MEANS[:, None, None], 1500, 1))
    assert metrics.crps(p, np.full(1500, 0.5)) == pytest.approx(normal_crps(WEIGHTS["equal"]), rel=5e-3)
