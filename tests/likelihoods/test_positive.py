"""Likelihoods of positive numbers against SciPy, quadrature and their own plain form on a table's scale."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats

import credo
from credo.errors import InputError
from credo.estimators import BayesianRegressor
from credo.evaluation.recalibration.unseen import with_settings
from credo.likelihoods import gamma, log_normal
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.targets import RegressionTarget
from credo.tables.model import table_model

F = np.array([-3.0, 0.0, 0.4, 2.0])
RAW = np.array([-2.0, 0.0, 3.0, -9.0])
Y = np.array([0.05, 0.9, 2.0, 30.0])


def spread(raw, least=0.01):
    """σ of log y as `log_normal` says it."""
    return least + (3 - least) / (1 + np.exp(1.6 - raw))


CASES = {
    "log_normal": (
        log_normal(offset=0.5), {}, np.column_stack([F, RAW]),
        [scipy.stats.lognorm(s, scale=np.exp(f + 0.5)) for f, s in zip(F, spread(RAW))],
    ),
    "gamma": (
        gamma(3.0, offset=0.5), {}, F[:, None], [scipy.stats.gamma(3.0, scale=np.exp(f + 0.5) / 3) for f in F],
    ),
    "gamma_small": (gamma(0.2), {}, F[:, None], [scipy.stats.gamma(0.2, scale=np.exp(f) / 0.2) for f in F]),
    "gamma_large": (
        gamma("learned"), {"log_shape": np.log([5000.0])}, F[:, None],
        [scipy.stats.gamma(5000.0, scale=np.exp(f) / 5000.0) for f in F],
    ),
}  # fmt: skip
every = pytest.mark.parametrize(("likelihood", "params", "outputs", "truth"), CASES.values(), ids=CASES.keys())


@every
def test_density_moments_and_distribution(likelihood, params, outputs, truth):
    with jax.enable_x64(True):
        outputs = jnp.asarray(outputs)
        for y in (Y, [each.ppf(0.01) for each in truth], [each.ppf(0.8) for each in truth]):
            y = np.array(y)
            exact = np.array([each.logpdf(value) for each, value in zip(truth, y)])
            found = likelihood.log_prob(params, outputs, jnp.asarray(y[:, None]))
            np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-9)
            below = likelihood.cdf(params, outputs, jnp.asarray(y[:, None]))[:, 0]
            np.testing.assert_allclose(below, [each.cdf(value) for each, value in zip(truth, y)], atol=1e-5)
        mean, variance = (x(params, outputs)[:, 0] for x in (likelihood.mean, likelihood.variance))
        np.testing.assert_allclose(mean, [each.mean() for each in truth], rtol=1e-9)
        np.testing.assert_allclose(variance, [each.var() for each in truth], rtol=1e-9)
        assert (likelihood.cdf(params, outputs, jnp.full((4, 1), -0.1)) == 0).all()


@pytest.mark.parametrize("name", ["log_normal", "gamma"])
def test_curvature_is_the_expected_outer_product_of_the_score(name):
    """By quadrature over y, with scores by autodiff."""
    likelihood, params, outputs, truth = CASES[name]
    with jax.enable_x64(True):
        score = jax.jit(jax.grad(lambda f, y: likelihood.log_prob(params, f[None], y[None, None])[0]))
        found = likelihood.curvature(params, jnp.asarray(outputs))
        for row, each in enumerate(truth):
            levels, weights = np.polynomial.legendre.leggauss(200)
            y = each.ppf(0.5 + 0.5 * levels)
            slopes = np.array([score(jnp.asarray(outputs[row]), jnp.asarray(value)) for value in y])
            exact = np.einsum("y,yi,yj->ij", 0.5 * weights, slopes, slopes)
            np.testing.assert_allclose(found[row], exact, rtol=3e-3, atol=1e-3 * np.abs(exact).max())


@every
def test_samples_are_of_that_distribution(likelihood, params, outputs, truth):
    """False-alarm budget: 1e-6 for each Kolmogorov–Smirnov test."""
    rows = jnp.repeat(jnp.asarray(outputs[1:2], jnp.float32), 5000, 0)
    params = jax.tree.map(jnp.float32, params)
    draws = np.asarray(likelihood.sample(jax.random.key(0), params, rows))[:, 0]
    assert scipy.stats.kstest(draws, truth[1].cdf).pvalue > 1e-6


@pytest.mark.parametrize("likelihood", [log_normal(), gamma(2.0), gamma(0.05)])
def test_everything_is_finite_however_far_out_the_outputs_are(likelihood):
    """Heavy tails keep a mean: single precision, outputs up to 10⁵, targets down to what cannot be told from 0."""
    width = likelihood.num_outputs(np.zeros((1, 1)))
    outputs = jnp.asarray([[f, g][:width] for f in (-1e5, -30.0, 0.0, 12.0, 1e5) for g in (-1e5, 0.0, 1e5)])
    for placed in (likelihood, likelihood.standardised(3.0, 700.0), likelihood.standardised(9e3, 2.0)):
        zero = np.float32(placed.zero)
        assert np.isfinite(placed.mean({}, outputs)).all()
        assert np.isfinite(placed.variance({}, outputs)).all()
        for y in (zero, zero + np.float32(1e-3), np.float32(1e6)):
            targets = jnp.full((len(outputs), 1), y)
            value, slope = jax.value_and_grad(lambda f, t=targets, p=placed: p.log_prob({}, f, t).sum())(outputs)
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
            assert np.isfinite(placed.cdf({}, outputs, targets)).all()


@pytest.mark.parametrize("likelihood", [log_normal(), gamma(2.0)])
def test_standardised_targets_have_the_same_distribution(likelihood):
    """z = (y − 40)/70 under the placed likelihood is y under the plain one whose median or mean is 40 at f = 0."""
    shift, scale = 40.0, 70.0
    placed = likelihood.standardised(shift, scale)
    plain = type(likelihood)(**(vars(likelihood) | {"offset": np.log(shift)}))
    with jax.enable_x64(True):
        outputs = jnp.asarray(np.random.default_rng(0).normal(size=(6, likelihood.num_outputs(np.zeros((1, 1))))))
        y = np.array([1e-3, 1.0, 30.0, 40.0, 200.0, 5000.0])[:, None]
        z = jnp.asarray((y - shift) / scale)
        exact = plain.log_prob({}, outputs, jnp.asarray(y)) + np.log(scale)
        np.testing.assert_allclose(placed.log_prob({}, outputs, z), exact, rtol=1e-9)
        np.testing.assert_allclose(placed.cdf({}, outputs, z), plain.cdf({}, outputs, jnp.asarray(y)), rtol=1e-7)
        mean, variance = shift + scale * placed.mean({}, outputs), scale**2 * placed.variance({}, outputs)
        np.testing.assert_allclose(mean, plain.mean({}, outputs), rtol=1e-9)
        np.testing.assert_allclose(variance, plain.variance({}, outputs), rtol=1e-9)
        np.testing.assert_allclose(placed.curvature({}, outputs), plain.curvature({}, outputs), rtol=1e-9)


def test_single_precision_tells_small_numbers_apart_on_a_standardised_scale():
    """A ten-thousandth of the mean keeps its log density to 10⁻³, although 0 lies at −0.01 of the targets' scale."""
    placed, y = log_normal().standardised(10.0, 1000.0), np.array([1e-3, 1e-2, 1.0])
    z = ((y - 10.0) / 1000.0).astype(np.float32)[:, None]
    found = placed.log_prob({}, jnp.zeros((3, 2)), jnp.asarray(z))
    exact = scipy.stats.lognorm(spread(0.0), scale=10.0).logpdf(y) + np.log(1000.0)
    np.testing.assert_allclose(found, exact, rtol=1e-3)


