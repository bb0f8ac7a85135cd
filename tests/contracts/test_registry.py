"""Every registered method, held to what its row claims. Nothing here names a method: the registry does."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from scipy import stats

import arviz_numbers
import credo
import credo.errors
from credo.methods.combine import stages
from credo.registry import METHODS, ROWS, build_method, find
from credo.training.arguments import numbers, precision
from credo.training.config import plain
from credo.training.source import Source
from credo.training.starts import start_members
from oracles import coefficients, first_of_each_claim, linear

PROBLEM = linear()
EXACT = ("posterior", "architectures")  # a linear model has one architecture
STEPS = dict.fromkeys((*EXACT, "near_posterior"), 1000)
SHORT = 200  # programs are those of any number of steps


def quick(row):
    return row.load()(**row.quick_settings())


def length(row):
    """Steps and thinning: as many draws of every chain; what learns a distribution, or moves a population, takes its
    own number."""
    if not stages(quick(row))[-1].phases(64, 1)[-1].keeps_draws:
        return {}
    return {"steps": STEPS[row.exact_on] * row.thin, "thin": row.thin} if row.exact_on in STEPS else {}


def fit(row, seed=0, **options):
    data = (PROBLEM.inputs, PROBLEM.targets)
    options = length(row) | options
    return credo.fit(jax.random.key(seed), PROBLEM.model(), data, quick(row), **options)


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def fitted(request):
    return request.param, fit(request.param)


def z_scores(values, truth):
    """(estimate − truth) / Monte-Carlo standard error, for the means of chains [chain, draw, …]."""
    error = arviz_numbers.mcse(values)
    return (values.mean((0, 1)) - truth) / error


def beyond(values, truth, tolerance):
    """How far the means of chains are off beyond a tolerance, in Monte-Carlo standard errors."""
    error = arviz_numbers.mcse(values)
    return (np.abs(values.mean((0, 1)) - truth) - tolerance) / error


def exact_covariance(spread):
    """The covariance of (b, w), from the log density's second derivatives."""

    def log_prob(theta):
        return spread.log_prob({"output/bias": theta[:1], "output/kernel": theta[None, 1:]})

    with jax.enable_x64(True):
        return np.linalg.inv(-jax.jit(jax.hessian(log_prob))(np.zeros(len(PROBLEM.mean))))


def chains_of(posterior):
    """Coefficients [chain, draw, …]: stored chains, or 4,000 independent draws of a distribution as four of them."""
    if hasattr(posterior, "params"):
        return coefficients(posterior.params["network"]).astype(np.float64)
    draws = coefficients(posterior.sample(jax.random.key(2), 4000)["network"]).astype(np.float64)
    return draws.reshape(4, 1000, -1)


