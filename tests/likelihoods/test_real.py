"""Likelihoods of real targets against scipy: density, moments, distribution function, draws and curvature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from credo.core.special import student_t_cdf
from credo.likelihoods import gaussian, heteroscedastic, heteroscedastic_t, student_t
from credo.likelihoods.variates import student_t_sample

SIGMA = 0.3
RAW = float(np.log(np.expm1(SIGMA - 1e-3)))  # the raw output whose scale is SIGMA
CASES = {
    "gaussian": (gaussian(noise=SIGMA), scipy.stats.norm(scale=SIGMA)),
    "student_t_4": (student_t(4.0, noise=SIGMA), scipy.stats.t(4.0, scale=SIGMA)),
    "student_t_12": (student_t(12.0, noise=SIGMA), scipy.stats.t(12.0, scale=SIGMA)),
    "student_t_1e6": (student_t(1e6, noise=SIGMA), scipy.stats.t(1e6, scale=SIGMA)),
    "heteroscedastic": (heteroscedastic(), scipy.stats.norm(scale=SIGMA)),
    "heteroscedastic_t": (heteroscedastic_t(df=5.0), scipy.stats.t(5.0, scale=SIGMA)),
}
cdf = jax.jit(lambda likelihood, outputs, targets: likelihood.cdf({}, outputs, targets))
every = pytest.mark.parametrize(("likelihood", "truth"), CASES.values(), ids=CASES.keys())


def outputs_for(likelihood, mean):
    """Outputs [n, out] with the given means [n, k] and scale SIGMA."""
    mean = jnp.asarray(mean)
    if likelihood.num_outputs(mean) == mean.shape[1]:
        return mean
    return jnp.concatenate([mean, jnp.full_like(mean, RAW)], -1)


@every
def test_log_prob_is_the_density_in_float64(likelihood, truth):
    with jax.enable_x64(True):
        mean = np.random.default_rng(0).normal(size=(50, 2))
        targets = mean + np.linspace(-40, 40, 100).reshape(50, 2)
        got = likelihood.log_prob({}, outputs_for(likelihood, mean), jnp.asarray(targets))
        np.testing.assert_allclose(got, truth.logpdf(targets - mean).sum(-1), rtol=1e-9)


@every
def test_log_prob_holds_in_float32_far_out(likelihood, truth):
    targets = np.float32([[0.0], [1e-4], [3.0], [-50.0], [1e4], [-1e6]])
    got = likelihood.log_prob({}, outputs_for(likelihood, np.zeros_like(targets)), jnp.asarray(targets))
    np.testing.assert_allclose(got, truth.logpdf(targets.astype(float))[:, 0], rtol=2e-5, atol=2e-5)


@every
def test_log_prob_integrates_to_one(likelihood, truth):
    with jax.enable_x64(True):
        angle = np.linspace(-np.pi / 2, np.pi / 2, 20_002)[1:-1]  # y = tan(angle) reaches the heavy tails
        targets = jnp.tan(angle)[:, None]
        log_prob = likelihood.log_prob({}, outputs_for(likelihood, 0 * targets), targets)
        total = np.sum(np.exp(log_prob) / np.cos(angle) ** 2) * (angle[1] - angle[0])
        assert total == pytest.approx(1, abs=1e-6)


@every
def test_mean_variance_and_cdf(likelihood, truth):
    mean = np.float32([[-3.0], [0.0], [100.0]])
    outputs = outputs_for(likelihood, mean)
    np.testing.assert_array_equal(likelihood.mean({}, outputs), mean)
    np.testing.assert_allclose(likelihood.variance({}, outputs), np.full((3, 1), truth.var()), rtol=1e-5)
    targets = np.float32(np.r_[-1e30, -1e3, np.linspace(-4, 4, 81), 1e3, 1e30])[:, None]
    got = cdf(likelihood, outputs_for(likelihood, 0 * targets), jnp.asarray(targets))
    np.testing.assert_allclose(got, truth.cdf(targets.astype(float)), atol=2e-6)


@pytest.mark.parametrize("df", [0.3, 1.0, 2.01, 3.0, 30.0, 150.0, 390.0, 410.0, 1e4, 1e6])
def test_student_t_cdf_for_every_df(df):
    targets = np.float32(np.r_[np.linspace(-9, 9, 301), -1e8, -1e3, 1e3, 1e8])
    got = student_t_cdf(jnp.float32(df), jnp.asarray(targets))
    np.testing.assert_allclose(got, scipy.stats.t.cdf(targets.astype(float), df), atol=1e-6)


@every
def test_samples_follow_the_distribution(likelihood, truth):
    """False-alarm budget: 1e-6 for each of five Kolmogorov–Smirnov tests."""
    outputs = outputs_for(likelihood, jnp.full((20_000, 2), 5.0))
    draws = np.asarray(likelihood.sample(jax.random.key(0), {}, outputs), float)
    assert draws.shape == (20_000, 2)
    assert scipy.stats.kstest(draws.ravel() - 5.0, truth.cdf).pvalue > 1e-6
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(20_000)  # 5 standard errors: 6e-7


@pytest.mark.parametrize("df", [0.5, 1.0, 2.2, 30.0, 1e6])
def test_student_t_draws_for_every_df(df):
    """False-alarm budget: 1e-6 for each of five Kolmogorov–Smirnov tests."""
    draws = student_t_sample(jax.random.key(1), jnp.float32(df), (40_000,))
    assert np.isfinite(draws).all()
    assert scipy.stats.kstest(np.asarray(draws, float), scipy.stats.t(df).cdf).pvalue > 1e-6


@pytest.mark.parametrize("df", [2.2, 4.0, 30.0])
def test_the_largest_student_t_draw_is_one_that_so_many_draws_would_have(df, monkeypatch):
    """U is 2⁻²⁴ at the least, so that |t| ≤ √(ν (2^{48/ν} − 1)): one in 2²⁴ radii is larger, and no draw absurd."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype, minval=0.0: jnp.full(shape, minval, dtype))
    draw = float(student_t_sample(jax.random.key(0), jnp.float32(df), (1,))[0])
    assert draw == pytest.approx(np.sqrt(df * (2 ** (48 / df) - 1)), rel=1e-4)
    assert 2**-30 < scipy.stats.t.sf(draw, df) < 2**-24


