"""Models that are no networks, to know what a network is worth: lines, forests, boosted trees, Gaussian processes."""

from typing import Any, Protocol

import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal
from credo.evaluation.baselines.classes import classifier, counter
from credo.evaluation.baselines.regression import Boosting, Forest, Linear, ProcessBaseline

__all__ = ["BASELINES", "fit_baseline"]

BASELINES = {
    "linear": "a linear model (Bayesian ridge, logistic or Poisson regression)",
    "forest": "a random forest; for numbers with quantiles from its leaves",
    "boosting": "gradient boosting; for numbers ten quantiles",
    "gp": "an exact Gaussian process (numbers, up to 2,000 rows)",
}


class Baseline(Protocol):
    """A model that predicts with a spread."""

    def fit(self, x: np.ndarray, y: np.ndarray, groups: Any = None) -> "Baseline":
        """Learn from inputs [n, d] and targets [n]; cross-validation within cuts no group."""

    def predict(self, x: np.ndarray) -> Predictive:
        """The predictive distribution at inputs [n, d]."""


def fit_baseline(
    name: str, task: str, x: Any, y: Any, *, num_classes: int = 2, seed: int = 0, groups: Any = None
) -> Baseline:
    """Fit a model of scikit-learn whose predictions have a spread.

    Args:
        name: "linear", "forest", "boosting" or "gp".
        task: "regression", "binary", "multiclass" or "count".
        x: inputs [n, d].
        y: targets [n]; class indices for classes.
        num_classes: of classes.
        seed: of what is random.
        groups: the group of each row, where new rows will be of new groups; None where rows stand alone.

    Example:
        >>> import numpy as np
        >>> x = np.linspace(-1, 1, 60)[:, None]
        >>> predictive = fit_baseline("linear", "regression", x, 2 * x[:, 0]).predict(np.array([[0.5]]))
        >>> predictive.mean.round(2).tolist()
        [1.0]
    """
    if name not in BASELINES:
        raise InputError(f"Unknown baseline {name!r}; there are {', '.join(BASELINES)}.")
    x, y = np.asarray(x), np.asarray(y)
    if y.ndim > 1 and y.shape[1] > 1:
        raise Refusal("Baselines predict one target; this table has several.")
    y = y.reshape(len(y))
    if task == "regression":
        model: Any = {"linear": Linear, "forest": Forest, "boosting": Boosting, "gp": ProcessBaseline}[name](seed)
    elif name == "gp":
        raise Refusal("An exact Gaussian process needs normal noise: it is a baseline for numbers alone.")
    elif task == "count":
        model = counter(name, seed)
    else:
        model = classifier(name, num_classes, seed)
    return model.fit(x, y, groups)