@pytest.mark.parametrize("likelihood", [log_normal(), gamma(2.0)])
def test_noise_is_stretched_without_leaving_the_positive_numbers(likelihood):
    width = likelihood.num_outputs(np.zeros((1, 1)))
    outputs = jnp.zeros((1, width))
    wide = with_settings(likelihood, {"factor": 2.0})
    assert type(wide) is type(likelihood)
    assert wide.cdf({}, outputs, jnp.zeros((1, 1))) == 0
    if width == 1:
        np.testing.assert_allclose(wide.variance({}, outputs), 4 * likelihood.variance({}, outputs), rtol=1e-6)
        np.testing.assert_allclose(wide.mean({}, outputs), likelihood.mean({}, outputs), rtol=1e-6)
    else:
        np.testing.assert_allclose(wide.sigma(outputs), 2 * likelihood.sigma(outputs), rtol=1e-6)
        np.testing.assert_allclose(wide.median(outputs), likelihood.median(outputs), rtol=1e-6)
    mass = scipy.integrate.quad(
        lambda t: float(jnp.exp(wide.log_prob({}, outputs, jnp.array([[np.exp(t)]]))[0] + t)), -30, 30, limit=200
    )[0]
    assert mass == pytest.approx(1, abs=1e-3)


def test_the_posterior_of_the_shape_is_that_of_quadrature():
    """Of 1,000 effective draws or more the mean is off by 0.15 standard deviations once in 10,000 runs."""
    y = np.random.default_rng(0).gamma(5.0, 0.4, 80)
    known = {"output": {"bias": np.array([np.log(2.0)], np.float32), "kernel": np.zeros((1, 1), np.float32)}}
    fixed = {"network": known, "likelihood": {"log_shape": None}, "prior": {}}
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), gamma(), fixed=fixed)
    fit = credo.fit(jax.random.key(0), model, (np.zeros((80, 1)), y), credo.methods.NUTS(chains=4), steps=1000)
    draws = np.asarray(fit.posterior.params["likelihood"]["log_shape"], float).ravel()
    grid = np.linspace(-1, 4, 2001)
    each = scipy.stats.gamma(np.exp(grid)[:, None], scale=2.0 / np.exp(grid)[:, None]).logpdf(y).sum(1)
    each += scipy.stats.norm.logpdf(grid, 1, 2)
    weight = np.exp(each - each.max())
    mean = np.average(grid, weights=weight)
    deviation = np.sqrt(np.average((grid - mean) ** 2, weights=weight))
    assert abs(draws.mean() - mean) < 0.15 * deviation
    assert abs(draws.std() / deviation - 1) < 0.12


