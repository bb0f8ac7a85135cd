"""Count likelihoods against scipy, from rates of 1e-8 to 1e8 and from Poisson-like to very dispersed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from credo.likelihoods import NegativeBinomial, negative_binomial, poisson

LIKELIHOODS = {
    "poisson": (poisson(), np.inf),
    "nb_0.3": (negative_binomial(0.3), 0.3),
    "nb_2": (negative_binomial(2.0), 2.0),
    "nb_50": (negative_binomial(50.0), 50.0),
}
log_prob = jax.jit(lambda likelihood, outputs, targets: likelihood.log_prob({}, outputs, targets))
cdf = jax.jit(lambda likelihood, outputs, targets: likelihood.cdf({}, outputs, targets))
sample = jax.jit(lambda key, likelihood, outputs: likelihood.sample(key, {}, outputs))
every = pytest.mark.parametrize(("likelihood", "r"), LIKELIHOODS.values(), ids=LIKELIHOODS.keys())


def truth_for(mean, r):
    return scipy.stats.poisson(mean) if np.isinf(r) else scipy.stats.nbinom(r, r / (r + mean))


def nb_logpmf(y, log_mean, log_r):
    """Without scipy's p = r/(r + μ), which has no digits left when r is large."""
    y, log_mean, log_r = (np.asarray(v, float) for v in (y, log_mean, log_r))
    r = np.exp(log_r)
    chosen = -scipy.special.betaln(r, y + 1) - np.log(r + y)
    return chosen - r * np.logaddexp(0, log_mean - log_r) - y * np.logaddexp(0, log_r - log_mean)


@every
def test_log_prob_is_the_mass_in_float64(likelihood, r):
    with jax.enable_x64(True):
        mean = np.array([[1e-3, 0.5], [3.0, 20.0], [500.0, 2e4]])
        for targets in ([[0, 1], [2, 20], [480, 19_900]], [[3, 0], [0, 9], [11, 40_000]]):
            got = log_prob(likelihood, jnp.log(mean), jnp.asarray(targets, float))
            np.testing.assert_allclose(got, truth_for(mean, r).logpmf(targets).sum(-1), rtol=1e-8)


@pytest.mark.parametrize("mean", [1e-8, 0.1, 7.0, 1e3, 1e6, 1e8])
def test_poisson_log_prob_in_float32(mean):
    spread = np.array([-5.0, -1.0, 0.0, 2.0, 10.0])
    targets = np.float32(np.round(np.maximum(mean + spread * np.sqrt(mean), 0)))[:, None]
    outputs = np.full_like(targets, np.log(mean), np.float32)
    rate = np.exp(outputs.astype(float))
    truth = targets * np.log(rate) - rate - scipy.special.gammaln(targets.astype(float) + 1)
    got = log_prob(poisson(), jnp.asarray(outputs), jnp.asarray(targets))
    # log y, rounded to 24 bits, is multiplied by y − λ; the textbook form is off by a nat at 1e6
    rounding = 2.0**-24 * np.abs(targets - rate) * np.log(targets + 1)
    assert (np.abs(got - truth[:, 0]) < 1e-5 * np.abs(truth[:, 0]) + 2e-5 + rounding[:, 0]).all()


@pytest.mark.parametrize("r", [1e-3, 0.5, 9.99, 10.0, 100.0, 1e4, 1e7, 1e12])
def test_negative_binomial_log_prob_in_float32(r):
    mean, targets = np.meshgrid([1e-6, 0.1, 5.0, 300.0, 1e5, 1e10], [0.0, 1.0, 4.0, 30.0, 300.0, 1e5])
    outputs = np.float32(np.log(mean)).reshape(-1, 1)
    targets = np.float32(targets).reshape(-1, 1)
    params = {"log_dispersion": jnp.log(jnp.array([r], jnp.float32))}
    truth = nb_logpmf(targets, outputs, params["log_dispersion"])[:, 0]
    got = negative_binomial().log_prob(params, jnp.asarray(outputs), jnp.asarray(targets))
    close = r < 1e8  # beyond, float64's betaln itself has few digits: compare with the Poisson limit
    if not close:
        truth = scipy.stats.poisson.logpmf(targets, np.exp(outputs.astype(float)))[:, 0]
        keep = (targets[:, 0] < 1e3) & (outputs[:, 0] < 7)
        got, truth = np.asarray(got)[keep], truth[keep]
    np.testing.assert_allclose(got, truth, rtol=2e-5, atol=1e-3)


