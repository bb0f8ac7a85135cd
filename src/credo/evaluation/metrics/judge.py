"""Is a share of rows as large as it should be, as far as so many rows can tell?"""

import math
from dataclasses import dataclass

from scipy.special import ndtri

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
    """Wilson's interval of a probability: {(2np + z²) ± z √(4np(1 − p) + z²)} / {2(n + z²)}, p the observed share.

    Wilson (1927), Probable inference, the law of succession, and statistical inference. Written out, because SciPy's
    statistics take a third of a second to import.

    Args:
        hits: how often it came true.
        rows: of how many.
        level: 0.95 for a verdict, which should seldom be wrong by chance.
    """
    share, z = hits / rows, float(ndtri(0.5 + 0.5 * level))
    scale = 2 * (rows + z**2)
    centre = (2 * rows * share + z**2) / scale
    half = z * math.sqrt(4 * rows * share * (1 - share) + z**2) / scale
    return 0.0 if hits == 0 else centre - half, 1.0 if hits == rows else centre + half


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