def test_linear_model_matches_claim(fitted):
    """Points and variational means are exact to 0.2 of a standard deviation and variational spreads to 5 %. Chains:
    all z-scores of means and variances are below the Bonferroni bound for a false-alarm rate of 1e-3; where a chain is
    right to a tolerance only, so are those of what is off beyond a mean's 0.1 standard deviations and a variance's
    10 %. Weighted draws: within five standard errors (false alarms below 1e-5)."""
    row, result = fitted
    truth = PROBLEM.least_squares if row.exact_on == "least_squares" else PROBLEM.mean
    if row.exact_on in EXACT:
        chains = coefficients(result.posterior.params["network"]).astype(np.float64)
        squares = (chains - PROBLEM.mean) ** 2
        scores = np.concatenate([z_scores(chains, truth), z_scores(squares, np.diag(PROBLEM.covariance))])
        assert np.abs(scores).max() < stats.norm.isf(1e-3 / 2 / scores.size)
    elif row.exact_on == "near_posterior":
        chains = chains_of(result.posterior)
        spread = np.sqrt(np.diag(PROBLEM.covariance))
        scores = [beyond((chains - truth) / spread, 0.0, 0.1), beyond(((chains - truth) / spread) ** 2, 1.0, 0.1)]
        assert np.max(scores) < stats.norm.isf(1e-3 / 2 / np.size(scores))
    elif row.exact_on == "weighted":
        draws = coefficients(result.posterior.params["network"]).astype(np.float64)
        weights = np.exp(np.asarray(result.posterior.log_weights, np.float64))[..., None]
        error = np.sqrt((weights**2).sum())  # of a mean, in standard deviations; √2 times it for a variance
        spread = np.sqrt(np.diag(PROBLEM.covariance))
        np.testing.assert_allclose(((weights * draws).sum((0, 1)) - truth) / spread, 0, atol=5 * error)
        variance = (weights * (draws - truth) ** 2).sum((0, 1))
        np.testing.assert_allclose(variance / spread**2, 1, atol=5 * 2**0.5 * error)
    elif row.exact_on == "mean":
        draws = coefficients(result.posterior.sample(jax.random.key(2), 2000)["network"]).astype(np.float64)
        np.testing.assert_allclose(draws.mean(0), truth, atol=0.2 * PROBLEM.mean_field_std.min())
        assert (draws.std(0) > 0).all()
        if hasattr(result.posterior, "params"):  # particles keep apart; how far iterates move is nobody's claim
            assert (draws.std(0) > 0.3 * np.sqrt(np.diag(PROBLEM.covariance))).all()
    elif row.exact_on == "gaussian":
        mean, spread = result.posterior.mean["network"], jax.tree.map(lambda x: x[0], result.posterior.spread)
        np.testing.assert_allclose(coefficients(mean)[0], truth, atol=1e-3 * PROBLEM.mean_field_std.min())
        np.testing.assert_allclose(exact_covariance(spread), PROBLEM.covariance, rtol=1e-4, atol=1e-8)
    elif row.exact_on == "functions":
        mean, covariance = result.posterior.moments(PROBLEM.inputs, covariance=True)
        np.testing.assert_allclose(mean[:, 0], PROBLEM.design @ truth, rtol=1e-6, atol=1e-6)
        expected = PROBLEM.design @ PROBLEM.covariance @ PROBLEM.design.T
        np.testing.assert_allclose(covariance[:, 0, :, 0], expected, rtol=1e-6, atol=1e-8)
    elif row.exact_on == "mean_field":
        mean, std = (coefficients(t["network"])[0] for t in (result.posterior.mean, result.posterior.std))
        np.testing.assert_allclose(mean, truth, atol=0.2 * PROBLEM.mean_field_std.min())
        np.testing.assert_allclose(std, PROBLEM.mean_field_std, rtol=0.05)
    else:
        points = coefficients(result.posterior.params["network"])
        np.testing.assert_allclose(points, np.broadcast_to(truth, points.shape), atol=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("row", [r for r in ROWS if r.exact_on in EXACT], ids=lambda row: row.name)
def test_chains_with_fresh_keys(row):
    """Ten runs with keys that nobody chose; one Bonferroni bound over all of them, for a false-alarm rate of 1e-3."""
    seeds = np.random.SeedSequence().generate_state(10)
    scores = []
    for seed in seeds:
        chains = coefficients(fit(row, seed=int(seed)).posterior.params["network"]).astype(np.float64)
        scores += [z_scores(chains, PROBLEM.mean)]
        scores += [z_scores((chains - PROBLEM.mean) ** 2, np.diag(PROBLEM.covariance))]
    worst = np.abs(np.concatenate(scores)).max()
    assert worst < stats.norm.isf(1e-3 / 2 / np.size(scores)), seeds


def told(result, new):
    """What users ask of a fit: predictions, scores, draws and its status."""
    predictive = credo.predict(jax.random.key(1), result, new, num_samples=200)
    targets = PROBLEM.targets[: len(new)]
    found = [predictive.mean, predictive.std, *predictive.interval(), predictive.log_prob(targets)]
    found += [
        predictive.sample(jax.random.key(2), 3),
        *credo.metrics.summarise(predictive, targets).values(),
    ]
    return [np.asarray(x) for x in found], str(result.status)


@pytest.mark.parametrize("fitted", first_of_each_claim(ROWS), indirect=True)
def test_the_global_flag_of_double_precision_changes_nothing(fitted):
    """The same bits under `jax_enable_x64`: programs have the precision that they ask for, so the oracle holds, too."""
    row, result = fitted
    plain, status = told(result, PROBLEM.inputs[:20])
    with jax.enable_x64(True):
        again = fit(row)
        double, status_again = told(again, PROBLEM.inputs[:20])
    for one, other in ((result.posterior, again.posterior), (result.phases, again.phases), (plain, double)):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other)):
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    assert status == status_again


