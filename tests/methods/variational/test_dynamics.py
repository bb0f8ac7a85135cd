"""Steps of a sampler (F1): what they add to the bound, against densities whose integral is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from credo.methods.variational.refinement import SAMPLERS, first_learned, momenta, refine

LOG_Z = 1.3  # of the target below
START = (jnp.array([0.3, -0.2]), jnp.array([1.2, 1.2]))


def log_start(x):
    return jax.scipy.stats.norm.logpdf(x, *START).sum()


def log_target(x):
    """A wave: x₁ ~ N(0, 1), x₂ | x₁ ~ N(sin x₁, 0.7²), times e^LOG_Z."""
    norm = jax.scipy.stats.norm.logpdf
    return LOG_Z + norm(x[0]) + norm(x[1], jnp.sin(x[0]), 0.7)


def log_weights(sampler, steps, step, num, bridged=True, wrong=0.0):
    """log π(θ_T) − log q_0(θ_0) + Δ of `num` paths."""
    keys = jax.random.split(jax.random.key(3), num)
    learned = first_learned(sampler, steps, START[0], step)

    def one(key):
        key_start, key_path = jax.random.split(key)
        position = START[0] + START[1] * jax.random.normal(key_start, (2,))
        noise = momenta(key_path, sampler, steps, position)
        end = refine(sampler, learned, noise, position, log_start, log_target, steps, bridged)
        return log_target(end.position) - log_start(position) + (1 - wrong) * end.log_ratio, end.folds

    weights, folds = jax.jit(jax.vmap(one))(keys)
    return np.asarray(weights, np.float64), float(folds.mean())


@pytest.mark.parametrize("bridged", [True, False])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_of_paths_average_to_the_integral(sampler, bridged):
    """E[π(θ_T)/q_0(θ_0) e^Δ] = Z holds for every sampler, step and T only if Δ is right; z below 4 (false alarms 6e-5),
    and the mean of the logarithms is below log Z, as a bound must be."""
    step = 0.5 if sampler != "gradient" else 0.3
    weights, folds = log_weights(sampler, 4, step, 100_000, bridged)
    ratio = np.exp(weights - LOG_Z)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(ratio))
    assert ratio.std() < 5  # else the test would say nothing
    assert weights.mean() + 4 * weights.std() / np.sqrt(len(weights)) < LOG_Z
    assert folds == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_weights_without_their_correction_are_caught(sampler):
    """The same identity with Δ left out."""
    weights, _ = log_weights(sampler, 4, 0.6, 100_000, wrong=1.0)
    ratio = np.exp(weights - LOG_Z)
    assert abs(ratio.mean() - 1) > 8 * ratio.std() / np.sqrt(len(ratio))


def test_no_steps_leave_everything_as_it_was():
    end = refine("langevin", {}, None, START[0], log_start, log_target, 0)
    np.testing.assert_array_equal(end.position, START[0])
    assert float(end.log_ratio) == 0


def test_uphill_steps_have_the_density_of_the_change_of_variables():
    """In one dimension, the law of θ_1 by its own density against the histogram of draws."""
    target = lambda x: -0.25 * (x**4).sum() / 4 + jnp.cos(x).sum()  # noqa: E731
    start = lambda x: jax.scipy.stats.norm.logpdf(x).sum()  # noqa: E731
    learned = first_learned("gradient", 1, jnp.zeros(1), 0.4)
    line = jnp.linspace(-6, 6, 4001)[:, None]
    ends = jax.vmap(lambda x: refine("gradient", learned, None, x, start, target, 1))(line)
    places = np.asarray(ends.position[:, 0], np.float64)
    density = np.exp(np.asarray(jax.vmap(start)(line) - ends.log_ratio, np.float64))
    assert (np.diff(places[1000:3001]) > 0).all()
    inside = slice(1000, 3001)
    assert abs(integrate.trapezoid(density[inside], places[inside]) - (2 * stats.norm.cdf(3) - 1)) < 1e-3


def test_steps_that_fold_are_counted_and_pushed_back():
    """At θ = 0 a step of 3 along −x²/2 turns the line around: one fold, and a smaller step is worth more."""
    learned = lambda step: first_learned("gradient", 1, jnp.zeros(1), step)  # noqa: E731
    normal = lambda x: -0.5 * (x**2).sum()  # noqa: E731
    value = lambda step: refine("gradient", learned(step), None, jnp.ones(1), normal, normal, 1).log_ratio  # noqa: E731
    end = refine("gradient", learned(3.0), None, jnp.ones(1), normal, normal, 1)
    assert float(end.folds) == 1
    assert float(jax.grad(value)(3.0)) < 0
    np.testing.assert_allclose(value(0.5), np.log(1 - 0.125), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(value)(0.5), -0.5 / (1 - 0.125), rtol=1e-5)
