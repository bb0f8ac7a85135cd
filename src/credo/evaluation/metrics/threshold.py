"""Scores of two classes that act: which rows to pick out, and what is gained by it.

The positive class is class 1, the second in order of names. Arguments: the predictive, class indices [n], weights.
"""

from typing import Any

import jax
import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.evaluation.metrics import arrays
from credo.evaluation.metrics.checks import class_probs, positive_class, positive_column
from credo.evaluation.metrics.terms import Terms, checked_weights, score


@score
def threshold(predictive: Predictive, targets: Any) -> Terms:
    """The probability of class 1 from which on rows are picked out: the one with the best expected F1.

    It is a function of the predictions alone, so that recall and precision at it are honest. See
    `credo.evaluation.metrics.arrays.best_threshold`.
    """
    probs, _ = class_probs(predictive, targets, "threshold")
    return Terms(arrays.best_threshold, (positive_column(probs, "threshold"),))


@score
def recall(predictive: Predictive, targets: Any, *, threshold: float | None = None) -> Terms:
    """The share of rows of class 1 whose probability reaches the threshold; None takes the one of best expected F1."""
    return _at(arrays.recall, "recall", predictive, targets, threshold)


@score
def precision(predictive: Predictive, targets: Any, *, threshold: float | None = None) -> Terms:
    """The share of rows of class 1 among those whose probability reaches the threshold; None: best expected F1."""
    return _at(arrays.precision, "precision", predictive, targets, threshold)


@score
def lift(predictive: Predictive, targets: Any, *, share: float = 0.1) -> Terms:
    """How many times more frequent class 1 is among the `share` of rows with its largest probabilities than among all.

    A lift of 3 at a share of 0.1: whoever acts on a tenth of all rows reaches three times as many as by chance.
    """
    if not 0 < share <= 1:
        raise InputError(f"The share of rows must lie above 0 and at most at 1, got {share:g}.")
    return Terms(arrays.lift, positive_class(predictive, targets, "lift"), (("share", float(share)),))


@score
def majority_accuracy(predictive: Predictive, targets: Any) -> Terms:
    """The accuracy of always naming the class that is the most frequent among these rows: what accuracy must beat."""
    probs, labels = class_probs(predictive, targets, "majority_accuracy")
    return Terms(_largest_share, (labels,), (("classes", probs.shape[1]),))


def confusion(predictive: Predictive, targets: Any, weights: Any = None) -> np.ndarray:
    """The weight of rows of each true class (row) that the predictive names each class (column) [C, C].

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.evaluation import metrics
        >>> x = np.repeat([[-1.0], [1.0]], 20, 0)
        >>> model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
        >>> fit = credo.fit(jax.random.key(0), model, (x, (x[:, 0] > 0).astype(int)), "map", steps=300)
        >>> metrics.confusion(credo.predict(jax.random.key(1), fit, x), (x[:, 0] > 0).astype(int)).tolist()
        [[20.0, 0.0], [0.0, 20.0]]
    """
    probs, labels = class_probs(predictive, targets, "confusion")
    counts = np.zeros((probs.shape[1],) * 2)
    np.add.at(counts, (labels, probs.argmax(1)), checked_weights(weights, len(labels)))
    return counts


def _largest_share(labels: jax.Array, weights: jax.Array, classes: int) -> jax.Array:
    return jax.ops.segment_sum(weights, labels, classes).max() / weights.sum()


def _at(function: Any, name: str, predictive: Predictive, targets: Any, threshold: float | None) -> Terms:
    options = (("threshold", None if threshold is None else float(threshold)),)
    return Terms(function, positive_class(predictive, targets, name), options)
