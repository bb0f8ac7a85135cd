"""`auto` as ScoringBench wants a model: `fit`, `predict`, and `predict_distribution` with probabilities on bins.

Landsgesell and Knoll (2026), ScoringBench: a benchmark of regression by proper scoring rules. There:

    MODELS["credo"] = lambda: CredoWrapper(container=DistributionPrediction.from_histogram)
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

import credo
from benchmarks.portfolio.rivals import credo_options

TARGET = "the target"
TAIL = 5e-4  # the probability beyond the outermost edges, which the outermost bins get, too


class Bins(NamedTuple):
    """For each row bins [n, B + 1] and the probability of each [n, B], and the predictive mean [n]."""

    bin_edges: np.ndarray
    probas: np.ndarray
    mean: np.ndarray
    train_range: tuple[float, float]


def bins(bin_edges: np.ndarray, probas: np.ndarray, mean: np.ndarray, *, train_range: tuple[float, float]) -> Bins:
    """The container where ScoringBench is not there."""
    return Bins(bin_edges, probas, mean, train_range)


class CredoWrapper(RegressorMixin, BaseEstimator):
    """A regressor whose predictive distribution is read at quantiles: between two of them lies a bin.

    Args:
        num_bins: bins of each row; about as probable as each other.
        container: called with edges, probabilities, the mean and `train_range=`; of ScoringBench
            `DistributionPrediction.from_histogram`.
        options: of `credo.tables.fit`, beside those of the portfolio.
        seed: of the fit.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 60)[:, None]
        >>> model = CredoWrapper(num_bins=20, options={"method": "map", "steps": 50}).fit(x, 3 * x[:, 0])
        >>> distribution = model.predict_distribution(x[:5])
        >>> distribution.bin_edges.shape, distribution.probas.sum(1).round(6).tolist()
        ((5, 21), [1.0, 1.0, 1.0, 1.0, 1.0])
    """

    def __init__(
        self,
        num_bins: int = 200,
        container: Callable[..., Any] = bins,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ):
        self.num_bins = num_bins
        self.container = container
        self.options = options
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        frame, y = _frame(X), np.asarray(y, np.float64).reshape(-1)
        options = credo_options("auto") | dict(self.options or {})
        self.run_ = credo.tables.fit(
            frame.assign(**{TARGET: y}), target=TARGET, task="regression", seed=self.seed, progress=False, **options
        )
        self.train_range_ = float(y.min()), float(y.max())
        self.n_features_in_ = frame.shape[1]
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self._predictive(X).mean, np.float64)

    def predict_distribution(self, X: Any) -> Any:
        """Edges at quantiles of each row, from 0.0005 to 0.9995, and the probabilities between them."""
        predictive = self._predictive(X)
        levels = np.linspace(TAIL, 1 - TAIL, self.num_bins + 1)
        edges = np.maximum.accumulate(np.stack([predictive.quantile(float(level)) for level in levels], 1), 1)
        probas = np.diff(np.concatenate([[0.0], levels[1:-1], [1.0]]))
        mean = np.asarray(predictive.mean, np.float64)
        return self.container(
            edges.astype(np.float64), np.tile(probas, (len(mean), 1)), mean, train_range=self.train_range_
        )

    def _predictive(self, X: Any) -> Any:
        check_is_fitted(self, "run_")
        return self.run_.predictive(_frame(X))


def _frame(X: Any) -> pd.DataFrame:
    frame = X.copy() if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    return frame.rename(columns=lambda name: f"x{name}" if isinstance(name, int) else str(name))
