"""Numbers without a network: a line, a forest, boosted trees and a Gaussian process, each with its spread."""

import itertools
import math
import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from credo.core.predictive import Predictive
from credo.errors import Refusal
from credo.evaluation.baselines.predictive import mixture
from credo.evaluation.baselines.tuning import LENGTHS, best_of, few_threads, leaf_size, parts

FACTORS = np.geomspace(0.2, 3.0, 19)
TAILS = (2.2, 3.0, 5.0, 10.0, math.inf)  # degrees of freedom
MOST_HELD = 20_000  # rows by which factor and tails are chosen
LEVELS = (np.arange(10) + 0.5) / 10
FLOOR = 0.01  # smallest standard deviation, in those of the target
TREES = 200
MOST_GP = 2000  # rows; the time grows with their cube
# Lengths (None is √d) and noise from which the search for a process's own begins: the evidence has several tops. From
# MANY_GP rows on it begins at the first alone, for the time.
STARTS, MANY_GP = ((None, 0.1), (1.0, 0.01), (3.0, 0.001), (0.5, 0.01)), 1000


class Linear:
    """y = w·x + b + ε with normal weights and noise, their scales by the evidence.

    MacKay (1992), Bayesian interpolation.
    """

    def __init__(self, seed: int = 0):
        del seed

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> "Linear":
        from sklearn.linear_model import BayesianRidge

        self.model = BayesianRidge().fit(x, y)
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        mean, std = self.model.predict(x, return_std=True)
        return mixture(mean[None], std[None])


