"""Coverage on rows outside of training, and the corrections that it asks for, on predictions whose error is known."""

import numpy as np
import pytest

from credo.evaluation.recalibration.unseen import Unseen, at_frequencies, corrected, coverages, with_settings
from credo.likelihoods import Overdispersed, Stretched, bernoulli, categorical, gaussian, poisson, zero_inflated_poisson

ROWS = 2000


def numbers(noise, error=1.0, rows=ROWS, parts=1, members=0):
    """Rows that err by `error` and are told to err by `noise`."""
    y = np.random.default_rng(0).normal(0, error, (rows, 1))
    return [
        Unseen(
            gaussian(noise), {}, np.zeros((2, len(cut), 1)), np.full((2, len(cut)), np.log(0.5)), cut,
            np.ones(len(cut)), members,
        )
        for cut in np.array_split(y, parts)
    ]  # fmt: skip


@pytest.mark.parametrize("parts", [1, 3])
def test_coverage_is_counted(parts):
    """90 % of 2,000 rows within 3 points, 4.5 standard errors."""
    assert coverages(numbers(1.0, parts=parts)) == pytest.approx([0.8, 0.9, 0.95], abs=0.03)
    assert coverages(numbers(0.5, parts=parts))[1] == pytest.approx(0.589, abs=0.04)  # ±1.645/2 standard deviations


@pytest.mark.parametrize(("noise", "factor"), [(0.25, 4.0), (3.0, 1 / 3)])
def test_noise_that_is_far_off_is_mended_and_said(noise, factor):
    found = corrected(numbers(noise, parts=2))
    assert found.honest
    assert found.settings["factor"] == pytest.approx(factor, rel=0.06)
    assert isinstance(found.likelihood, Stretched)
    assert found.facts["coverage_after"] == pytest.approx(0.9, abs=0.02)
    assert f"{max(factor, 1 / factor):.0f}."[:2] in found.sentence or "times" in found.sentence
    assert "rows outside of training, 90 % intervals held" in found.sentence
    assert with_settings(gaussian(noise), found.settings) == found.likelihood


def test_noise_that_is_right_is_let_be():
    found = corrected(numbers(1.0))
    assert found.settings is None
    assert found.likelihood == gaussian(1.0)
    assert found.honest
    assert found.sentence == ""
    assert corrected(numbers(1.0), always=True).settings["factor"] == pytest.approx(1.0, abs=0.06)


def test_an_outlier_does_not_move_it():
    rows = numbers(0.5)
    rows[0].targets[0] = 1e9
    assert corrected(rows).settings["factor"] == pytest.approx(2.0, rel=0.06)


def test_few_rows_are_a_warning():
    found = corrected(numbers(0.1, rows=8))
    assert found.settings is None
    assert not found.honest
    assert found.sentence.startswith("Warning: 8 rows outside of training are too few")


def test_a_coverage_that_no_factor_mends_is_a_warning():
    """Half of the rows are told exactly right with no noise to speak of, the others are off by a million times it."""
    rows = numbers(1e-9, error=1e-3)
    found = corrected(rows)
    assert not found.honest
    assert found.sentence.startswith("Warning: on 2000 rows")
    assert "do not trust them" in found.sentence


def test_members_that_saw_other_rows_need_less_noise_together():
    """Rows of two members that err by v each: all ten together err less, and their mixture is wider."""
    rng = np.random.default_rng(0)
    means = rng.normal(0, 0.5, (10, ROWS, 1))
    y = rng.normal(0, 1.0, (ROWS, 1))
    held = np.zeros((10, ROWS), bool)
    for row, pair in enumerate(rng.permuted(np.tile(np.arange(10), (ROWS, 1)), axis=1)[:, :2]):
        held[pair, row] = True
    with np.errstate(divide="ignore"):
        log_weights = np.log(held / 2)
    rows = Unseen(gaussian(1.0), {}, means, log_weights, y, np.ones(ROWS), 10)
    together = corrected([rows], always=True).settings["factor"]
    all_of_them = np.full((10, ROWS), -np.log(10))
    new = rows._replace(likelihood=Stretched(gaussian(1.0), together), log_weights=all_of_them, members=0)
    assert coverages([new])[1] == pytest.approx(0.9, abs=0.025)
    apart = corrected([rows._replace(members=0)], always=True).settings["factor"]
    assert coverages([new._replace(likelihood=Stretched(gaussian(1.0), apart))])[1] > 0.92


