"""How well a score tells suspicious rows from clean ones: ROC, AUROC, rates at a threshold, and their intervals."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.checks import share
from credo.errors import InputError
from credo.evaluation.metrics.bootstrap import Interval, defined_quantiles


class Roc(NamedTuple):
    """False- and true-positive rates, from none flagged to all; row i flags where score > threshold i."""

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray


def roc(clean: Any, positive: Any) -> Roc:
    """The receiver operating characteristic; equal scores pass a threshold together.

    Args:
        clean: scores of clean rows.
        positive: scores of rows that should be flagged.

    Example:
        >>> import credo
        >>> curve = credo.applications.detection.roc([0.1, 0.4], [0.4, 0.9])
        >>> curve.fpr.tolist(), curve.tpr.tolist()
        ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    low, high = checked_scores(clean, "clean"), checked_scores(positive, "positive")
    edges = np.unique(np.concatenate([low, high]))
    thresholds = np.concatenate([edges[::-1], [-np.inf]])
    above = lambda x: 1 - np.searchsorted(np.sort(x), thresholds, side="right") / len(x)  # noqa: E731
    return Roc(above(low), above(high), thresholds)


def threshold(validation: Any, max_fpr: float = 0.05) -> float:
    """The smallest clean score that at most a share `max_fpr` of clean scores lies above; flag where score > it.

    Args:
        validation: scores of clean rows that are used for nothing else: neither the rows on which rates are reported,
            nor anything that was attacked.
        max_fpr: share of clean rows that may be flagged.

    Example:
        >>> import credo
        >>> credo.applications.detection.threshold(range(40))
        37.0
    """
    if not 0 <= max_fpr < 1:
        raise InputError(f"max_fpr is a share of clean rows, at least 0 and below 1; got {max_fpr}.")
    scores = np.sort(checked_scores(validation, "validation"))
    allowed = int(np.floor(max_fpr * len(scores) * (1 + 1e-12)))
    return float(scores[len(scores) - 1 - allowed])


def checked_scores(values: Any, name: str) -> np.ndarray:
    """Scores as numbers, or a sentence."""
    scores = np.asarray(list(values) if isinstance(values, range) else values, np.float64)
    if scores.ndim != 1 or len(scores) == 0 or np.isnan(scores).any():
        raise InputError(f"The {name} scores are one number for each of one or more rows, none of them NaN.")
    return scores


class Columns:
    """Scores by image, ranked once: a resample is then a vector of image weights and a few sums.

    Args:
        clean: scores of clean test rows, one image each.
        positive: scores of positives.
        rows: the clean row that each positive was made from, hence of the same image; None: images of their own.
        at: the threshold.
    """

    def __init__(self, clean: np.ndarray, positive: np.ndarray, rows: np.ndarray | None, at: float):
        self.images = len(clean) if rows is not None else len(clean) + len(positive)
        self.owners = rows if rows is not None else len(clean) + np.arange(len(positive))
        self.order = np.argsort(clean, kind="stable")
        ordered = clean[self.order]
        self.left, self.right = (np.searchsorted(ordered, positive, side=side) for side in ("left", "right"))
        self.caught, self.false = (positive > at).astype(float), (ordered > at).astype(float)

    def rates(self, weights: np.ndarray) -> np.ndarray:
        """AUROC, TPR and FPR under weights of images; NaN for a group without rows."""
        positive, clean = weights[self.owners], weights[self.order]
        below = np.concatenate([[0.0], np.cumsum(clean)])
        mass, total = positive.sum(), below[-1]
        if not mass or not total:
            return np.array([np.nan, np.nan, clean @ self.false / total if total else np.nan])
        area = positive @ (below[self.left] + below[self.right]) / (2 * mass * total)
        return np.array([area, positive @ self.caught / mass, clean @ self.false / total])


def _bootstrap(
    function: Callable[[np.ndarray], np.ndarray], images: int, key: jax.Array, level: float, resamples: int
) -> dict[str, Interval]:
    """Percentile intervals of AUROC, TPR and FPR over images drawn again; the same key draws the same images."""
    share(level, "The level of an interval")
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples}.")
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
    value = function(np.ones(images))
    resampled = np.array(
        [
            function(np.bincount(rng.integers(images, size=images), minlength=images).astype(float))
            for _ in range(resamples)
        ]
    )
    tails = (0.5 - level / 2, 0.5 + level / 2)
    return {
        name: Interval(float(value[i]), *defined_quantiles(resampled[:, i], tails))
        for i, name in enumerate(("auroc", "tpr", "fpr"))
    }


def rates(columns: Columns, key: jax.Array, level: float, resamples: int) -> dict[str, Interval]:
    """AUROC, TPR and FPR with intervals by the bootstrap over images, at a fixed threshold."""
    return _bootstrap(columns.rates, columns.images, key, level, resamples)


def gaps(one: Columns, other: Columns, key: jax.Array, level: float, resamples: int) -> dict[str, Interval]:
    """Differences of the rates, each resample the same images for both."""
    return _bootstrap(lambda weights: one.rates(weights) - other.rates(weights), one.images, key, level, resamples)
