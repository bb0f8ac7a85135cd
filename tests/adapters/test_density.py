"""Any log density as a model: methods find it, diagnostics look at θ, and nothing is predicted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.errors import InputError, Refusal

MEAN, STD = jnp.array([1.0, -2.0]), jnp.array([0.5, 2.0])


def log_density(x):
    return jax.scipy.stats.norm.logpdf(x, MEAN, STD).sum()


def of_dict(x):
    return log_density(jnp.stack([x["a"], x["b"]]))


@pytest.fixture(scope="module")
def fit():
    model = credo.from_density(log_density, np.zeros(2))
    return credo.fit(jax.random.key(0), model, model.data, credo.methods.HMC(num_steps=10, warmup=300), steps=1000)


def test_draws_are_those_of_the_density(fit):
    """Errors of the mean in units of their own standard error stay below 4.5 (a false alarm in 70,000)."""
    draws = np.asarray(fit.posterior.params["network"]["theta"], np.float64)
    found = credo.diagnostics.chains.chain_stats(draws)
    assert (np.abs(draws.mean((0, 1)) - MEAN) < 4.5 * found.mcse_mean).all()
    np.testing.assert_allclose(draws.std((0, 1)), STD, rtol=0.15)


def test_diagnostics_look_at_the_parameters(fit):
    assert fit.status.ok
    assert fit.diagnostics.kind == "chains"
    assert {row.space for row in fit.diagnostics.convergence} == {"log density", "weights"}
    assert all(row.rhat < 1.05 for row in fit.diagnostics.convergence)


def test_nothing_is_predicted(fit):
    with pytest.raises(Refusal, match="describes no targets"):
        _ = credo.predict(jax.random.key(1), fit, fit.model.data[0]).mean


def test_a_dict_of_parameters_keeps_its_names():
    model = credo.from_density(of_dict, {"a": 0.0, "b": 0.0})
    fit = credo.fit(jax.random.key(0), model, model.data, "map", steps=2000)
    found = {k: float(np.ravel(v)[0]) for k, v in fit.posterior.params["network"].items()}
    np.testing.assert_allclose([found["a"], found["b"]], MEAN, atol=0.05)


def test_what_is_not_a_function_is_refused():
    with pytest.raises(InputError, match="expects a function"):
        credo.from_density(3.0, np.zeros(2))