# ---------------------------------------------------------------------- tables
@pytest.fixture(scope="module")
def prices():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    return pd.DataFrame({"x": x, "price": np.exp(5 + x + 0.4 * rng.normal(size=400))})


@pytest.mark.parametrize(
    ("name", "method"),
    [("log_normal", "laplace"), ("gamma", "map"), pytest.param("gamma", "laplace", marks=pytest.mark.full)],
)
def test_a_table_of_prices(prices, name, method):
    """Predictions are on the table's own scale: density against the truth's to three standard errors of 400 rows,
    90 % intervals that hold 90 ± 5 % of them, and no mass below 0."""
    run = credo.tables.fit(prices, "price", method=method, network="mlp:", settings={"likelihood": name}, steps=800)
    predictive = run.predictive(prices)
    truth = scipy.stats.lognorm(0.4, scale=np.exp(5 + prices["x"]))
    log_prob = predictive.log_prob(prices["price"].to_numpy())
    assert log_prob.mean() == pytest.approx(truth.logpdf(prices["price"]).mean(), abs=0.12)
    low, high = predictive.interval(0.9)
    assert (low > 0).all()
    assert ((prices["price"] > low) & (prices["price"] < high)).mean() == pytest.approx(0.9, abs=0.05)
    np.testing.assert_allclose(predictive.cdf(low), 0.05, atol=1e-3)
    assert np.median(np.abs(np.log(predictive.mean / truth.mean()))) < 0.1
    assert (predictive.cdf(np.full(400, -1e-3)) == 0).all()


def test_targets_that_are_not_positive_are_refused(prices):
    encoder = TableEncoder.learn(prices.assign(price=prices["price"] - 50), "price")
    assert not encoder.positive
    with pytest.raises(InputError, match="numbers above 0, and 'price' has -"):
        table_model(encoder, options={"likelihood": "log_normal"})
    assert TableEncoder.learn(prices, "price").positive
    assert not RegressionTarget(("y",), (1.0,), (1.0,)).positive
    with pytest.raises(InputError, match="numbers above 0, and 'y' has -3: take"):
        BayesianRegressor("map", likelihood="gamma", steps=5).fit(np.zeros((3, 1)), np.array([1.0, 2.0, -3.0]))


@pytest.mark.parametrize("likelihood", [log_normal(), gamma(2.0)])
def test_below_zero_there_is_no_density(likelihood):
    """As SciPy has it: −∞, without a NaN in the gradient of other rows."""
    outputs = jnp.zeros((2, likelihood.num_outputs(np.zeros((1, 1)))))
    targets = jnp.array([[-1.0], [1.0]])
    found, slope = (
        likelihood.log_prob({}, outputs, targets),
        jax.grad(lambda f: likelihood.log_prob({}, f, targets).sum())(outputs),
    )
    assert found[0] == -np.inf
    assert np.isfinite(found[1])
    assert np.isfinite(slope).all()


def test_several_positive_targets(prices):
    """Each has its own 0 and its own mean."""
    frame = prices.assign(cost=1e4 * prices["price"].to_numpy()[::-1])
    encoder = TableEncoder.learn(frame, ["price", "cost"])
    model = table_model(encoder, "mlp:", {"likelihood": "log_normal"})
    np.testing.assert_allclose(model.likelihood.zero, -encoder.target_shift / encoder.target_scale, rtol=1e-6)
    fit = credo.fit(jax.random.key(0), model, tuple(encoder.arrays(frame)[:2]), "map", steps=300)
    predictive = credo.predict(jax.random.key(1), fit, encoder.inputs(frame)).rescaled(
        encoder.target_shift, encoder.target_scale
    )
    assert (predictive.quantile(0.01) > 0).all()
    ratio = np.median(frame["price"] / predictive.mean[:, 0])
    assert 0.5 < ratio < 1.5


def test_an_estimator_of_prices(prices):
    x, y = prices[["x"]].to_numpy(), prices["price"].to_numpy()
    model = BayesianRegressor("map", "mlp:", likelihood="gamma", steps=400, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.6
    assert (model.predict_interval(x, 0.99)[0] > 0).all()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: log_normal(0.0), "least spread must be a positive"),
        (lambda: log_normal(3.0), "lies below 3"),
        (lambda: log_normal(zero=float("nan")), "zero must be a finite number"),
        (lambda: gamma("free"), "shape must be"),
        (lambda: gamma(-1.0), "shape must be a positive"),
    ],
)
def test_builders_refuse_with_a_sentence(build, words):
    with pytest.raises(InputError, match=words):
        build()
