"""C5: SWAG's moments are those of its snapshots, its draws and density those of its Gaussian, its mean the mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import credo
from credo.core.batch import Batch
from credo.errors import InputError
from credo.methods import SWAG, MultiSWAG, replicate
from oracles import coefficients, linear

KEY = jax.random.key(0)
PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)


def run(method, steps, seed=0):
    """Iterates of the averaging phase on random halves of the data, step by step, and the last state."""
    model = PROBLEM.model()
    data = Batch(jnp.asarray(PROBLEM.inputs), jnp.asarray(PROBLEM.targets)[:, None], jnp.ones(256), jnp.float32(256))
    state = method.init(KEY, model, model.init(KEY, data), data)
    phase = method.phases(256, 10)[1]

    @jax.jit
    def step(state, key):
        rows = jax.random.permutation(key, 256)[:32]
        batch = Batch(data.inputs[rows], data.targets[rows], data.weight[rows], data.num_data)
        state, _ = method.step(key, model, phase, state, batch)
        return state, state.values

    state, values = jax.lax.scan(step, state, jax.random.split(jax.random.key(seed), steps))
    members = jax.tree.map(lambda x: x[None], state)
    return np.asarray(values, np.float64), jax.jit(method.posterior)(model, members, None)


def flat(tree):
    """A tree of the linear model's weights as a vector (bias, kernel), leading and trailing axes kept."""
    return coefficients(tree["network"])


@pytest.mark.parametrize("taken", [12, 25])
def test_moments_are_those_of_the_snapshots(taken):
    """Mean, variance and the last K deviations from the running mean, against NumPy; fewer than K or more."""
    method = SWAG(every=3, rank=15, averaging_steps=100)
    iterates, posterior = run(method, 3 * taken + 2)
    snapshots = iterates[2::3][:taken]
    running = np.cumsum(snapshots, 0) / np.arange(1, taken + 1)[:, None]
    deviations = (snapshots - running)[-15:]
    mean, std = (flat(tree)[0] for tree in (posterior.mean, posterior.std))
    np.testing.assert_allclose(mean, snapshots.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(std, snapshots.std(0) / np.sqrt(2), rtol=1e-3)
    layer = posterior.factor["network"]["output"]
    factor = np.concatenate([np.asarray(layer["bias"])[0], np.asarray(layer["kernel"])[0, 0]])
    wide = std[:, None] * factor
    expected = deviations.T @ deviations / (2 * (len(deviations) - 1))
    np.testing.assert_allclose(wide @ wide.T, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_draws_and_density_are_those_of_the_gaussian():
    """Σ = ½ diag(σ²) + DD'/2(K − 1): entries of the covariance of 20,000 draws, |z| < 4.9: false alarms 3e-5 over 30
    numbers; log density against SciPy."""
    _, posterior = run(SWAG(every=1, rank=5, averaging_steps=100), 60)
    std = flat(posterior.std)[0].astype(np.float64)
    layer = posterior.factor["network"]["output"]
    factor = np.concatenate([np.asarray(layer["bias"])[0], np.asarray(layer["kernel"])[0, 0]]).astype(np.float64)
    covariance = np.diag(std**2) + (std[:, None] * factor) @ (std[:, None] * factor).T
    mean = flat(posterior.mean)[0].astype(np.float64)
    draws = posterior.sample(KEY, 20_000)
    values = flat(draws).astype(np.float64) - mean
    assert np.abs(values.mean(0) / np.sqrt(np.diag(covariance) / 20_000)).max() < 4.9
    products = values[:, :, None] * values[:, None, :]
    assert np.abs((products.mean(0) - covariance) / (products.std(0) / 20_000**0.5)).max() < 4.9
    log_prob = jax.jit(jax.vmap(posterior.log_prob))(jax.tree.map(lambda x: x[:50], draws))
    expected = scipy.stats.multivariate_normal.logpdf(values[:50] + mean, mean, covariance)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.full
def test_the_mean_is_the_posterior_mean_for_every_batch_size():
    """0.2 of a posterior standard deviation; the spread is that of iterates and grows as gradients use fewer rows."""
    spreads = []
    for size, rows in ((256, 256), (256, 64), (64, 16)):
        method = SWAG(averaging_rows=rows, averaging_steps=10_000)
        fit = credo.fit(KEY, PROBLEM.model(), DATA, method, steps=5000, batch_size=size)
        std = np.sqrt(np.diag(PROBLEM.covariance))
        assert (np.abs(flat(fit.posterior.mean)[0] - PROBLEM.mean) / std).max() < 0.2
        spreads.append((flat(fit.posterior.std)[0] / std).mean())
    assert spreads[0] < 0.01
    assert 0.05 < spreads[1] < 0.8 * spreads[2] < 0.8
    assert fit.trace["loss"].shape == (1, 5000)
    assert set(fit.phases) == {"optimise", "average"}


@pytest.mark.full
def test_learned_noise_is_a_point_and_inferred_noise_is_not(tmp_path):
    for noise in ("learned", "inferred"):
        model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise))
        fit = credo.fit(KEY, model, DATA, SWAG(averaging_steps=100, rank=4), steps=50, batch_size=32)
        assert ("likelihood" in fit.posterior.points) == (noise == "learned")
        assert ("likelihood" in fit.posterior.mean) == (noise == "inferred")
    fit.save(tmp_path / "run")
    pair = [credo.predict(KEY, f, PROBLEM.inputs[:5]).mean for f in (fit, credo.load(tmp_path / "run"))]
    np.testing.assert_array_equal(*pair)


@pytest.mark.full
def test_multi_swag_is_replicated_swag():
    model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.5))
    options = {"averaging_steps": 60, "rank": 3}
    one, two = (
        credo.fit(KEY, model, DATA, m, steps=40, batch_size=32)
        for m in (MultiSWAG(size=3, **options), replicate(SWAG(**options), 3))
    )
    jax.tree.map(np.testing.assert_array_equal, one.posterior, two.posterior)
    assert one.posterior.members == 3


def test_too_few_snapshots_are_refused():
    for options in ({"averaging_steps": 10}, {"rank": 1}, {"every": 0}, {"averaging_rows": 0}):
        with pytest.raises(InputError, match=r"at least 2 snapshots|at least 1"):
            credo.fit(KEY, PROBLEM.model(), DATA, SWAG(**options), steps=2)
