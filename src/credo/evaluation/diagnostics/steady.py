"""Has each chain settled by itself, and is it long enough to tell? What R-hat between chains does not say."""

from typing import NamedTuple

import numpy as np

from credo.evaluation.diagnostics.chains import LEAST_DRAWS, chain_stats, effective_sizes, normal_scores

LEAST_WORTH = 50  # independent draws of one chain below which its own trend is not told reliably
FALSE_TREND = 0.01  # how often chains without a trend are called moving, over all chains and quantities
STILL = 0.25  # halves of steady chains differ by less than this share of what lies between chains


class Steadiness(NamedTuple):
    """moving: how many chains have a trend, all of them where it shows only in their mean; of: how many chains there
    are. worth: independent draws of the shortest chain. reach: how far halves of a chain differ, as a share of how far
    chains differ."""

    moving: int
    of: int
    worth: float
    reach: float

    @property
    def steady(self) -> bool:
        """No trend, in chains long enough to show one that matters."""
        return not self.moving and self.worth >= LEAST_WORTH and self.reach < STILL


def steadiness(apart: np.ndarray, others: np.ndarray | None = None) -> Steadiness:
    """What chains [chain, draw, quantity] that disagree do by themselves.

    A trend is found by Geweke's z (1992) of the halves of a chain, on ranks, with standard errors that pay for
    autocorrelation,

        z = (m₂ − m₁) / √(s₁²/e₁ + s₂²/e₂),

    s and e the spread and the effective draws of the halves beside their own least-squares lines, against Student's t
    with ½(e₁ + e₂) − 1 degrees of freedom; chains that drift in step are found by the mean of their z. Bonferroni's
    bound over chains and quantities.

    Where no trend is found, halves may still differ by chance alone as much as chains do; then nothing can be said.
    `reach` is √(½ mean (m₂ − m₁)²) over the standard deviation of the means of chains, for the quantity on which they
    disagree most. Of a slow movement with autocorrelation time T ≫ n it is about √(n/3T): below ¼, T is more than
    five times the length of the chains.

    Args:
        apart: the quantities on which chains disagree, by falling R-hat.
        others: further series of the same chains [chain, step, quantity] in which a trend would show.
    """
    chains = apart.shape[0]
    z, freedom = geweke(apart)
    if others is not None and others.shape[1] >= 2 * LEAST_DRAWS:
        z, freedom = (np.concatenate(pair, 1) for pair in zip((z, freedom), geweke(others)))
    together = np.abs(z.sum(0)) / np.sqrt(chains)
    level = FALSE_TREND / ((chains + 1) * z.shape[1])
    alone = int((np.abs(z) > _limit(freedom, level)).any(1).sum())
    moving = alone or chains * bool((together > _limit(freedom.sum(0), level)).any())
    worth = min(float(np.nanmedian(chain_stats(chain[None]).ess_bulk)) for chain in apart)
    return Steadiness(moving, chains, worth, _reach(apart[:, :, 0]))


def geweke(chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Geweke's z of the halves of every chain [chain, draw, quantity], on ranks, and its degrees of freedom.

    Both [chain, quantity]; 0 where a half does not vary or is not finite.
    """
    count, draws, quantities = chains.shape
    half = draws // 2
    series = np.moveaxis(np.asarray(chains, np.float64), 1, 2).reshape(-1, 1, draws)
    finite = np.asarray(np.isfinite(series).all((1, 2)))
    ranks = normal_scores(np.where(finite[:, None, None], series, 0.0))
    halves = np.concatenate([ranks[:, :, :half], ranks[:, :, draws - half :]], 1).reshape(-1, 1, half)
    level = _without_lines(halves)
    sizes, means, variances = (x.reshape(-1, 2) for x in (effective_sizes(level), halves.mean(2), level.var(2, ddof=1)))
    error = np.sqrt((variances / sizes).sum(1))
    usable = finite & (error > 0)
    z = np.where(usable, (means[:, 1] - means[:, 0]) / np.where(usable, error, 1.0), 0.0)
    freedom = np.maximum(0.5 * sizes.sum(1) - 1, 1.0)
    return z.reshape(count, quantities), freedom.reshape(count, quantities)


def _without_lines(series: np.ndarray) -> np.ndarray:
    """What is left of series [series, 1, draw] beside their least-squares lines: a trend must not hide in its error."""
    time = np.arange(series.shape[2]) - 0.5 * (series.shape[2] - 1)
    slope = (series * time).sum(2, keepdims=True) / max(float((time**2).sum()), 1.0)
    return series - series.mean(2, keepdims=True) - slope * time


def _limit(freedom: np.ndarray, level: float) -> np.ndarray:
    from scipy.special import stdtrit

    return np.asarray(-stdtrit(freedom, level / 2))


def _reach(chains: np.ndarray) -> float:
    """How far halves of chains [chain, draw] differ, as a share of how far the means of chains do."""
    half = chains.shape[1] // 2
    change = chains[:, -half:].mean(1) - chains[:, :half].mean(1)
    between = float(chains.mean(1).std(ddof=1)) if len(chains) > 1 else 0.0
    return float(np.sqrt(0.5 * (change**2).mean())) / between if between > 0 else np.inf