def counts(factor):
    rng = np.random.default_rng(0)
    mean = 12.0
    r = mean / (factor**2 - 1)
    y = rng.poisson(rng.gamma(r, mean / r, (ROWS, 1))).astype(float)
    return Unseen(poisson(), {}, np.full((1, ROWS, 1), np.log(mean)), np.zeros((1, ROWS)), y, np.ones(ROWS))


def test_counts_that_vary_more_than_told():
    found = corrected([counts(2.0)])
    assert isinstance(found.likelihood, Overdispersed)
    assert found.settings["factor"] == pytest.approx(2.0, rel=0.1)
    assert found.facts["coverage"] < 0.7


def test_counts_that_are_right_are_let_be():
    """Whole numbers make intervals hold more than they say; the share of a step that lies inside does not."""
    y = np.random.default_rng(0).poisson(1.5, (ROWS, 1)).astype(float)
    rows = Unseen(poisson(), {}, np.full((1, ROWS, 1), np.log(1.5)), np.zeros((1, ROWS)), y, np.ones(ROWS))
    assert coverages([rows]) == pytest.approx([0.8, 0.9, 0.95], abs=0.03)
    assert corrected([rows]).settings is None


def test_a_factor_that_makes_intervals_worse_is_not_taken():
    """A mixture with zeros around a mean of 2: a negative binomial of its mean and a wider variance is nearly all 0."""
    rng = np.random.default_rng(3)
    outputs = np.tile(np.float32([np.log(3.0), -0.7]), (ROWS, 1))
    values = np.where(rng.random(ROWS) < 0.33, 0, rng.poisson(3.0, ROWS)).astype(np.float32)[:, None]
    part = Unseen(zero_inflated_poisson(), {}, outputs[None], np.zeros((1, ROWS)), values, np.ones(ROWS))
    found = corrected([part], always=True)
    before, after = coverages([part])[1], coverages([part._replace(likelihood=found.likelihood)])[1]
    assert abs(after - 0.9) <= max(abs(before - 0.9), 0.05)
    assert found.honest == (found.facts.get("coverage_after", before) > 0.85)


def classes(scale, signal=1.0, rows=ROWS, likelihood=None):
    """Labels with logit `signal` · x, told with logit `scale` · x."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    y = (rng.random(rows) < 1 / (1 + np.exp(1.0 - signal * x))).astype(int)
    return Unseen(
        likelihood or bernoulli(), {}, (scale * x - 1.0)[None, :, None], np.zeros((1, rows)), y, np.ones(rows)
    )


def test_probabilities_that_are_too_sure_are_flattened():
    rows = classes(6.0)
    frequencies = at_frequencies(rows.targets, rows.weight, 2)
    found = corrected([rows], frequencies)
    assert found.settings["heat"] > 2
    assert found.facts["log_likelihood_after"] > found.facts["log_likelihood_of_frequencies"]
    assert found.facts["log_likelihood"] < found.facts["log_likelihood_after"] - 0.1
    assert "probabilities were flattened" in found.sentence
    assert with_settings(bernoulli(), found.settings).heat == found.likelihood.heat


def test_probabilities_that_know_nothing_become_the_frequencies():
    rows = classes(6.0, signal=0.0)
    found = corrected([rows], at_frequencies(rows.targets, rows.weight, 2))
    assert found.facts["log_likelihood_after"] >= found.facts["log_likelihood_of_frequencies"] - 1e-3
    assert found.facts["log_likelihood"] < found.facts["log_likelihood_of_frequencies"] - 0.5


def test_probabilities_that_are_right_are_let_be():
    """Every row has each label with the weight of its probability, so the truth is the best on these very rows."""
    x = np.random.default_rng(1).normal(size=500)
    p = 1 / (1 + np.exp(1.0 - x))
    outputs, y = np.tile(x - 1.0, 2)[None, :, None], np.repeat([1, 0], 500)
    rows = Unseen(bernoulli(), {}, outputs, np.zeros((1, 1000)), y, np.append(p, 1 - p))
    found = corrected([rows], at_frequencies(y, rows.weight, 2))
    assert found.settings is None
    assert found.sentence == ""
    assert corrected([rows], at_frequencies(y, rows.weight, 2), always=True).settings["heat"] == pytest.approx(
        1, abs=0.1
    )


def test_three_classes():
    logits = np.random.default_rng(0).normal(size=(1, ROWS, 3)) * 5
    y = np.random.default_rng(1).integers(3, size=ROWS)
    rows = Unseen(categorical(3), {}, logits, np.zeros((1, ROWS)), y, np.ones(ROWS))
    found = corrected([rows], at_frequencies(y, np.ones(ROWS), 3))
    assert found.facts["log_likelihood_after"] == pytest.approx(-np.log(3), abs=0.01)
