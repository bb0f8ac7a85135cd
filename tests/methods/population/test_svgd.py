"""SVGD: the mean of a Gaussian posterior is exact, and the push leaves a spread that grows with the particles (B4)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.errors import InputError, NoDensity
from credo.methods.population.svgd import SVGD, stein_direction
from oracles import coefficients, linear

PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)
SPREAD = np.sqrt(np.diag(PROBLEM.covariance))


def particles(**options):
    batch = options.pop("batch_size", None)
    found = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, SVGD(**options), batch_size=batch)
    return coefficients(found.posterior.params["network"])[0].astype(np.float64)


def test_direction_is_the_sum_of_its_definition():
    """φ(x_i) = (1/n) Σ_j k(x_j, x_i) g_j + ∇_{x_j} k(x_j, x_i), with the kernel's gradient by autodiff."""
    x, g = (jax.random.normal(k, (6, 3)) for k in jax.random.split(jax.random.key(0)))
    found, bandwidth = jax.jit(stein_direction)(x, g)
    distances = np.linalg.norm(np.asarray(x)[:, None] - np.asarray(x), axis=-1)[np.triu_indices(6, 1)]
    assert float(bandwidth) == pytest.approx(np.median(distances) ** 2 / np.log(6), rel=1e-4)

    def kernel(a, b):
        return jnp.exp(-((a - b) ** 2).sum() / bandwidth)

    expected = [sum(kernel(x[j], x[i]) * g[j] + jax.grad(kernel)(x[j], x[i]) for j in range(6)) / 6 for i in range(6)]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("share", [1, 16])
def test_mean_is_exact_and_the_push_leaves_a_spread(share):
    theta = particles(particles=20, batch_size=len(PROBLEM.inputs) // share)
    assert (np.abs(theta.mean(0) - PROBLEM.mean) < 0.2 * PROBLEM.mean_field_std).all()
    ratio = theta.std(0) / SPREAD
    assert (ratio > 0.4).all()
    assert (ratio < 1.05).all()


@pytest.mark.full
def test_more_particles_spread_further_and_keep_correlations():
    few, many = particles(particles=10), particles(particles=60)
    assert (many.std(0) / SPREAD).mean() > (few.std(0) / SPREAD).mean() + 0.1
    true = PROBLEM.covariance / np.outer(SPREAD, SPREAD)
    assert np.abs(np.corrcoef(many.T) - true).max() < 0.15


def test_one_particle_is_the_mode():
    np.testing.assert_allclose(particles(particles=1)[0], PROBLEM.mean, atol=1e-3)


@pytest.mark.parametrize("start", ["init", "start", "prior"])
def test_particles_are_one_measure(start, tmp_path):
    """One member with equal weights: no chain diagnostics, predictions over all particles, saved and loaded."""
    method = SVGD(particles=12, start=start)
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, method, steps=1500)
    assert coefficients(fit.posterior.params["network"]).shape == (1, 12, 5)
    assert fit.diagnostics.kind == "weighted"
    assert fit.status.ok
    assert fit.status.alarms == ()
    with pytest.raises(NoDensity):
        fit.posterior.log_prob({})
    fit.save(tmp_path / "run")
    first, second = (
        credo.predict(jax.random.key(1), f, PROBLEM.inputs[:3]).std for f in (fit, credo.load(tmp_path / "run"))
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.full
def test_learned_noise_is_inferred_and_options_are_checked():
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian("learned"))
    fit = credo.fit(jax.random.key(0), model, DATA, SVGD(particles=10), steps=2000)
    assert any("default prior" in note for note in fit.notes)
    noise = np.exp(np.asarray(fit.posterior.params["likelihood"]["log_scale"])).mean()
    assert noise == pytest.approx(PROBLEM.noise, rel=0.15)
    for options, match in (({"particles": 0}, "one particle"), ({"start": "there"}, "start must be")):
        with pytest.raises(InputError, match=match):
            SVGD(**options).prepare(model)
