"""Is a share of rows as large as it should be, as far as so many rows can tell?"""

from dataclasses import dataclass

from scipy.stats import binomtest

SLACK = 0.02  # a difference that no decision turns on, however many rows prove it


@dataclass(frozen=True)
class Judgement:
    """A share that was observed, what it should be, and the 95 % interval that the number of rows allows.

    `verdict` is "right", "low" or "high".
    """

    observed: float
    expected: float
    low: float
    high: float
    rows: int

    @property
    def verdict(self) -> str:
        """Where the expected share lies outside the interval, on which side the observed one fell."""
        if self.low <= self.expected <= self.high or abs(self.observed - self.expected) <= SLACK:
            return "right"
        return "low" if self.observed < self.expected else "high"


def wilson(hits: int, rows: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a probability.

    Args:
        hits: how often it came true.
        rows: of how many.
        level: 0.95 for a verdict, which should seldom be wrong by chance.
    """
    interval = binomtest(hits, rows).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def judge(observed: float, rows: int, expected: float) -> Judgement:
    """Hold an observed share of `rows` against the expected one."""
    low, high = wilson(round(observed * rows), rows)
    return Judgement(observed, expected, low, high, rows)


def coverage_words(judgement: Judgement) -> str:
    """Whether intervals are as wide as they should be."""
    words = {"right": "about right", "low": "too narrow", "high": "too wide"}[judgement.verdict]
    return words + _doubt(judgement)


def confidence_words(judgement: Judgement) -> str:
    """Whether a classifier is as often right as it says."""
    words = {"right": "about right", "low": "too sure of itself", "high": "too unsure of itself"}
    return words[judgement.verdict] + _doubt(judgement)


def _doubt(judgement: Judgement) -> str:
    if judgement.verdict != "right" or judgement.high - judgement.low <= 0.25:
        return ""
    return f", as far as {judgement.rows} rows can tell"
