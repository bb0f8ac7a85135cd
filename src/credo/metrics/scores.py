"""Scores of a predictive distribution against what came true. Rows may have weights; all scores are means over rows.

Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

from typing import Any

import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal

BINS = 15


def _mean(values: np.ndarray, weights: Any = None) -> float:
    """The weighted mean over rows of the plain mean over whatever else a row has."""
    rows = np.asarray(values, np.float64).reshape(len(values), -1).mean(1)
    if weights is None:
        return float(rows.mean())
    weights = np.asarray(weights, np.float64)
    if weights.shape != rows.shape or not (weights >= 0).all() or not weights.sum() > 0:
        raise InputError(f"Weights must be {len(rows)} numbers of at least 0, not all 0.")
    return float(np.average(rows, weights=weights))


def _classes(predictive: Predictive, name: str) -> np.ndarray:
    if predictive.kind != "classes":
        raise Refusal(f"{name} is a score of class probabilities; these predictions are {predictive.kind}.")
    return np.asarray(predictive.probs, np.float64)


def _labels(targets: Any, probs: np.ndarray) -> np.ndarray:
    labels = np.asarray(targets).reshape(-1)
    if labels.shape != (len(probs),) or not ((labels >= 0) & (labels < probs.shape[1])).all():
        raise InputError(
            f"Expected {len(probs)} class indices from 0 to {probs.shape[1] - 1}, one for each prediction."
        )
    return labels.astype(np.int64)


def _errors(predictive: Predictive, targets: Any, name: str) -> np.ndarray:
    if predictive.kind == "classes":
        raise Refusal(f"{name} is a score of numbers; these predictions are classes.")
    mean, values = predictive.mean, np.asarray(targets, np.float64)
    if mean.shape != values.shape:
        raise InputError(f"Expected targets of shape {list(mean.shape)}, got {list(values.shape)}.")
    return mean - values


def test_log_likelihood(predictive: Predictive, targets: Any, weights: Any = None) -> float:  # noqa: PT028
    """Mean of log p(y_n | x_n, D), the log density of the whole mixture, in nats."""
    return _mean(predictive.log_prob(targets), weights)


test_log_likelihood.__test__ = False  # type: ignore[attr-defined]  # pytest must not take it for a test


def rmse(predictive: Predictive, targets: Any, weights: Any = None) -> float:
    """√ mean (E[y] − y)², over rows and outputs."""
    return _mean(_errors(predictive, targets, "rmse") ** 2, weights) ** 0.5


def mae(predictive: Predictive, targets: Any, weights: Any = None) -> float:
    """Mean |m − y| with m the predictive mean, over rows and outputs."""
    return _mean(np.abs(_errors(predictive, targets, "mae")), weights)


def coverage(predictive: Predictive, targets: Any, level: float = 0.9, weights: Any = None) -> float:
    """The share of targets inside the central interval of probability `level`; well calibrated is `level` itself.

    For counts the interval's ends belong to it, so its probability, and the coverage to expect, is above `level`.
    """
    low, high = predictive.interval(level)
    values = np.asarray(targets, np.float64)
    return _mean((low <= values) & (values <= high), weights)


def interval_width(predictive: Predictive, level: float = 0.9, weights: Any = None) -> float:
    """Mean width of the central interval of probability `level`: at equal coverage, narrower is better."""
    low, high = predictive.interval(level)
    return _mean(high - low, weights)


def accuracy(predictive: Predictive, targets: Any, weights: Any = None) -> float:
    """The share of rows whose most probable class is the right one."""
    probs = _classes(predictive, "accuracy")
    return _mean(probs.argmax(1) == _labels(targets, probs), weights)


def brier(predictive: Predictive, targets: Any, weights: Any = None) -> float:
    """Mean Σ_c (p_c − 1[y = c])², between 0 and 2 (for two classes twice the one-class form)."""
    probs = _classes(predictive, "brier")
    return _mean(((probs - np.eye(probs.shape[1])[_labels(targets, probs)]) ** 2).sum(1), weights)


def ece(predictive: Predictive, targets: Any, weights: Any = None, bins: int = BINS) -> float:
    """Expected calibration error: Σ_b n_b/n |accuracy_b − confidence_b| over equal-width bins of confidence.

    Bin b is [b/B, (b + 1)/B); p = 1 belongs to the last. Naeini, Cooper and Hauskrecht (2015); Guo et al. (2017).
    """
    probs = _classes(predictive, "ece")
    confidence = np.minimum(probs.max(1), 1.0)  # float32 sums may end a hair above 1
    right = probs.argmax(1) == _labels(targets, probs)
    mass = np.ones(len(probs)) if weights is None else np.asarray(weights, np.float64)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(place, mass * (right - confidence), minlength=bins)
    return float(np.abs(gaps).sum() / mass.sum())


def summarise(predictive: Predictive, targets: Any, weights: Any = None) -> dict[str, float]:
    """The scores that every run reports: of numbers, or of classes.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.metrics import summarise
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([5]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=100)
        >>> list(summarise(credo.predict(jax.random.key(1), fit, x), x[:, 0]))
        ['log_likelihood', 'rmse', 'coverage_90']
    """
    scores = {"log_likelihood": test_log_likelihood(predictive, targets, weights)}
    if predictive.kind == "classes":
        return scores | {
            "accuracy": accuracy(predictive, targets, weights),
            "brier": brier(predictive, targets, weights),
            "ece": ece(predictive, targets, weights),
        }
    return scores | {
        "rmse": rmse(predictive, targets, weights),
        "coverage_90": coverage(predictive, targets, 0.9, weights),
    }