@pytest.mark.parametrize("r", [0.3, 4.0, 1e3])
@pytest.mark.parametrize("mean", [1e10, 1e13])
def test_negative_binomial_log_prob_of_huge_counts_in_float32(mean, r):
    """Against its limit: y is gamma with shape r and mean μ, but for r²/y."""
    targets = np.float32(mean * np.exp(np.random.default_rng(0).uniform(-3, 3, 200)))[:, None]
    outputs = np.full_like(targets, np.log(mean))
    ratio = (targets / np.exp(outputs.astype(float)))[:, 0]
    truth = scipy.stats.gamma(r, scale=1 / r).logpdf(ratio) - outputs[:, 0]
    got = negative_binomial(r).log_prob({}, jnp.asarray(outputs), jnp.asarray(targets))
    # μ = e^η is rounded to 3·10⁻⁶ of itself, and the slope in log μ is r (y/μ − 1)
    rounding = r * (np.abs(ratio - 1) + 1e-3) * 3e-6
    assert (np.abs(got - truth) < 1e-5 * np.abs(truth) + r**2 / targets[:, 0] + rounding).all()


@every
@pytest.mark.parametrize("mean", [0.01, 1.0, 40.0])
def test_mass_sums_to_one_and_has_the_stated_moments(likelihood, r, mean):
    with jax.enable_x64(True):
        counts = jnp.arange(20_000.0)[:, None]
        outputs = jnp.full_like(counts, jnp.log(mean))
        mass = np.exp(log_prob(likelihood, outputs, counts))
        assert mass.sum() == pytest.approx(1, abs=1e-8)
        y = np.asarray(counts[:, 0])
        assert likelihood.mean({}, outputs)[0, 0] == pytest.approx((mass * y).sum(), rel=1e-8)
        assert likelihood.variance({}, outputs)[0, 0] == pytest.approx((mass * (y - mean) ** 2).sum(), rel=1e-8)
        np.testing.assert_allclose(cdf(likelihood, outputs, counts)[:, 0], mass.cumsum(), atol=1e-4)


@every
@pytest.mark.parametrize("mean", [1e-3, 0.7, 12.0, 300.0, 1e4, 1e6])
def test_cdf_in_float32(likelihood, r, mean):
    outputs = np.float32(np.log(mean))
    truth = truth_for(np.exp(float(outputs)), r)
    targets = np.float32(truth.ppf(np.linspace(1e-4, 1 - 1e-4, 101)))[:, None]
    got = cdf(likelihood, jnp.full(targets.shape, outputs), jnp.asarray(targets))
    np.testing.assert_allclose(got, truth.cdf(targets.astype(float)), atol=1e-4)


@every
def test_cdf_between_below_and_beyond_the_counts(likelihood, r):
    targets = jnp.array([[-0.5], [-3.0], [-jnp.inf], [0.0], [2.7], [2.0], [1e30], [jnp.inf]])
    got = np.asarray(cdf(likelihood, jnp.zeros_like(targets), targets))[:, 0]
    np.testing.assert_array_equal(got[:3], 0)
    assert got[3] == pytest.approx(truth_for(1.0, r).pmf(0), abs=1e-5)
    assert got[4] == got[5] == pytest.approx(truth_for(1.0, r).cdf(2), abs=1e-5)
    np.testing.assert_allclose(got[6:], 1, rtol=1e-6)


@every
@pytest.mark.parametrize("mean", [0.5, 20.0, 3e7])
def test_sample_moments(likelihood, r, mean):
    """False-alarm budget: 24 checks at 5 standard errors, 2e-5 in all for normal averages."""
    num = 40_000
    outputs = jnp.full((num, 1), np.log(mean))
    draws = np.asarray(sample(jax.random.key(2), likelihood, outputs), float)[:, 0]
    assert draws.min() >= 0
    assert np.array_equal(draws, np.round(draws))
    truth = truth_for(float(likelihood.mean({}, outputs)[0, 0]), r)
    expected, variance, _, kurtosis = (float(v) for v in truth.stats("mvsk"))
    assert abs(draws.mean() - expected) < 5 * np.sqrt(variance / num)
    assert abs(draws.var() / variance - 1) < 5 * np.sqrt((kurtosis + 2) / num)


def test_negative_binomial_samples_have_the_right_mass():
    """False-alarm budget: 1e-6, one χ² test."""
    draws = sample(jax.random.key(3), negative_binomial(0.8), jnp.full((20_000, 1), np.log(2.0)))
    counts = np.bincount(np.minimum(np.asarray(draws, int)[:, 0], 10), minlength=11)
    truth = truth_for(2.0, 0.8)
    mass = np.append(truth.pmf(np.arange(10)), truth.sf(9))
    assert scipy.stats.chisquare(counts, 20_000 * mass).pvalue > 1e-6


