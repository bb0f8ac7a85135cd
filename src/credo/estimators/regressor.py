"""Regression as a scikit-learn estimator."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from credo.core.likelihood import Likelihood
from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.estimators.base import BayesianEstimator
from credo.estimators.build import make_likelihood
from credo.estimators.frames import target_names
from credo.estimators.rows import Standard, merge_repeats
from credo.likelihoods.base import ScaleNoise
from credo.likelihoods.positive import PositiveOutput
from credo.tables.encode.targets import RegressionTarget
from credo.tables.model import check_positive


class BayesianRegressor(RegressorMixin, BayesianEstimator):
    """A Bayesian neural network for numbers: means with honest error bars.

    Args:
        method: an inference method or its name (`credo methods` lists them); "auto" chooses one by
            the numbers of rows and columns, and takes up to a minute or two.
        network: "mlp:50,50", "mlp:50:tanh", a list of hidden widths or a credo network; None is the method's, often
            "mlp:50".
        prior: a prior over weights, or words such as "normal:0.5"; None is the method's, often "fan_in_normal:2".
        likelihood: a likelihood or its name; None is the method's, often `gaussian` with learned noise. A
            known noise is in the units of y; priors and floors of the noise are in units of standardised y.
        steps: steps of the method's last phase (draws, for samplers); None takes the method's default.
        batch_size: rows of a minibatch; None takes all rows up to 512 and 128 beyond.
        budget: time instead of steps ("60s", "5m"), compilation aside.
        effort: of "auto": "quick", "normal" or "best", as in `credo.tables.fit`.
        num_samples: draws of the weights behind every prediction.
        random_state: an integer makes fits and predictions repeatable.
        settings: hyper-parameters of the method, by name.
        standardise: shift and scale the columns of X and y to mean 0 and standard deviation 1. The encoder of a table
            always does so with X.
        verbose: show progress on stderr.

    Attributes:
        fit_: the `credo.Fit`, with its posterior, trace and status.
        why_: under "auto", the choice in a sentence.
        encoder_: of a DataFrame with categories, dates or missing cells: the `TableEncoder` that turns its rows into
            inputs, as `credo fit` does; None of arrays, and of DataFrames that are one.
        n_features_in_, feature_names_in_: the columns of X.

    Example:
        >>> import numpy as np
        >>> from credo.estimators import BayesianRegressor
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = BayesianRegressor("map", "mlp:20", steps=300, random_state=0).fit(x, 2 * x[:, 0])
        >>> mean, std = model.predict(x, return_std=True)
        >>> mean.shape, std.shape
        ((40,), (40,))
    """

    _kind = "regressor"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X [n, features], an array or a table, and targets y [n] or [n, outputs].

        A sample_weight of 2 counts as two equal rows, of 0 as none.
        """
        original = y
        X, y, weight = self._checked(X, y, sample_weight, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, np.float64)
        names = target_names(original, 1 if y.ndim == 1 else y.shape[1])
        lowest = tuple(map(float, y.reshape(len(y), -1).min(0)))
        target = RegressionTarget(names, (0.0,) * len(names), (1.0,) * len(names), lowest=lowest)
        X, y, weight = merge_repeats(self._encoded(X, weight, target), y, weight)
        columns = y.reshape(len(y), -1)
        likelihood = make_likelihood(self.likelihood, self._kind, method=self.method)
        check_positive(likelihood, target)
        real = likelihood.kind == "real"
        scaled = self.standardise and real
        self.target_scale_ = Standard.learn(columns, weight) if scaled else Standard.identity(columns.shape[1])
        targets = self.target_scale_.apply(columns).reshape(y.shape)
        return self._infer("regression", X, targets, weight, columns.shape[1])

    def _likelihood(self, likelihood: Any, method: Any) -> Likelihood:
        return _in_units(make_likelihood(likelihood, self._kind, method=method), self.target_scale_)

    def _predict(self, inputs: np.ndarray) -> Predictive:
        predictive = super()._predict(inputs)
        return predictive.rescaled(*self.target_scale_) if predictive.kind == "real" else predictive

    def _on_scale(self, targets: np.ndarray) -> np.ndarray:
        columns = targets.reshape(len(targets), -1).astype(np.float64)
        return self.target_scale_.shift + self.target_scale_.scale * columns

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y at X, with its standard deviation (noise included) where asked."""
        predictive = self.predictive(X)
        mean = np.asarray(predictive.mean, np.float64)
        return (mean, predictive.std) if return_std else mean

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central interval that holds y with this probability."""
        return self.predictive(X).interval(coverage)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of y, one for each level along the last axis [n, levels] ([n, outputs, levels])."""
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
        if levels.ndim != 1 or not levels.size:
            raise InputError(f"quantiles must be a list of levels between 0 and 1, got {quantiles!r}.")
        predictive = self.predictive(X)
        return np.stack([predictive.quantile(float(level)) for level in levels], axis=-1)

    def uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Variances of y: "total" = "aleatoric" (noise) + "epistemic" (what more data would tell)."""
        predictive = self.predictive(X)
        return {
            "total": predictive.variance,
            "aleatoric": predictive.aleatoric,
            "epistemic": predictive.epistemic,
        }

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of y at X, the draw along the last axis [n, draws] ([n, outputs, draws])."""
        return self._sample(X, n_samples, random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _in_units(likelihood: Any, scale: Standard) -> Any:
    """The likelihood of standardised targets: a known noise is a fact in the units of y, and so is where 0 lies."""
    if isinstance(likelihood, PositiveOutput) and (np.asarray(scale.shift) > 0).all():
        return likelihood.standardised(*(np.squeeze(x) for x in scale))
    if not isinstance(likelihood, ScaleNoise) or likelihood.noise != "known":
        return likelihood
    return dataclasses.replace(likelihood, scale=np.float32(likelihood.scale / scale.scale))