def test_predictive_matches_linear_model(fitted):
    """Epistemic variance at new inputs: x'Σx for the posterior, Σ x_i² s_i² for mean field, 0 for points."""
    row, result = fitted
    new = PROBLEM.inputs[:20] * 2
    predictive = credo.predict(jax.random.key(1), result, new, num_samples=4000)
    design = np.column_stack([np.ones(20), new])
    expected = {
        "gaussian": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "functions": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "posterior": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "architectures": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "weighted": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "near_posterior": np.einsum("ni,ij,nj->n", design, PROBLEM.covariance, design),
        "mean_field": (design**2) @ PROBLEM.mean_field_std**2,
    }.get(row.exact_on, np.zeros(20))
    # Relative error of a variance from 1,000 independent draws is 4.5 %; 30 % is beyond six of them.
    if row.exact_on == "mean":
        assert (predictive.epistemic > 0).all()
    else:
        np.testing.assert_allclose(predictive.epistemic, expected, rtol=0.3, atol=1e-6)
    np.testing.assert_allclose(predictive.aleatoric, PROBLEM.noise**2, rtol=1e-6)
    np.testing.assert_allclose(predictive.variance, predictive.aleatoric + predictive.epistemic, rtol=1e-6)


@pytest.mark.parametrize("row", first_of_each_claim(ROWS))
def test_same_key_same_numbers_and_a_second_fit_compiles_nothing(row):
    """The same key gives the same numbers. Idea 6: after one fit, other numbers in method, prior, noise and data, and
    another N of the same bucket, find their programs."""
    from credo.training.clock import COMPILING

    result, again = fit(row, steps=SHORT), fit(row, steps=SHORT)
    same = jax.tree.map(lambda a, b: np.array_equal(a, b), result.posterior, again.posterior)
    assert all(jax.tree.leaves(same))
    method = quick(row)
    if method.step_field:
        method = dataclasses.replace(method, **{method.step_field: 0.7 * getattr(method, method.step_field)})
    changed = PROBLEM._replace(scale=2.0, noise=0.4)
    data = (PROBLEM.inputs[:250], PROBLEM.targets[:250] + 1)
    before = COMPILING.programs
    credo.fit(jax.random.key(4), changed.model(), data, method, **length(row) | {"steps": SHORT})
    assert COMPILING.programs == before, f"{COMPILING.programs - before} programs compiled on a repeated fit"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_block_gives_back_the_types_it_was_given(row):
    """Else every phase is compiled twice: states that begin with JAX's weak types did that."""
    method = quick(row)
    for part in stages(method):
        prepared, _ = part.prepare(PROBLEM.model())
        keys = jax.random.key_data(jax.random.split(jax.random.key(0), method.members))
        batch = Source(prepared, (PROBLEM.inputs, PROBLEM.targets)).on_device()
        with precision(part):
            carry = start_members.eval_shape(numbers(part), numbers(prepared), keys, batch, None)
        assert not any(x.weak_type for x in jax.tree.leaves(carry)), type(part).__name__


@pytest.mark.full
def test_another_key_gives_other_numbers(fitted):
    row, result = fitted
    if row.exact_on in ("gaussian", "functions"):
        pytest.skip("closed forms have no chance in them")
    other = fit(row, seed=1)
    differs = jax.tree.map(lambda a, b: not np.array_equal(a, b), result.posterior, other.posterior)
    assert any(jax.tree.leaves(differs))


def test_settings_are_plain_data(fitted):
    row, result = fitted
    assert json.loads(json.dumps(result.config)) == result.config
    assert result.config["method"] == row.name
    assert result.config["beta"] == 1.0
    assert result.config["temperature"] == 1.0
    assert quick(row) == quick(row)
    assert plain(quick(row))["type"] == type(quick(row)).__name__


def test_strings_classes_and_objects_are_the_same():
    for row in ROWS:
        assert build_method(row.name) == build_method(row.load()) == row.load()()
        assert getattr(credo.methods, row.load().__name__) is row.load()


def test_unknown_method_gets_a_hint():
    with pytest.raises(credo.errors.InputError, match="Did you mean 'nuts'"):
        find("nutz")
    assert set(METHODS) == {row.name for row in ROWS}
