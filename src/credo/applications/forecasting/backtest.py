"""Forecasts from many origins of a series beside the values that came: coverage and errors by the steps ahead."""

import dataclasses
from typing import Any

import numpy as np

from credo.core.checks import share
from credo.core.short import fields_in_short


@dataclasses.dataclass(frozen=True)
class Backtest:
    """Paths from several origins beside the values that followed, on the scale of the series.

    Origins overlap, so neighbouring ones err together: a coverage is less certain than that of as many independent
    trials.

    Attributes:
        paths: simulated values [origins, paths, horizon].
        values: what came [origins, horizon].

    Example:
        >>> import numpy as np
        >>> from credo.applications import Backtest
        >>> paths = np.random.default_rng(0).normal(size=(50, 400, 3))
        >>> Backtest(paths, np.zeros((50, 3))).coverage(0.9).tolist()
        [1.0, 1.0, 1.0]
    """

    paths: np.ndarray
    values: np.ndarray

    __repr__ = fields_in_short

    @property
    def horizon(self) -> int:
        """Steps ahead."""
        return self.paths.shape[2]

    @property
    def mean(self) -> np.ndarray:
        """E[y_{T+h}] [origins, horizon]."""
        return self.paths.mean(1)

    def coverage(self, level: float = 0.9) -> np.ndarray:
        """Share of origins whose value lay in the central interval of this probability, for each step [horizon]."""
        share(level, "The level of an interval")
        low, high = np.quantile(self.paths, (0.5 - level / 2, 0.5 + level / 2), axis=1)
        return ((low <= self.values) & (self.values <= high)).mean(0)

    @property
    def rmse(self) -> np.ndarray:
        """√ mean (y − E[y])² for each step [horizon]."""
        return np.sqrt(((self.values - self.mean) ** 2).mean(0))

    @property
    def crps(self) -> np.ndarray:
        """Mean of E|Y − y| − ½ E|Y − Y'| for each step [horizon]: a distance that is small for sharp, honest forecasts.

        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
        """
        ordered = np.sort(self.paths, axis=1)
        count = ordered.shape[1]
        # Σ_{i,j} |y_i − y_j| of sorted values is 2 Σ_i (2i − n + 1) y_i; of different paths, n (n − 1) pairs.
        weight = (2 * np.arange(count) - count + 1)[None, :, None]
        spread = 2 * (weight * ordered).sum(1) / max(count * (count - 1), 1)
        error = np.abs(self.paths - self.values[:, None]).mean(1)
        return (error - 0.5 * spread).mean(0)

    def __str__(self) -> str:
        lines = [f"{len(self.values)} origins", f"{'ahead':>6}{'RMSE':>12}{'CRPS':>12}{'in 50 %':>9}{'in 90 %':>9}"]
        for h, row in enumerate(zip(self.rmse, self.crps, self.coverage(0.5), self.coverage(0.9))):
            lines.append(f"{h + 1:>6}{row[0]:>12.4g}{row[1]:>12.4g}{100 * row[2]:>8.0f}%{100 * row[3]:>8.0f}%")
        return "\n".join(lines)

    def plot(self) -> Any:
        """A figure: coverage of several levels and errors, by the steps ahead (`credo.report.backtest`)."""
        from credo.report.backtest import plot

        return plot(self)
