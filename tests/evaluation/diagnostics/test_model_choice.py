"""Leave-one-out, WAIC and comparisons beside the exact answer of the conjugate linear model."""

import jax
import numpy as np
import pytest
from scipy import stats

import credo
from credo import replicate, subset, then
from credo.errors import InputError, Refusal
from credo.evaluation.diagnostics import compare, log_likelihood_draws, loo, stack, waic
from credo.methods import VIS, BayesByBackprop
from credo.posteriors import MeanField
from credo.training.config import describe

from .conftest import PROBLEM, as_params, exact_draws, samples, with_posterior

DATA = (PROBLEM.inputs, PROBLEM.targets)


def exact_loo(problem):
    """log p(y_n | y_−n) of every row: the posterior without row n is N(m, C), so y_n ~ N(x'm, σ² + x'Cx)."""
    design, found = problem.design, []
    for n in range(len(design)):
        keep = np.arange(len(design)) != n
        part = problem._replace(inputs=problem.inputs[keep], targets=problem.targets[keep])
        variance = problem.noise**2 + design[n] @ part.covariance @ design[n]
        found.append(stats.norm.logpdf(problem.targets[n], design[n] @ part.mean, np.sqrt(variance)))
    return np.array(found)


@pytest.fixture(scope="module")
def exact():
    return exact_loo(PROBLEM)


@pytest.fixture(scope="module")
def fit(base):
    return with_posterior(base, samples(exact_draws(PROBLEM)))


def test_loo_is_exact_up_to_its_monte_carlo_error(fit, exact):
    """elpd_n = −log mean 1/p(y_n|θ), with standard error CV[1/p]/√S; 256 rows within 5 of them (rate 2e-4)."""
    found = loo(fit, DATA)
    inverse = np.exp(-log_likelihood_draws(jax.random.key(0), fit, *DATA).reshape(4000, -1).astype(float))
    error = inverse.std(0) / inverse.mean(0) / np.sqrt(4000)
    assert (np.abs(found.pointwise - exact) < 5 * error + 1e-5).all()
    assert found.elpd == pytest.approx(exact.sum(), abs=0.5)
    assert found.p == pytest.approx(5, abs=1)
    assert found.pareto_k.max() < found.good_k
    assert found.sentences == ()
    assert "effective parameters" in str(found)


def test_waic_is_close_to_loo(fit, exact):
    """They differ by O(p²/N) = 0.1 here."""
    found = waic(fit, DATA)
    assert found.elpd == pytest.approx(exact.sum(), abs=0.5)
    assert found.p == pytest.approx(5, abs=1)
    assert found.sentences == ()


def test_a_row_that_moves_the_posterior_is_named(base):
    """An outlier at the end of a lever: its k̂ is beyond the bound."""
    inputs, targets = PROBLEM.inputs.copy(), PROBLEM.targets.copy()
    inputs[0], targets[0] = 30.0, 300.0
    odd = PROBLEM._replace(inputs=inputs, targets=targets)
    fit = with_posterior(base, samples(exact_draws(odd)))
    found = loo(fit, (inputs, targets))
    assert found.pareto_k.argmax() == 0
    assert "not reliable" in found.sentences[0]
    assert "use loo" in waic(fit, (inputs, targets)).sentences[0]


def test_comparison_finds_the_better_model(base, fit, exact):
    """Beside it, the same model under a prior that all but forbids weights; the gap is that of the exact answers."""
    tight = PROBLEM._replace(scale=0.05)
    worse = with_posterior(base, samples(exact_draws(tight)), model=tight.model())
    found = compare({"tight": worse, "right": fit}, DATA)
    assert list(found.table.index) == ["right", "tight"]
    gap = exact.sum() - exact_loo(tight).sum()
    assert found.table["elpd_diff"]["tight"] == pytest.approx(gap, abs=1.0)
    assert found.table["weight"].sum() == pytest.approx(1)
    assert found.table["weight"]["right"] > 0.8
    assert found.table["elpd"]["right"] == loo(fit, DATA).elpd
    gaps = loo(fit, DATA).pointwise - loo(worse, DATA).pointwise
    assert found.table["dse"].tolist() == pytest.approx([0, np.sqrt(256) * gaps.std()])
    assert found.table["rank"].tolist() == [0, 1]
    assert "right predicts best" in found.sentences[0]
    same = compare({"a": fit, "b": with_posterior(base, samples(exact_draws(PROBLEM, seed=1)))}, DATA, ic="waic")
    assert "no more than chance" in same.sentences[0]
    assert "a" in str(same)


def test_draws_are_made_where_none_are_stored(base, exact):
    q = MeanField(*(as_params(x[None]) for x in (PROBLEM.mean, PROBLEM.mean_field_std)), {}, {})
    found = loo(with_posterior(base, q), DATA)
    assert found.elpd == pytest.approx(exact.sum(), abs=5)  # another posterior, but close


@pytest.mark.parametrize("estimate", [loo, waic, stack])
def test_rows_that_do_not_count_once_are_refused(base, fit, estimate):
    """Under T the exact draws are those of another posterior, and 1/p(y_n|θ) takes out another power than is in it."""
    cold = with_posterior(base, fit.posterior, model=PROBLEM.model().tempered(0.5))
    with pytest.raises(Refusal, match=r"\^\(1/\(βT\)\) with β = 1 and T = 0\.5"):
        estimate(cold, DATA)
    plain, half = BayesByBackprop(), BayesByBackprop(beta=0.5)
    for method in (half, replicate(half, 2), then("map", half), subset(half, "*")):
        config = base.config | describe(method, base.model)
        with pytest.raises(Refusal, match=r"with β = 0\.5 and T = 1"):
            estimate(with_posterior(base, fit.posterior, config=config), DATA)
    for method in (plain, then(half, "hmc"), VIS(beta=0.5)):  # β of q is not that of the chain that follows it
        config = base.config | describe(method, base.model)
        estimate(with_posterior(base, fit.posterior, config=config), DATA)


def test_a_fit_with_weights_of_rows_is_refused(fit):
    weights = np.where(np.arange(256) < 128, 0.5, 1.0)
    learned = credo.fit(jax.random.key(0), PROBLEM.model(), (*DATA, weights), "map", steps=1)
    with pytest.raises(Refusal, match=r"p\(y_n\|θ\)\^w"):
        loo(with_posterior(learned, fit.posterior), DATA)


def test_refusals(base, fit):
    with pytest.raises(Refusal, match="too few"):
        loo(base, DATA)
    with pytest.raises(Refusal, match="without weights"):
        loo(fit, (*DATA, np.full(256, 2.0)))
    with pytest.raises(InputError, match="at least two"):
        compare({"one": fit}, DATA)
    with pytest.raises(InputError, match='"loo" or "waic"'):
        compare({"a": fit, "b": fit}, DATA, ic="aic")
    with pytest.raises(InputError, match="256 targets"):
        loo(fit, (PROBLEM.inputs, PROBLEM.targets[:3]))
