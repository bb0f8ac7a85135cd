"""Ordered classes against sums by hand, SciPy and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats

import credo
from credo.errors import InputError, Refusal
from credo.estimators import BayesianClassifier
from credo.likelihoods import ordinal
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.targets import ClassTarget
from credo.tables.model import table_model

EDGES = (-2.0, -0.5, 0.25, 3.0)
PLAIN, SCALED = ordinal(5, EDGES), ordinal(5, EDGES, scaled=True)
both = pytest.mark.parametrize("likelihood", [PLAIN, SCALED], ids=["plain", "scaled"])


def outputs_for(likelihood, rows=6, scale=2.0):
    return scale * np.random.default_rng(0).normal(size=(rows, likelihood.num_outputs(None)))


def truth(outputs):
    """P(y = c) [n, C] as differences of the logistic distribution function, from the tail that is nearer."""
    spread = 0.01 + np.log1p(np.expm1(1.0) * np.exp(outputs[:, 1:])) if outputs.shape[1] == 2 else 1.0
    z = np.pad((np.array(EDGES) - outputs[:, :1]) / spread, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    below, above = scipy.stats.logistic.cdf(z), scipy.stats.logistic.sf(z)
    return np.where(z[:, :-1] > 0, -np.diff(above, axis=1), np.diff(below, axis=1))


@both
def test_probabilities_are_differences_of_logistic_functions(likelihood):
    with jax.enable_x64(True):
        outputs = outputs_for(likelihood)
        np.testing.assert_allclose(likelihood.mean({}, jnp.asarray(outputs)), truth(outputs), rtol=1e-10)
        for c in range(5):
            got = likelihood.log_prob({}, jnp.asarray(outputs), jnp.full(6, c))
            np.testing.assert_allclose(got, np.log(truth(outputs)[:, c]), rtol=1e-9)
            below = likelihood.cdf({}, jnp.asarray(outputs), jnp.full(6, c))
            np.testing.assert_allclose(below[:, 0], truth(outputs)[:, : c + 1].sum(1), rtol=1e-10)


@both
def test_curvature_is_the_expected_hessian(likelihood):
    with jax.enable_x64(True):
        outputs = jnp.asarray(outputs_for(likelihood))
        probs = truth(np.asarray(outputs))
        hessian = jax.jit(jax.vmap(jax.hessian(lambda f, y: likelihood.log_prob({}, f[None], y[None])[0])))
        expected = sum(-probs[:, c, None, None] * hessian(outputs, jnp.full(6, c)) for c in range(5))
        np.testing.assert_allclose(likelihood.curvature({}, outputs), expected, rtol=1e-8, atol=1e-12)


@both
@pytest.mark.parametrize("size", [0.1, 30.0, 1e4])
def test_float32_keeps_what_cancels_in_differences(likelihood, size):
    """Far out the classes that nobody expects keep their log probabilities, and gradients stay finite."""
    outputs = jnp.asarray(outputs_for(likelihood, 20, size), jnp.float32)
    log_probs = np.asarray(likelihood.log_probs({}, outputs))
    assert np.isfinite(log_probs).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(1), 1, rtol=3e-6)
    assert (np.asarray(likelihood.entropy({}, outputs)) >= 0).all()
    for c in range(5):
        loss = lambda f, c=c: likelihood.log_prob({}, f, jnp.full(len(f), c)).sum()  # noqa: E731
        assert np.isfinite(jax.grad(loss)(outputs)).all()
    exact = -(1e4 - 3.0) + np.log(-np.expm1(-2.75))  # log s(κ_4 − f) + log(1 − e^{−(κ_4 − κ_3)})
    if likelihood is PLAIN:
        assert float(PLAIN.log_probs({}, jnp.array([[1e4]]))[0, 3]) == pytest.approx(exact, rel=1e-7)


def test_gaps_that_close_or_open_leave_gradients_finite():
    likelihood = ordinal(4)
    for gaps in ([-200.0, 1.0], [200.0, 1.0], [-30.0, 88.0]):
        params = {"thresholds": jnp.array([0.0, *gaps])}
        for c in range(4):
            grad = jax.grad(lambda p, c=c: likelihood.log_prob(p, jnp.array([[0.3]]), jnp.array([c]))[0])(params)
            assert np.isfinite(grad["thresholds"]).all()


def test_thresholds_start_at_the_frequencies():
    targets, weight = jnp.array([0, 0, 1, 2, 2, 2, 1]), jnp.array([1.0, 1, 1, 2, 1, 1, 0])
    likelihood = ordinal(3)
    probs = likelihood.mean(likelihood.init(targets, weight), jnp.zeros((1, 1)))[0]
    np.testing.assert_allclose(probs, np.array([2.5, 1.5, 4.5]) / 8.5, rtol=1e-5)


def test_the_prior_is_around_equally_common_classes():
    """20,000 draws: mean and spread of each of three numbers to five standard errors, false alarms below 10⁻⁵."""
    likelihood = ordinal(4, "inferred", prior_scale=0.5)
    centre = {"thresholds": jnp.asarray(likelihood.prior_loc)}
    np.testing.assert_allclose(likelihood.mean(centre, jnp.zeros((1, 1))), 0.25, rtol=1e-5)
    draws = jax.vmap(lambda k: likelihood.sample_prior(k, jnp.zeros(3, int)))(
        jax.random.split(jax.random.key(0), 20_000)
    )["thresholds"]
    assert draws.shape == (20_000, 3)
    assert np.abs(draws.mean(0) - centre["thresholds"]).max() < 5 * 0.5 / np.sqrt(20_000)
    assert np.abs(draws.std(0) - 0.5).max() < 5 * 0.5 / np.sqrt(40_000)
    value = {"thresholds": draws[0]}
    exact = scipy.stats.norm.logpdf(draws[0], likelihood.prior_loc, 0.5).sum()
    assert float(likelihood.log_prior(value)) == pytest.approx(exact, rel=1e-5)


def test_samples_have_the_class_frequencies():
    """False-alarm budget: 1e-6, one χ² test."""
    outputs = np.array([[0.4, 0.3]])
    draws = SCALED.sample(jax.random.key(1), {}, jnp.repeat(jnp.asarray(outputs), 20_000, 0))
    counts = np.bincount(draws, minlength=5)
    assert scipy.stats.chisquare(counts, 20_000 * truth(outputs)[0]).pvalue > 1e-6


def test_the_posterior_of_the_thresholds_is_that_of_quadrature():
    """Two classes have one threshold, whose posterior a grid has. Of 1,000 effective draws or more the mean is off by
    0.15 standard deviations, or the spread by 12 %, once in 10,000 runs."""
    rng, rows = np.random.default_rng(0), 60
    inputs = rng.normal(size=(rows, 1)).astype(np.float32)
    labels = (rng.logistic(size=rows) + 2 * inputs[:, 0] > 1).astype(int)
    known = {"output": {"bias": np.zeros(1, np.float32), "kernel": np.array([[2.0]], np.float32)}}
    fixed = {"network": known, "likelihood": {"thresholds": None}, "prior": {}}
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), ordinal(2), fixed=fixed)
    fit = credo.fit(jax.random.key(0), model, (inputs, labels), credo.methods.NUTS(chains=4), steps=1000)
    draws = np.asarray(fit.posterior.params["likelihood"]["thresholds"], float).ravel()
    grid = np.linspace(-6, 8, 4001)
    below = scipy.special.log_expit((1 - 2 * labels) * (grid[:, None] - 2.0 * inputs[:, 0].astype(float)))
    log_density = below.sum(1) + scipy.stats.norm.logpdf(grid, 0, 2)
    weight = np.exp(log_density - log_density.max())
    mean = np.average(grid, weights=weight)
    spread = np.sqrt(np.average((grid - mean) ** 2, weights=weight))
    assert abs(draws.mean() - mean) < 0.15 * spread
    assert abs(draws.std() / spread - 1) < 0.12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, (1.0, 0.0)), "3 classes have 2 rising thresholds"),
        ((3, (0.0,)), "2 rising thresholds"),
        ((3, "free"), '"learned" or "inferred", got \'free\''),
        ((1,), "at least 2"),
    ],
)
def test_builders_refuse_with_a_sentence(arguments, words):
    with pytest.raises(InputError, match=words):
        ordinal(*arguments)


# ---------------------------------------------------------------------- tables
@pytest.fixture(scope="module")
def grades():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    latent = 1.5 * x + rng.logistic(size=300)
    return pd.DataFrame({"x": x, "grade": 3 + np.digitize(latent, [-3.0, -1.0, 1.0, 3.0])})


def test_a_table_of_grades(grades):
    """One slope and four cut points learn what five classes of logits do: the truth's log loss, to three standard
    errors of 300 rows (about 0.1)."""
    run = credo.tables.fit(
        grades, "grade", task="classification", method="laplace", network="mlp:", holdout=0.2,
        settings={"likelihood": "ordinal"}, steps=400,
    )  # fmt: skip
    assert run.encoder.ordered
    frame = run.predict(grades)
    assert list(frame.columns[:3]) == ["label", "p_3", "p_4"]
    assert set(frame["label"]) <= {3, 4, 5, 6, 7}
    below = scipy.stats.logistic.cdf(np.array([-3.0, -1.0, 1.0, 3.0]) - 1.5 * grades[["x"]].to_numpy())
    probs = np.diff(np.concatenate([np.zeros((300, 1)), below, np.ones((300, 1))], 1))
    places = grades["grade"].to_numpy() - 3
    exact = np.log(probs[np.arange(300), places])
    found = np.log(frame.filter(like="p_").to_numpy()[np.arange(300), places])
    assert found.mean() == pytest.approx(exact.mean(), abs=0.1)


def test_classes_without_an_order_are_refused(grades):
    named = grades.assign(grade=np.array(list("abcde"))[grades["grade"] - 3])
    encoder = TableEncoder.learn(named, "grade")
    assert not encoder.ordered
    with pytest.raises(InputError, match="those of 'grade' are 'a', 'b'"):
        table_model(encoder, options={"likelihood": "ordinal"})
    with pytest.raises(InputError, match="number them in their order"):
        BayesianClassifier("map", likelihood="ordinal", steps=5).fit(named[["x"]].to_numpy(), named["grade"])


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ((3, 4, 5, 6, 7, 8, 9), True),
        ((1, 2, 4, 5), True),
        ((-2, -1, 0, 1, 2), True),
        ((1, 2, 3, 10), False),
        ((0, 1), False),
        ((1, 2.5, 3), False),
        (("1", "2", "3"), False),
        ((False, True), False),
        ((1.0, 2.0, 3.0), True),
    ],
)
def test_what_looks_like_grades(classes, said):
    assert ClassTarget("y", classes).ordered is said


def test_an_estimator_of_grades(grades):
    model = BayesianClassifier("map", "mlp:", likelihood="ordinal", steps=300, random_state=0)
    model.fit(grades[["x"]].to_numpy(), grades["grade"])
    assert model.predict_proba(grades[["x"]].to_numpy()).shape == (300, 5)
    assert model.score(grades[["x"]].to_numpy(), grades["grade"]) > 0.4


def test_probits_are_refused(grades):
    x, y = grades[["x"]].to_numpy(np.float32), grades["grade"].to_numpy() - 3
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(2.0), ordinal(5))
    fit = credo.fit(jax.random.key(0), model, (x, y), "laplace", steps=50)
    with pytest.raises(Refusal, match="logits of classes"):
        credo.predict(jax.random.key(1), fit, x, mode="probit")
