"""Classes and counts without a network: generalised linear models, forests and boosted trees."""

from typing import Any

import numpy as np

from credo.baselines.predictive import class_probabilities, counts
from credo.baselines.regression import few_threads
from credo.core.predictive import Predictive
from credo.errors import Refusal

MOST_DISPERSION = 1e4  # above it a negative binomial is a Poisson


class Classes:
    """A classifier of scikit-learn by its class probabilities."""

    def __init__(self, model: Any, num_classes: int):
        self.model, self.num_classes = model, num_classes

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Classes":
        if len(np.unique(y)) < 2:
            raise Refusal("All training rows are of one class: there is nothing to tell apart.")
        with few_threads(len(y)):
            self.model.fit(x, y)
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        probs = np.zeros((len(x), self.num_classes))
        probs[:, self.model.classes_] = self.model.predict_proba(x)
        return class_probabilities(probs)


class Counts:
    """A regressor of scikit-learn for the mean μ of counts, with the dispersion of a negative binomial by moments:
    1/r is the mean of ((y − μ)² − μ)/μ² over the training rows, or 0 where that is negative."""

    def __init__(self, model: Any):
        self.model = model

    def fit(self, x: np.ndarray, y: np.ndarray) -> "Counts":
        with few_threads(len(y)):
            self.model.fit(x, y)
        mean = np.maximum(self.model.predict(x), 1e-6)
        inverse = float(np.mean(((y - mean) ** 2 - mean) / mean**2))
        self.dispersion = float(np.clip(1 / inverse, 1e-2, MOST_DISPERSION)) if inverse > 0 else MOST_DISPERSION
        return self

    def predict(self, x: np.ndarray) -> Predictive:
        return counts(self.model.predict(x), self.dispersion)


def classifier(kind: str, num_classes: int, seed: int) -> Classes:
    """ "linear", "forest" or "boosting" for classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    model: Any = {
        "linear": lambda: LogisticRegression(max_iter=2000),
        "forest": lambda: RandomForestClassifier(200, min_samples_leaf=3, random_state=seed),
        "boosting": lambda: HistGradientBoostingClassifier(random_state=seed),
    }[kind]()
    return Classes(model, num_classes)


def counter(kind: str, seed: int) -> Counts:
    """ "linear", "forest" or "boosting" for counts."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import PoissonRegressor

    model: Any = {
        "linear": lambda: PoissonRegressor(alpha=1e-3, max_iter=2000),
        "forest": lambda: RandomForestRegressor(200, criterion="poisson", min_samples_leaf=5, random_state=seed),
        "boosting": lambda: HistGradientBoostingRegressor(loss="poisson", random_state=seed),
    }[kind]()
    return Counts(model)
