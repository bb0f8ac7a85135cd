"""Selective prediction: the loss of what is kept when rows with the least confidence are left out."""

from typing import Any

import jax
import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.evaluation.metrics import arrays
from credo.evaluation.metrics.arrays import RiskCoverage
from credo.evaluation.metrics.checks import class_probs, numbers
from credo.evaluation.metrics.terms import Terms, checked_weights, score


def _losses(predictive: Predictive, targets: Any, confidence: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The loss and the confidence of every row [n]."""
    if predictive.kind == "classes":
        probs, labels = class_probs(predictive, targets, name)
        losses, default = (probs.argmax(1) != labels).astype(np.float64), lambda: probs.max(1)
    else:
        errors = np.abs(predictive.mean - numbers(predictive, targets, name))
        losses = errors.reshape(len(errors), -1).mean(1)

        def default() -> np.ndarray:
            low, high = predictive.interval(0.9)
            return -(high - low).reshape(len(errors), -1).mean(1)

    values = np.asarray(default() if confidence is None else confidence, np.float64)
    if values.shape != losses.shape or np.isnan(values).any():
        raise InputError(f"Confidence must be {len(losses)} numbers, one for each row.")
    return losses, values


@score
def aurc(predictive: Predictive, targets: Any, *, confidence: Any = None) -> Terms:
    """The area under the risk–coverage curve: the mean loss of what is kept, over all shares kept; lower is better.

    The loss is 1 for a wrong class, or |E[y] − y|. Rows are kept in order of `confidence` [n]: any numbers, such as
    minus the mutual information; None takes the largest probability, or minus the width of the 90 % interval.
    Geifman, Uziel and El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural classifiers.
    """
    return Terms(arrays.aurc, _losses(predictive, targets, confidence, "aurc"))


def risk_coverage(predictive: Predictive, targets: Any, weights: Any = None, *, confidence: Any = None) -> RiskCoverage:
    """The risk–coverage curve as two arrays [n]: share of rows kept, rising, and the mean loss of those; see `aurc`.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0] > 0), "map", steps=100)
        >>> curve = credo.metrics.risk_coverage(credo.predict(jax.random.key(1), fit, x), x[:, 0] > 0)
        >>> curve.coverage.shape, float(curve.coverage[-1])
        ((40,), 1.0)
    """
    losses, values = _losses(predictive, targets, confidence, "risk_coverage")
    with jax.enable_x64(True):
        curve = jax.jit(arrays.risk_coverage)(losses, values, checked_weights(weights, len(losses)))
        return jax.tree.map(np.asarray, curve)
