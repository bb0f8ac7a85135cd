"""How well a score separates two groups of rows: AUROC, AUPR and detection at a bounded false-positive rate.

Arguments everywhere: `scores` [n] (larger means more likely positive), `labels` [n] (true or 1 for positive rows),
`weights` of rows [n] or None. Equal scores are never ordered: they pass a threshold together.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays
from credo.evaluation.metrics.arrays.means import row_weights, weighted_sum


def mass_below(values: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """For each row the weight of rows with a smaller value, and of those with a value no larger."""
    order = jnp.argsort(values)
    ordered = values[order]
    before = jnp.concatenate([jnp.zeros(1, weights.dtype), jnp.cumsum(weights[order])])
    left, right = (jnp.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return before[left], before[right]


def _groups(labels: jax.Array, weights: jax.Array | None, scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weights of positive rows and of negative rows; 0 elsewhere."""
    weights, positive = row_weights(weights, scores), labels.astype(bool)
    return jnp.where(positive, weights, 0), jnp.where(positive, 0, weights)


@of_arrays(scores="n", labels="n", weights="n")
def auroc(scores: jax.Array, labels: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """P(s₊ > s₋) + ½ P(s₊ = s₋) for a random positive and a random negative row; NaN where one group is empty.

    Hanley and McNeil (1982), The meaning and use of the area under a receiver operating characteristic curve.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import auroc
        >>> float(auroc(jnp.array([0.1, 0.4, 0.4, 0.9]), jnp.array([0, 0, 1, 1])))
        0.875
    """
    positive, negative = _groups(labels, weights, scores)
    below, upto = mass_below(scores, negative)
    return (positive * 0.5 * (below + upto)).sum() / (positive.sum() * negative.sum())


@of_arrays(scores="n", labels="n", weights="n")
def aupr(scores: jax.Array, labels: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """Average precision Σ_i (R_i − R_{i−1}) P_i over thresholds; NaN where no row is positive.

    A step function, not the trapezoid rule, which is too kind: Davis and Goadrich (2006), The relationship between
    precision-recall and ROC curves.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import aupr
        >>> float(aupr(jnp.array([0.1, 0.4, 0.4, 0.9]), jnp.array([0, 0, 1, 1])))
        0.8333333730697632
    """
    positive, negative = _groups(labels, weights, scores)
    true_positives, false_positives = _passing(scores, positive, negative)
    precision = true_positives / jnp.where(true_positives + false_positives > 0, true_positives + false_positives, 1)
    return (positive * precision).sum() / positive.sum()


def _passing(scores: jax.Array, positive: jax.Array, negative: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weight of positive and of negative rows with at least each row's score."""
    return mass_below(-scores, positive)[1], mass_below(-scores, negative)[1]


@of_arrays(scores="n", labels="n", weights="n")
def tpr_at_fpr(
    scores: jax.Array, labels: jax.Array, weights: jax.Array | None = None, max_fpr: float = 0.05
) -> jax.Array:
    """The largest true-positive rate among thresholds whose false-positive rate is at most `max_fpr`.

    0 where every threshold that finds something is too false; NaN where one group is empty.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import tpr_at_fpr
        >>> float(tpr_at_fpr(jnp.array([0.1, 0.4, 0.3, 0.9]), jnp.array([0, 0, 1, 1])))
        0.5
    """
    positive, negative = _groups(labels, weights, scores)
    true_positives, false_positives = _passing(scores, positive, negative)
    slack = 1 + 16 * jnp.finfo(false_positives.dtype).eps  # sums of weights that meet the bound exactly are within it
    allowed = false_positives <= max_fpr * negative.sum() * slack
    rate = jnp.where(allowed, true_positives, 0).max() / positive.sum()
    return jnp.where(negative.sum() > 0, rate, jnp.nan)


@of_arrays(clean="n", weights="n")
def threshold_at_fpr(clean: jax.Array, weights: jax.Array | None = None, max_fpr: float = 0.05) -> jax.Array:
    """The smallest clean score t such that at most a share `max_fpr` of clean scores lies above it.

    Fix it on clean validation rows, then flag new rows where score > t; see `detection_rates`.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import threshold_at_fpr
        >>> float(threshold_at_fpr(jnp.arange(40.0)))
        37.0
    """
    weights = row_weights(weights, clean)
    above = mass_below(-clean, weights)[0]
    slack = 1 + 16 * jnp.finfo(weights.dtype).eps
    return jnp.where((above <= max_fpr * weights.sum() * slack) & (weights > 0), clean, jnp.inf).min()


class DetectionRates(NamedTuple):
    """Shares of positive and of negative rows that are flagged."""

    tpr: jax.Array
    fpr: jax.Array


@of_arrays(scores="n", labels="n", threshold="any", weights="n")
def detection_rates(
    scores: jax.Array, labels: jax.Array, threshold: jax.Array | float, weights: jax.Array | None = None
) -> DetectionRates:
    """True- and false-positive rate of the rule "flag where score > threshold"; NaN for an empty group.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import detection_rates
        >>> [float(x) for x in detection_rates(jnp.array([0.1, 0.4, 0.3, 0.9]), jnp.array([0, 0, 1, 1]), 0.35)]
        [0.5, 0.5]
    """
    flagged = (scores > threshold).astype(jnp.result_type(scores, jnp.float32))
    return DetectionRates(*(weighted_sum(flagged, g) / g.sum() for g in _groups(labels, weights, scores)))


@of_arrays(probs="n c", labels="n", weights="n")
def one_vs_rest(
    function: Callable[..., jax.Array], probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None
) -> jax.Array:
    """The plain mean over classes c of function(p_c, [y = c]), over those classes for which it exists.

    For two classes it is the score of the second alone.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import auroc, one_vs_rest
        >>> float(one_vs_rest(auroc, jnp.eye(3), jnp.arange(3)))
        1.0
    """
    if probs.shape[-1] == 2:
        return function(probs[:, 1], labels == 1, weights)
    classes = jnp.arange(probs.shape[-1])
    return jnp.nanmean(jax.vmap(lambda p, c: function(p, labels == c, weights), (1, 0))(probs, classes))
