"""Conformal prediction: the rank rule exactly, and the promised coverage over repeated samples."""

import math

import jax
import numpy as np
import pytest
import scipy.special
import scipy.stats

from credo import likelihoods
from credo.errors import InputError, Refusal
from credo.evaluation.recalibration import split_conformal
from credo.evaluation.recalibration.conformal import rank
from credo.evaluation.recalibration.conformal_sets import set_scores
from predictives import predictive

CALIBRATION, FRESH, ROUNDS = 19, 60, 60
ROWS = CALIBRATION + FRESH  # predictions are padded to this many: one program for all


@pytest.mark.parametrize(
    ("rows", "coverage", "place"),
    [(9, 0.9, 9), (10, 0.9, 10), (99, 0.9, 90), (100, 0.9, 91), (19, 0.95, 19), (1, 0.5, 1)],
)
def test_the_rank_is_the_ceiling_of_n_plus_one_times_coverage(rows, coverage, place):
    assert rank(rows, coverage) == place
    assert place == math.ceil(round((rows + 1) * coverage, 9))


@pytest.mark.parametrize(("rows", "coverage", "needed"), [(8, 0.9, 9), (18, 0.95, 19), (1, 0.9, 9)])
def test_too_few_rows_are_a_sentence(rows, coverage, needed):
    with pytest.raises(Refusal, match=f"at least {needed} rows"):
        rank(rows, coverage)
    assert rank(needed, coverage) == needed


def test_the_margin_is_the_score_of_that_rank():
    p = predictive(likelihoods.gaussian(noise=1.0), np.zeros((1, 19, 1)))
    edge = float(p.interval(0.9)[1][0])
    y = edge + np.random.default_rng(0).permutation(19) - 9.0
    found = split_conformal(p, y)
    assert found.margin == pytest.approx(np.sort(np.maximum(-edge - y, y - edge))[17])
    low, high = found.apply(p)
    assert ((low <= y) & (y <= high)).sum() == 18
    # With one rank less the promise would be broken: 17 of 19 rows, where 0.9 · 20 = 18 are needed.
    assert ((low < y) & (y < high)).sum() == 17


def gaussian_mixture(rng, rows):
    return likelihoods.gaussian(noise=0.2), rng.normal(size=(3, rows, 1)) + np.reshape([-2, 0, 2], (3, 1, 1)), True


def student_t(rng, rows):
    return likelihoods.student_t(df=3, noise=0.3), rng.normal(size=(2, rows, 1)), True


def heteroscedastic_pairs(rng, rows):
    return likelihoods.heteroscedastic(), rng.normal(size=(2, rows, 4)), False


def counts(rng, rows):
    return likelihoods.poisson(), 1 + rng.normal(size=(2, rows, 1)), True


@pytest.mark.parametrize(
    ("case", "rounds"), [(gaussian_mixture, 60), (student_t, 6), (heteroscedastic_pairs, 30), (counts, 30)]
)
def test_intervals_cover_as_promised(case, rounds):
    """The model is wrong (targets are wider than it says) and coverage holds all the same.

    Over rounds the coverage of continuous targets averages k/(n + 1) = 0.9, that of one round with the spread of a
    beta distribution and of a binomial; five standard errors: false alarms below 10⁻⁶.
    """
    rng = np.random.default_rng(0)
    likelihood, outputs, flat = case(rng, ROWS)
    p = predictive(likelihood, outputs, flat)
    ends, shares, before = p.interval(0.9), [], []
    for i in range(rounds):
        # New rows each round: the same predictions in another order, with new targets.
        order = rng.permutation(ROWS)
        y = p.sample(jax.random.fold_in(jax.random.key(0), i), 1)[0]
        wide = np.round(1.7 * y) if p.kind == "counts" else p.mean + 1.7 * (y - p.mean)
        first, rest = order[:CALIBRATION], order[CALIBRATION:]
        found = split_conformal(predictive(likelihood, outputs[:, first], flat, width=ROWS), wide[first])
        low, high = found.apply(predictive(likelihood, outputs[:, rest], flat, width=ROWS))
        shares.append(np.mean((low <= wide[rest]) & (wide[rest] <= high), 0))
        before.append(np.mean((ends[0] <= wide) & (wide <= ends[1])))
    place = rank(CALIBRATION, 0.9)
    beta = scipy.stats.beta(place, CALIBRATION + 1 - place)
    error = np.sqrt((beta.var() + 0.09 / FRESH) / rounds)
    share = np.mean(shares, 0)
    assert (share > beta.mean() - 5 * error).all()
    if p.kind == "real":
        assert (share < beta.mean() + 5 * error).all()
    assert np.mean(before) < 0.88


