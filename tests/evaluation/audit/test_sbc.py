"""Simulation-based calibration, and tests of that test (G4). 500 simulations each; false-alarm rate 0.01."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.method import Info, Method, Phase
from credo.core.tree import struct
from credo.evaluation.audit import calibrate, sbc
from credo.evaluation.audit.uniformity import uniformity
from credo.posteriors import Samples

SIMULATIONS = 500


@struct
class Prior(Method):
    """Draws from the prior, whatever the data say."""

    def phases(self, num_data, steps):
        return (Phase("sample", steps, "full", keeps_draws=True),)

    def init(self, key, model, variables, data):
        return variables

    def step(self, noise, model, phase, state, batch):
        return state, Info({"rows": batch.num_data}, self.drawn(noise, model, batch).params)

    def drawn(self, key, model, batch):
        return model.sample_prior(key, batch)

    def posterior(self, model, state, draws):
        return Samples(draws, state.state)


@struct
class ExactLine(Prior):
    """N(Λ⁻¹X'y, Λ⁻¹) with Λ = X'X + I: the posterior of `sbc.linear_setting`."""

    def drawn(self, key, model, batch):
        x = jnp.concatenate([jnp.ones((len(batch.inputs), 1)), batch.inputs], 1)
        root = jnp.linalg.cholesky(x.T @ x + jnp.eye(3))
        mean = jax.scipy.linalg.cho_solve((root, True), x.T @ batch.targets[:, 0])
        found = mean + jax.scipy.linalg.solve_triangular(root.T, jax.random.normal(key, (3,)))
        return set_line(model.sample_prior(key, batch), found)


@struct
class ExactRate(Prior):
    """p(b|y) ∝ exp(−b²/2 + b Σy − n eᵇ) by its distribution function on a grid: Poisson counts where inputs are 0."""

    def drawn(self, key, model, batch):
        grid = jnp.linspace(-6, 6, 4001)
        y = batch.targets
        log_p = -0.5 * grid**2 + grid * y.sum() - len(y) * jnp.exp(grid)
        upto = jnp.cumsum(jax.nn.softmax(log_p))
        key_slope, key_rate = jax.random.split(key)
        place = jnp.interp(jax.random.uniform(key_rate) * upto[-1], upto, grid)
        return set_line(model.sample_prior(key, batch), jnp.array([place, jax.random.normal(key_slope)]))


def set_line(variables, coefficients):
    """The variables with these: intercept, then slopes."""
    layer = {"bias": coefficients[:1], "kernel": coefficients[None, 1:]}
    old = variables.params["network"]["output"]
    assert {n: x.shape for n, x in old.items()} == {n: x.shape for n, x in layer.items()}
    return variables._replace(params=variables.params | {"network": {"output": layer}})


def rate_setting():
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.poisson())
    zero = np.zeros((6, 1), np.float32)
    return sbc.Setting("rate", model, zero, zero, zero[:1])


def test_a_method_that_returns_the_prior_is_caught_by_the_likelihood_alone():
    """Ranks of functions and noise are uniform under the prior, too."""
    for setting in (sbc.linear_setting(), small_setting(), rate_setting()):
        result = calibrate(Prior(), setting, simulations=SIMULATIONS, seed=5, thin=1)
        assert not result.passed
        *others, last = result.tests
        assert last.p_value < 1e-4
        assert min(test.p_value for test in others) > result.false_alarms / len(result.tests)
        assert "draws fit the data worse than the truth does" in str(result)


@pytest.mark.parametrize(("method", "setting"), [(ExactLine(), sbc.linear_setting), (ExactRate(), rate_setting)])
def test_exact_posteriors_pass(method, setting):
    """At a false-alarm rate of 0.01 over all quantities; the likelihood is that of numbers and of counts."""
    result = calibrate(method, setting(), simulations=SIMULATIONS, seed=6, thin=1)
    assert result.passed, str(result)
    assert result.names[-1] == sbc.LIKELIHOOD
    assert result.ranks.shape[1] == len(result.names)


def test_ties_are_broken_at_random():
    """Probabilities that are exactly 0 or 1 in single precision, of truth and draws alike: ranks are uniform still."""
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1e4), credo.likelihoods.bernoulli())
    x = np.linspace(-1, 1, 6, dtype=np.float32)[:, None]
    setting = sbc.Setting("steps", model, x, np.arange(6) % 2, x[[0, 4]])
    result = calibrate(Prior(), setting, simulations=SIMULATIONS, seed=7, thin=1)
    assert all(test.p_value > 0.01 / 3 for test in result.tests[:-1])


@pytest.mark.full
def test_variational_inference_passes_where_mean_field_is_exact():
    result = calibrate("bayes_by_backprop", "linear", simulations=SIMULATIONS, seed=1, steps=4000)
    assert result.passed, str(result)
    assert result.ranks.shape == (SIMULATIONS, 5)
    assert "uniform" in str(result)


@pytest.mark.full
def test_a_tenth_of_the_kl_is_caught():
    result = calibrate("bayes_by_backprop", "linear", simulations=SIMULATIONS, seed=1, steps=4000, beta=0.1)
    assert not result.passed
    assert "too narrow" in str(result)
    assert max(test.p_value for test in result.tests) < 1e-3


def small_setting():
    """A line with inferred noise: quick for a sampler."""
    setting = sbc.linear_setting()
    noise = credo.likelihoods.gaussian(noise="inferred", prior_loc=-0.5, prior_scale=0.7)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), noise)
    return sbc.Setting("line", model, setting.inputs, setting.targets, setting.places[:2])


@pytest.mark.full
def test_nuts_passes():
    result = calibrate("nuts", small_setting(), simulations=SIMULATIONS, seed=2)
    assert result.passed, str(result)
    assert result.names == ["f(0, 0)", "f(1, 0)", "log_scale", "log p(y|θ)"]


def test_a_sampler_at_half_the_temperature_is_caught():
    setting = small_setting()
    result = calibrate("nuts", setting, simulations=SIMULATIONS, seed=2, fitted_model=setting.model.tempered(0.5))
    assert not result.passed
    assert "too narrow" in str(result)
    assert min(test.p_value for test in result.tests) < 1e-3


@pytest.mark.full
def test_a_point_fails_plainly():
    result = calibrate("map", simulations=100, steps=500)
    assert not result.passed
    assert result.plain()["passed"] is False


@pytest.mark.full
def test_nuts_passes_on_a_network_with_fresh_keys():
    seed = int(np.random.SeedSequence().generate_state(1)[0]) % 2**31
    result = calibrate("nuts", "network", simulations=SIMULATIONS, seed=seed)
    assert result.passed, (seed, str(result))
    setting = sbc.network_setting()
    cold = setting.model.tempered(0.5)
    broken = calibrate("nuts", setting, simulations=SIMULATIONS, seed=seed, fitted_model=cold)
    assert not broken.passed, seed


def test_uniformity_keeps_its_false_alarm_rate():
    """2,000 sets of uniform ranks at a rate of 0.05: between 60 and 145 alarms with probability 1 − 1e-4."""
    rng = np.random.default_rng(3)
    alarms = sum(uniformity(rng.integers(0, 20, 200), 19, 0.05).p_value <= 0.05 for _ in range(2000))
    assert 60 < alarms < 145


def test_envelope_and_p_value_agree():
    rng = np.random.default_rng(4)
    for spread in (1.0, 1.0, 0.93, 0.8, 0.6):
        ranks = np.clip((50 + spread * 100 * (rng.uniform(size=500) - 0.5)).astype(int), 0, 99)
        test = uniformity(ranks, 99, 0.01)
        outside = ((test.ecdf < test.lower) | (test.ecdf > test.upper)).any()
        assert outside == (test.p_value < 0.01), spread


@pytest.mark.full
def test_class_probabilities_can_be_ranked():
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.categorical(3))
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    setting = sbc.Setting("classes", model, x, np.arange(12) % 3, x[:2])
    result = calibrate("hmc", setting, simulations=40, num_steps=5, warmup=100, draws=19)
    assert result.names == ["p(-1)[0]", "p(-1)[1]", "p(-0.818182)[0]", "p(-0.818182)[1]", "log p(y|θ)"]
    assert result.ranks.max() <= 19
    assert len(np.unique(result.ranks)) > 10


def test_learned_noise_cannot_be_simulated():
    setting = sbc.network_setting()
    learned = credo.Model(setting.model.network, setting.model.prior, credo.likelihoods.gaussian(noise="learned"))
    with pytest.raises(credo.errors.Refusal, match="inferred"):
        calibrate("map", sbc.Setting("x", learned, setting.inputs, setting.targets, setting.places), simulations=20)
    with pytest.raises(credo.errors.InputError, match="20 simulations"):
        calibrate("map", simulations=3)
    with pytest.raises(credo.errors.InputError, match="Unknown setting"):
        calibrate("map", "nothing")
    assert jax.default_backend()
