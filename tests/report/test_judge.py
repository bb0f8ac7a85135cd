"""Words about intervals and confidence follow the binomial interval."""

import dataclasses

import pytest
from scipy.stats import binomtest

import credo
from credo.evaluation.metrics.judge import coverage_words, judge, wilson
from credo.report.advice import advice
from credo.report.words import number, percent, summary

from .conftest import make_run, numbers_table


@pytest.mark.parametrize(
    ("observed", "rows", "verdict"),
    [
        (0.88, 45, "right"),
        (0.6, 45, "low"),
        (1.0, 100, "high"),
        (1.0, 10, "right"),  # ten rows cannot tell 100 % from 90 %
        (0.8, 10, "right"),
        (0.89, 100_000, "right"),  # certain, but no matter
        (0.85, 10_000, "low"),
        (0.0, 5, "low"),
    ],
)
def test_verdict(observed: float, rows: int, verdict: str) -> None:
    assert judge(observed, rows, 0.9).verdict == verdict


@pytest.mark.parametrize(("hits", "rows"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 7), (899, 1000), (12_345, 10**6)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_scipy(hits: int, rows: int, level: float) -> None:
    peer = binomtest(hits, rows).proportion_ci(level, method="wilson")
    assert wilson(hits, rows, level) == pytest.approx((peer.low, peer.high), rel=1e-12, abs=1e-15)


def test_few_rows_are_said_to_tell_little() -> None:
    assert coverage_words(judge(0.9, 10, 0.9)) == "about right, as far as 10 rows can tell"
    assert coverage_words(judge(0.9, 1000, 0.9)) == "about right"


@pytest.mark.parametrize(("noise", "words"), [(0.05, "too narrow"), (2.0, "too wide"), (0.32, "about right")])
def test_wrong_noise_is_seen(noise: float, words: str) -> None:
    """The true noise is about 0.32 of the target's spread, in which unit the model's noise is given."""
    likelihood = credo.likelihoods.gaussian(noise=noise)
    run = make_run("noise", numbers_table(rows=300), "y", "map", 300, "regression", likelihood)
    assert words in " ".join(summary(run))
    tips = " ".join(advice(run))
    assert (words in tips) == (words != "about right")
    assert ("deep_ensemble" in tips) == (words == "too narrow")


def test_learning_by_heart_is_seen() -> None:
    """Forty rows and twelve inputs leave a network nothing to call noise; more steps would not help."""
    table = numbers_table(tuple("abcdefghijkl"), rows=80)
    tips = " ".join(advice(make_run("heart", table, "y", credo.methods.MAP(learning_rate=0.02), 1500, "regression")))
    assert "by heart" in tips
    assert "more steps" not in tips


def test_alarms_come_with_advice(sampler) -> None:
    """Two chains of forty draws: too few to be worth a hundred independent ones."""
    alarms = sampler.fit.diagnostics.alarms
    assert alarms
    assert all(any(alarm.advice[1:] in tip for tip in advice(sampler)) for alarm in alarms)


def test_training_rows_are_not_called_held_out(regression) -> None:
    run = dataclasses.replace(regression, rows="training")
    assert "training rows" in summary(run)[0]
    assert any("flatter" in tip for tip in advice(run))


def test_numbers_read_well() -> None:
    assert [number(v) for v in (53.123, 1234.5, 0.00123)] == ["53.1", "1,234", "0.00123"]
    assert [percent(v) for v in (1.0, 0.999, 0.881, 0.001, 0.0)] == [
        "100 %",
        "over 99.5 %",
        "88 %",
        "under 0.5 %",
        "0 %",
    ]