@every
def test_curvature_is_the_expected_hessian(likelihood, truth):
    """E_y[−∂² log p] by the midpoint rule over quantiles, for two independent targets one at a time."""
    with jax.enable_x64(True):
        mean = jnp.array([[0.4, -1.0]])
        outputs = outputs_for(likelihood, mean)
        noise = truth.ppf((np.arange(20_000) + 0.5) / 20_000)
        draws = mean + np.stack([noise, np.random.default_rng(0).permutation(noise)], -1)
        hessian = jax.hessian(lambda f, y: likelihood.log_prob({}, f[None], y[None])[0])
        expected = -jax.jit(jax.vmap(lambda y: hessian(outputs[0], y)))(draws).mean(0)
        got = likelihood.curvature({}, outputs)
        assert got.shape == (1, *expected.shape)
        np.testing.assert_allclose(np.diag(got[0]), np.diag(expected), rtol=2e-3)
        # a mean and its own raw scale are uncorrelated by symmetry; nothing else is left off the diagonal
        off = ~np.eye(len(expected), dtype=bool)
        np.testing.assert_array_equal(np.asarray(got[0])[off], 0)
        np.testing.assert_allclose(np.asarray(expected)[off], 0, atol=1e-6 * np.abs(expected).max())


@every
@pytest.mark.parametrize("size", [1e3, 1e8])
def test_gradients_are_finite_at_extreme_outputs(likelihood, truth, size):
    outputs = size * jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    outputs = outputs[:, : likelihood.num_outputs(jnp.zeros((1, 1)))]
    grad = jax.grad(lambda f: likelihood.log_prob({}, f, jnp.ones((4, 1))).sum())(outputs)
    assert np.isfinite(grad).all()


def test_heteroscedastic_scale_has_a_floor_and_learns_its_size():
    likelihood = heteroscedastic(floor=0.01)
    outputs = jnp.array([[0.0, -1e4], [0.0, 0.0], [0.0, 50.0]])
    np.testing.assert_allclose(likelihood.sigma(outputs)[:, 0], [0.01, 0.01 + np.log(2), 50.01], rtol=1e-6)


@pytest.mark.parametrize("build", [gaussian, lambda noise: student_t(5.0, noise)])
def test_noise_known_learned_and_inferred(build):
    targets, weight = jnp.array([[1.0, 10.0], [3.0, 30.0], [1e6, 1e6]]), jnp.array([1.0, 1.0, 0.0])
    assert build(0.5).init(targets, weight) == {}
    assert not build(0.5).point
    learned, inferred = build("learned"), build("inferred")
    assert learned.point
    assert not inferred.point
    params = learned.init(targets, weight)
    np.testing.assert_allclose(np.exp(params["log_scale"]), [0.501, 5.001], rtol=1e-5)  # the padded row is ignored
    np.testing.assert_allclose(learned.sigma(params), [0.501, 5.001], rtol=1e-5)
    assert learned.log_prior(params) == 0
    expected = scipy.stats.norm(-1, 2).logpdf(np.asarray(params["log_scale"], float)).sum()
    assert inferred.log_prior(params) == pytest.approx(expected, rel=1e-5)
    assert learned.inferring() == inferred
    assert inferred.inferring() is inferred
    assert build(0.5).inferring() == build(0.5)


@pytest.mark.parametrize(("build", "truth"), [(gaussian, scipy.stats.norm), (student_t, scipy.stats.t(4.0))])
def test_learned_noise_has_one_scale_for_each_target(build, truth):
    likelihood = build(noise="learned")
    params = {"log_scale": jnp.log(jnp.array([0.5, 20.0]))}
    outputs, targets = jnp.array([[0.0, 1.0]]), jnp.array([[1.0, 5.0]])
    z = np.array([2.0, 0.2])
    expected = (truth.logpdf(z) - np.log([0.5, 20.0])).sum()
    np.testing.assert_allclose(likelihood.log_prob(params, outputs, targets), [expected], rtol=1e-5)
    np.testing.assert_allclose(likelihood.cdf(params, outputs, targets)[0], truth.cdf(z), rtol=1e-5)
    np.testing.assert_allclose(
        likelihood.variance(params, outputs)[0], truth.var() * np.array([0.25, 400.0]), rtol=1e-5
    )


def test_numbers_are_traced_so_that_two_noises_share_one_program():
    traces = []

    @jax.jit
    def log_prob(likelihood, outputs):
        traces.append(1)
        return likelihood.log_prob({}, outputs, 1 + outputs)

    near, far = (log_prob(student_t(5.0, noise), jnp.zeros((3, 1))) for noise in (0.1, 10.0))
    assert len(traces) == 1
    assert not np.allclose(near, far)