@pytest.mark.parametrize("method", ["threshold", "adaptive"])
def test_sets_of_classes_cover_as_promised(method):
    """As above; probabilities are far too sure, and sets hold the true class as often as promised."""
    rng = np.random.default_rng(0)
    shares, sizes = [], []
    for _ in range(ROUNDS):
        logits = rng.normal(size=(CALIBRATION + FRESH, 4))
        y = (scipy.special.softmax(logits, 1).cumsum(1) < rng.uniform(size=(len(logits), 1))).sum(1)
        sure, likelihood = (4 * logits)[None], likelihoods.categorical(4)
        first, rest = sure[:, :CALIBRATION], sure[:, CALIBRATION:]
        found = split_conformal(predictive(likelihood, first, width=ROWS), y[:CALIBRATION], method=method)
        sets = found.apply(predictive(likelihood, rest, width=ROWS))
        shares.append(sets[np.arange(FRESH), y[CALIBRATION:]].mean())
        sizes.append(sets.sum(1).mean())
        assert sets.any(1).all()
    place = rank(CALIBRATION, 0.9)
    beta = scipy.stats.beta(place, CALIBRATION + 1 - place)
    assert np.mean(shares) > beta.mean() - 5 * np.sqrt((beta.var() + 0.09 / FRESH) / ROUNDS)
    assert np.mean(sizes) < 3.9


def test_scores_of_sets_by_hand():
    probs = np.array([[0.5, 0.2, 0.3], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(set_scores(probs, "threshold"), 1 - probs)
    np.testing.assert_allclose(set_scores(probs, "adaptive"), [[0.5, 1.0, 0.8], [0.8, 0.8, 1.0]])


def test_counts_have_whole_ends_of_at_least_zero():
    rng = np.random.default_rng(0)
    p = predictive(likelihoods.poisson(), rng.normal(size=(2, 60, 1)), width=ROWS)
    low, high = split_conformal(p, rng.poisson(1.0, 60), 0.5).apply(p)
    assert (low >= 0).all()
    assert (low <= high).all()
    np.testing.assert_array_equal([low, high], np.round([low, high]))
    low, high = split_conformal(p, np.asarray(p.quantile(0.5)), 0.9).apply(p)  # margins below 0 shrink, never cross
    assert (low <= high).all()


def test_results_say_what_they_are_and_fit_only_their_kind():
    rng = np.random.default_rng(0)
    p = predictive(likelihoods.gaussian(noise=1.0), rng.normal(size=(3, 30, 1)), width=ROWS)
    found = split_conformal(p, rng.normal(size=30), 0.8)
    assert "Recalibrated after the fact: split conformal" in found.note
    assert "coverage=0.8" in repr(found)
    classes = predictive(likelihoods.categorical(3), rng.normal(size=(2, 30, 3)), width=ROWS)
    sets = split_conformal(classes, rng.integers(0, 3, 30))
    assert "30 calibration rows" in sets.note
    assert "threshold" in repr(sets)
    with pytest.raises(InputError, match="3 classes"):
        sets.apply(p)
    with pytest.raises(InputError, match="other targets"):
        found.apply(predictive(likelihoods.poisson(), np.zeros((2, 30, 1)), width=ROWS))
    with pytest.raises(InputError, match="Unknown method for real"):
        split_conformal(p, np.zeros(30), method="adaptive")
    with pytest.raises(InputError, match="Coverage"):
        split_conformal(p, np.zeros(30), 1.0)
