"""Classes and counts without a network: generalised linear models, forests and boosted trees."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
from scipy.stats import nbinom

from credo.core.predictive import Predictive
from credo.errors import Refusal
from credo.evaluation.baselines.predictive import LEAST, class_probabilities, counts
from credo.evaluation.baselines.tuning import LENGTHS, best_of, few_threads, leaf_size, parts

POWERS = np.geomspace(0.3, 3.0, 13)
DISPERSIONS = np.geomspace(0.1, 1e4, 21)  # at the last a negative binomial is a Poisson


class ClassBaseline:
    """Probabilities p_c^τ / Σ p^τ from those of a classifier of scikit-learn. The power τ and the rounds of boosting
    are those with the best cross-validated log-likelihood: trees are too sure, or, where they vote, not sure enough.

    Args:
        make: the classifier with so many rounds, for so many rows.
        num_classes: also those that no training row has.
        seed: of the folds.
        lengths: rounds to choose from, rising.
        powers: to choose from.
    """

    def __init__(
        self,
        make: Callable[[int, int], Any],
        num_classes: int,
        seed: int,
        lengths: tuple[int, ...] = (1,),
        powers: np.ndarray = POWERS,
    ):
        self.make, self.num_classes, self.seed, self.lengths, self.powers = make, num_classes, seed, lengths, powers

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> "ClassBaseline":
        y = y.astype(int)
        if len(np.unique(y)) < 2:
            raise Refusal("All training rows are of one class: there is nothing to tell apart.")
        totals = np.zeros((len(self.lengths), len(self.powers)))
        with few_threads(len(y)):
            for rest, held in parts(len(y), self.seed, groups) if totals.size > 1 else ():
                if len(np.unique(y[rest])) < 2:
                    continue
                model = self.make(self.lengths[-1], len(rest)).fit(x[rest], y[rest])
                for i, probs in enumerate(_staged(model, "predict_proba", x[held], self.lengths)):
                    complete = self._all_classes(model, probs)
                    totals[i] += [_score(_sharpen(complete, power), y[held]) for power in self.powers]
            best = best_of(totals)
            self.power = 1.0 if best is None else float(self.powers[best[1]])
            self.model = self.make(self.lengths[-1 if best is None else best[0]], len(y)).fit(x, y)
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        probs = self._all_classes(self.model, self.model.predict_proba(x))
        return class_probabilities(_sharpen(probs, self.power))

    def _all_classes(self, model: Any, probs: np.ndarray) -> np.ndarray:
        complete = np.zeros((len(probs), self.num_classes))
        complete[:, model.classes_] = probs
        return complete


def _sharpen(probs: np.ndarray, power: float) -> np.ndarray:
    raised = np.maximum(probs, LEAST) ** power
    return np.maximum(raised / raised.sum(1, keepdims=True), LEAST)


def _score(probs: np.ndarray, truth: np.ndarray) -> float:
    return float(np.log(probs[np.arange(len(truth)), truth]).mean())


class CountBaseline:
    """A regressor of scikit-learn for the mean μ of counts, with the variance μ + μ²/r of a negative binomial. The
    dispersion r and the rounds of boosting are those with the best cross-validated log-likelihood.

    Args:
        make: the regressor with so many rounds, for so many rows.
        seed: of the folds.
        lengths: rounds to choose from, rising.
    """

    def __init__(self, make: Callable[[int, int], Any], seed: int, lengths: tuple[int, ...] = (1,)):
        self.make, self.seed, self.lengths = make, seed, lengths

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> "CountBaseline":
        if not y.any():
            raise Refusal("All counts are 0: there is no mean to learn.")
        totals = np.zeros((len(self.lengths), len(DISPERSIONS)))
        with few_threads(len(y)):
            for rest, held in parts(len(y), self.seed, groups):
                if not y[rest].any():
                    continue
                model = self.make(self.lengths[-1], len(rest)).fit(x[rest], y[rest])
                for i, means in enumerate(_staged(model, "predict", x[held], self.lengths)):
                    mean = np.maximum(means, 1e-6)
                    totals[i] += [nbinom.logpmf(y[held], r, r / (r + mean)).mean() for r in DISPERSIONS]
            best = best_of(totals)
            self.dispersion = float(DISPERSIONS[-1 if best is None else best[1]])
            self.model = self.make(self.lengths[-1 if best is None else best[0]], len(y)).fit(x, y)
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        return counts(self.model.predict(x), self.dispersion)


def _staged(model: Any, what: str, x: np.ndarray, lengths: tuple[int, ...]) -> list[np.ndarray]:
    """Predictions after each of the lengths."""
    if len(lengths) == 1:
        return [methodcaller(what, x)(model)]
    return [predictions for i, predictions in enumerate(methodcaller(f"staged_{what}", x)(model), 1) if i in lengths]


def classifier(kind: str, num_classes: int, seed: int) -> ClassBaseline:
    """ "linear", "forest" or "boosting" for classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    if kind == "linear":
        return ClassBaseline(lambda _, rows: LogisticRegression(max_iter=2000), num_classes, seed, powers=np.ones(1))
    if kind == "forest":
        return ClassBaseline(
            lambda _, rows: RandomForestClassifier(200, min_samples_leaf=3, random_state=seed), num_classes, seed
        )
    return ClassBaseline(
        lambda length, rows: HistGradientBoostingClassifier(
            max_iter=length, min_samples_leaf=leaf_size(rows), early_stopping=False, random_state=seed
        ),
        num_classes, seed, LENGTHS,
    )  # fmt: skip


def counter(kind: str, seed: int) -> CountBaseline:
    """ "linear", "forest" or "boosting" for counts."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import PoissonRegressor

    if kind == "linear":
        return CountBaseline(lambda _, rows: PoissonRegressor(alpha=1e-3, max_iter=2000), seed)
    if kind == "forest":
        return CountBaseline(
            lambda _, rows: RandomForestRegressor(200, criterion="poisson", min_samples_leaf=5, random_state=seed), seed
        )
    return CountBaseline(
        lambda length, rows: HistGradientBoostingRegressor(
            loss="poisson", max_iter=length, min_samples_leaf=leaf_size(rows), early_stopping=False, random_state=seed
        ),
        seed, LENGTHS,
    )  # fmt: skip