@every
@pytest.mark.parametrize("output", [-3.0, 0.0, 2.5])
def test_curvature_is_the_expected_hessian(likelihood, r, output):
    with jax.enable_x64(True):
        f = jnp.array([output])
        counts = jnp.arange(5_000.0)[:, None]
        hessian = jax.hessian(lambda f, y: likelihood.log_prob({}, f[None], y[None])[0])
        mass = jnp.exp(log_prob(likelihood, jnp.broadcast_to(f, counts.shape), counts))
        expected = -(mass[:, None, None] * jax.jit(jax.vmap(lambda y: hessian(f, y)))(counts)).sum(0)
        np.testing.assert_allclose(likelihood.curvature({}, f[None])[0], expected, rtol=1e-8)


@every
@pytest.mark.parametrize("output", [-5.0, 4.0, 35.0])
def test_curvature_is_the_mean_squared_score(likelihood, r, output):
    """λ'²/Var[y], as in any exponential family, with λ' by autodiff; in the linear part of the rate too."""
    with jax.enable_x64(True):
        f = jnp.array([[output, 1.0]])
        slope = jax.vmap(jax.vmap(jax.grad(lambda v: likelihood.mean({}, v[None, None])[0, 0])))(f)
        expected = slope**2 / likelihood.variance({}, f)
        got = likelihood.curvature({}, f)
        np.testing.assert_allclose(got[0], np.diag(expected[0]), rtol=1e-9)


@every
def test_outputs_that_overflow_stay_finite_and_point_back(likelihood, r):
    outputs = jnp.array([[-1e6], [-90.0], [29.9], [30.1], [90.0], [1e4], [1e6]])
    value_and_grad = jax.jit(jax.value_and_grad(lambda f, y: likelihood.log_prob({}, f, jnp.full_like(f, y)).sum()))
    for count in (0.0, 1.0, 7.0, 1e6):
        value, grad = value_and_grad(outputs, count)
        assert np.isfinite(value)
        assert np.isfinite(grad).all()
        assert (grad[2:] < 0).all()
        assert (grad[:2] > 0).all() == (count > 0)
    assert np.isfinite(likelihood.mean({}, outputs)).all()
    assert (jnp.diff(likelihood.mean({}, outputs)[:, 0]) >= 0).all()
    assert np.isfinite(likelihood.curvature({}, outputs)).all()
    assert np.isfinite(sample(jax.random.key(0), likelihood, outputs)).all()


def test_rate_is_smooth_where_it_turns_linear():
    below, above = (poisson().mean({}, jnp.array([[f]]))[0, 0] for f in (29.999, 30.001))
    assert above / below == pytest.approx(np.exp(0.002), rel=1e-4)


def test_dispersion_gradients_are_finite_and_right():
    with jax.enable_x64(True):
        outputs = jnp.log(jnp.array([[2.0], [2.0], [1e4], [1e12]]))
        targets = jnp.array([[0.0], [9.0], [3e4], [0.0]])

        def total(log_r):
            return negative_binomial().log_prob({"log_dispersion": log_r[None]}, outputs, targets).sum()

        gradient = jax.jit(jax.grad(total))
        for log_r in (-4.0, 0.3, 2.31, 8.0):
            step = 1e-4
            ahead, behind = (nb_logpmf(targets, outputs, log_r + s).sum() for s in (step, -step))
            got = gradient(jnp.array(log_r))
            assert got == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-4)


def test_dispersion_known_learned_and_inferred():
    rng = np.random.default_rng(0)
    targets = jnp.asarray(np.stack([rng.negative_binomial(4, 0.1, 4000), rng.poisson(3, 4000)], -1), jnp.float32)
    weight = jnp.ones(4000)
    known, learned, inferred = (negative_binomial(d) for d in (3.0, "learned", "inferred"))
    assert known.init(targets, weight) == {}
    assert known.inferring() == known
    params = learned.init(targets, weight)
    assert np.exp(params["log_dispersion"][0]) == pytest.approx(4, rel=0.3)
    assert np.exp(params["log_dispersion"][1]) == pytest.approx(50, rel=1e-5)
    assert (known.point, learned.point, inferred.point) == (False, True, False)
    assert learned.log_prior(params) == 0
    expected = scipy.stats.norm(1, 2).logpdf(np.asarray(params["log_dispersion"], float)).sum()
    assert inferred.log_prior(params) == pytest.approx(expected, rel=1e-5)
    assert isinstance(learned.inferring(), NegativeBinomial)
    assert learned.inferring() == inferred