class _Spread(ABC):
    """A model whose mixture is narrower or wider than it should be, or too sure of its tails: all deviations from the
    mean get one factor, and all components Student's t with one ν. Both and the length of training are those with the
    best cross-validated log-likelihood."""

    lengths: tuple[int, ...] = (1,)  # of training, rising
    factor, tails = 1.0, math.inf
    least = 1e-3

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> Any:
        self.least = FLOOR * float(y.std()) or 1e-3
        shapes = list(itertools.product(FACTORS, TAILS))
        totals = np.zeros((len(self.lengths), len(shapes)))
        for rest, held in parts(len(y), self.seed, groups):
            self.train(x[rest], y[rest], self.lengths[-1])
            some = held[:MOST_HELD]
            for i, component in enumerate(self.components(x[some])):
                totals[i] += [_score(*self.scaled(*component, factor), y[some], tails) for factor, tails in shapes]
        best = best_of(totals)
        self.factor, self.tails = (1.0, math.inf) if best is None else shapes[best[1]]
        self.train(x, y, self.lengths[-1 if best is None else best[0]])
        return self

    def scaled(self, means: np.ndarray, stds: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
        centre = means.mean(0)
        return centre + factor * (means - centre), np.maximum(factor * stds, self.least)

    def predict(self, x: np.ndarray) -> Predictive:
        *_, last = self.components(x)
        return mixture(*self.scaled(*last, self.factor), self.tails)

    @abstractmethod
    def train(self, x: np.ndarray, y: np.ndarray, length: int) -> None:
        """Learn from scratch."""

    @abstractmethod
    def components(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and standard deviations [K, n] after each of `lengths` up to that of the training."""


def _score(means: np.ndarray, scales: np.ndarray, truth: np.ndarray, tails: float) -> float:
    """Mean log density of mixtures of equal parts."""
    square = ((truth - means) / scales) ** 2
    if tails == math.inf:
        logs = -0.5 * square - 0.5 * math.log(2 * math.pi)
    else:
        norm = gammaln((tails + 1) / 2) - gammaln(tails / 2) - 0.5 * math.log(tails * math.pi)
        logs = norm - 0.5 * (tails + 1) * np.log1p(square / tails)
    return float(logsumexp(logs - np.log(scales), axis=0).mean() - math.log(len(means)))


class Forest(_Spread):
    """A random forest whose trees each give the normal of the rows in a leaf. After Meinshausen (2006), Quantile
    regression forests: quantiles are those of the targets that share a leaf, here smoothed leaf by leaf."""

    def train(self, x: np.ndarray, y: np.ndarray, length: int) -> None:
        from sklearn.ensemble import RandomForestRegressor

        small = len(y) < 20_000
        self.model = RandomForestRegressor(
            TREES if small else 50, min_samples_leaf=3 if small else 10, max_features=max(1 / 3, 1 / x.shape[1]),
            random_state=self.seed, max_samples=None if small else 20_000,
        ).fit(x, y)  # fmt: skip
        # The spread within a leaf of few rows is noise itself: it is pulled towards that within all leaves.
        self.pooled = float(np.mean([(t.tree_.impurity * t.tree_.n_node_samples)[t.tree_.children_left < 0].sum()
                                     / t.tree_.n_node_samples[0] for t in self.model.estimators_]))  # fmt: skip

    def components(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        x = x.astype(np.float32)
        means, variances = [], []
        for tree in (t.tree_ for t in self.model.estimators_):
            leaf = tree.apply(x)
            count = tree.n_node_samples[leaf]
            means.append(tree.value[leaf, 0, 0])
            variances.append((count * tree.impurity[leaf] + 5 * self.pooled) / (count + 5))
        return [(np.array(means), np.sqrt(variances))]


class Boosting(_Spread):
    """Boosted trees for ten quantiles; each is the centre of a normal as wide as the gap to its neighbours.

    Friedman (2001), Greedy function approximation, with the loss of Koenker and Bassett (1978), Regression quantiles.
    """

    lengths = LENGTHS

    def train(self, x: np.ndarray, y: np.ndarray, length: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        with few_threads(len(y)):
            self.models = [
                HistGradientBoostingRegressor(
                    loss="quantile", quantile=level, max_iter=length, random_state=self.seed,
                    min_samples_leaf=leaf_size(len(y)), early_stopping=False,
                ).fit(x, y)
                for level in LEVELS
            ]  # fmt: skip

    def components(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        with few_threads(len(x)):
            staged = [self._at_lengths(model, x) for model in self.models]
        return [_around(np.sort(centres, axis=0)) for centres in zip(*staged)]

    def _at_lengths(self, model: Any, x: np.ndarray) -> list[np.ndarray]:
        return [values for i, values in enumerate(model.staged_predict(x), 1) if i in self.lengths]


def _around(centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    gaps = np.gradient(centres, axis=0)
    return centres, np.maximum(gaps, 0.1 * gaps.mean(0))


class ProcessBaseline:
    """A Gaussian process with a Matérn-5/2 kernel, one length for each input, and noise, all by the evidence, of which
    the best top of four starts is taken.

    Rasmussen and Williams (2006), Gaussian processes for machine learning, chapter 5.
    """

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> "ProcessBaseline":
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels

        if len(y) > MOST_GP:
            raise Refusal(f"An exact Gaussian process on {len(y):,} rows takes too long; it is run up to {MOST_GP:,}.")
        self.shift, self.scale = float(y.mean()), float(y.std()) or 1.0
        number = x.shape[1] if x.shape[1] <= 30 else 1
        models = []
        with warnings.catch_warnings():
            # An input that does not matter has a length at its bound, which is what it should have.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for length, noise in STARTS if len(y) < MANY_GP else STARTS[:1]:
                lengths = np.full(number, x.shape[1] ** 0.5 if length is None else length)
                kernel = kernels.ConstantKernel(1.0, (1e-2, 1e3)) * kernels.Matern(lengths, (1e-2, 1e4), nu=2.5)
                kernel += kernels.WhiteKernel(noise, (1e-6, 10.0))
                model = GaussianProcessRegressor(kernel, random_state=self.seed)
                try:
                    models.append(model.fit(x.astype(np.float64), (y - self.shift) / self.scale))
                except np.linalg.LinAlgError:  # at the end of this search; others may end elsewhere
                    continue
        if not models:
            raise Refusal("The covariance of a Gaussian process on these rows has no Cholesky factor in float64.")
        self.model = max(models, key=lambda model: model.log_marginal_likelihood_value_)
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        mean, std = self.model.predict(x.astype(np.float64), return_std=True)
        return mixture((self.shift + self.scale * mean)[None], (self.scale * std)[None])
