"""Are ranks uniform? The empirical distribution function against an envelope that holds everywhere at once.

Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity and its applications in goodness-of-fit
evaluation and multiple sample comparison.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

TRIALS = 20_000  # simulated sets of ranks behind each p-value


class Uniformity(NamedTuple):
    """A test of S ranks 0 … L, each equally likely under the hypothesis.

    p_value: probability of an ECDF that leaves the envelope at least as clearly; never below 1/(TRIALS + 1).
    lower, upper: the envelope of the ECDF at ranks 0 … L, for the false-alarm rate that was asked for.
    ecdf: share of ranks up to each.
    """

    p_value: float
    lower: np.ndarray
    upper: np.ndarray
    ecdf: np.ndarray


def uniformity(ranks: np.ndarray, most: int, false_alarms: float = 0.01) -> Uniformity:
    """Test that ranks are uniform on 0 … `most`.

    At every rank j the number of ranks up to j is Binomial(S, (j + 1)/(L + 1)). The statistic is the smallest of the
    two-sided tail probabilities over all j; its distribution comes from simulated uniform ranks.
    """
    ranks = np.asarray(ranks).astype(int).ravel()
    counts = np.bincount(ranks, minlength=most + 1).cumsum()
    simulated = _statistics(len(ranks), most)
    table = _tails(len(ranks), most)
    statistic = table[counts, np.arange(most + 1)].min()
    p_value = (1 + np.count_nonzero(simulated <= statistic)) / (1 + TRIALS)
    level = np.quantile(simulated, false_alarms)
    chance = (np.arange(most + 1) + 1) / (most + 1)
    lower, upper = stats.binom.ppf([[level / 2], [1 - level / 2]], len(ranks), chance) / len(ranks)
    return Uniformity(p_value, lower, upper, counts / len(ranks))


@lru_cache(maxsize=4)
def _tails(size: int, most: int) -> np.ndarray:
    """Two-sided tail probability of every count at every rank [S + 1, L + 1]."""
    count = np.arange(size + 1)[:, None]
    chance = (np.arange(most + 1) + 1) / (most + 1)
    below, above = stats.binom.cdf(count, size, chance), stats.binom.sf(count - 1, size, chance)
    return np.minimum(1.0, 2 * np.minimum(below, above))


@lru_cache(maxsize=4)
def _statistics(size: int, most: int) -> np.ndarray:
    """The statistic of simulated uniform ranks [TRIALS]; a fixed seed, since it stands for a table."""
    rng = np.random.default_rng(0)
    table, ranks = _tails(size, most), np.arange(most + 1)
    parts = []
    for _ in range(20):
        counts = rng.multinomial(size, np.full(most + 1, 1 / (most + 1)), TRIALS // 20).cumsum(1)
        parts.append(table[counts, ranks].min(1))
    return np.concatenate(parts)
