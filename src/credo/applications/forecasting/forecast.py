"""What an autoregression says about the values to come: simulated paths, and the scores of one step ahead."""

import dataclasses

import numpy as np

from credo.core.checks import share
from credo.core.predictive import Predictive
from credo.core.short import fields_in_short
from credo.errors import InputError


@dataclasses.dataclass(frozen=True)
class Forecast:
    """Paths of a series, drawn from p(y_{T+1}, …, y_{T+H} | y_1, …, y_T), on the scale of the series.

    Every path has its own draw of weights and noise, so its spread has aleatoric and epistemic uncertainty. Where
    some draws describe an explosive series, far horizons have no useful mean; quantiles are still right.

    Args:
        paths: simulated values [num_paths, horizon].

    Example:
        >>> import numpy as np
        >>> from credo.applications import Forecast
        >>> Forecast(np.array([[1.0, 2.0], [3.0, 6.0]])).mean.tolist()
        [2.0, 4.0]
    """

    paths: np.ndarray

    __repr__ = fields_in_short

    @property
    def horizon(self) -> int:
        """Steps ahead."""
        return self.paths.shape[1]

    @property
    def mean(self) -> np.ndarray:
        """E[y_{T+h}] for each h [horizon]."""
        return self.paths.mean(0)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y_{T+h} for each h [horizon]."""
        return self.paths.std(0)

    def quantile(self, q: float) -> np.ndarray:
        """The value that y_{T+h} stays below with probability q, for each h [horizon].

        Args:
            q: a probability.
        """
        if not 0 < q < 1:
            raise InputError(f"A quantile level lies between 0 and 1, got {q}.")
        return np.quantile(self.paths, q, axis=0)

    def interval(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central interval with this probability, for each h by itself.

        Args:
            level: its probability.
        """
        share(level, "The level of an interval")
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)


@dataclasses.dataclass(frozen=True)
class OneStep:
    """p(y_t | all values before t) at observed values y_t, one after another, on the scale of the series.

    Args:
        predictive: the predictive distributions, one for each value.
        values: what was observed.
    """

    predictive: Predictive
    values: np.ndarray

    __repr__ = fields_in_short

    @property
    def mean(self) -> np.ndarray:
        """E[y_t | past]."""
        return self.predictive.mean

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of y_t given its past."""
        return self.predictive.std

    @property
    def log_likelihood(self) -> np.ndarray:
        """log p(y_t | past) of every value; their mean is the score."""
        return self.predictive.log_prob(self.values)

    @property
    def rmse(self) -> float:
        """√ mean (y_t − E[y_t | past])²."""
        return float(np.sqrt(np.mean((self.values - self.mean) ** 2)))

    def __str__(self) -> str:
        return (
            f"{len(self.values)} values, each given those before it: mean log likelihood "
            f"{self.log_likelihood.mean():.4g}, RMSE {self.rmse:.4g}"
        )
