"""Scores of class probabilities. Arguments everywhere: the predictive, class indices [n], weights of rows."""

from functools import partial
from typing import Any

from credo.core.predictive import Predictive
from credo.evaluation.metrics import arrays
from credo.evaluation.metrics.arrays.calibration import BINS
from credo.evaluation.metrics.checks import class_probs, positive_class, two_groups
from credo.evaluation.metrics.terms import Terms, score

_AUROC, _AUPR = partial(arrays.one_vs_rest, arrays.auroc), partial(arrays.one_vs_rest, arrays.aupr)


@score
def accuracy(predictive: Predictive, targets: Any) -> Terms:
    """The share of rows whose most probable class is the right one."""
    probs, labels = class_probs(predictive, targets, "accuracy")
    return Terms(arrays.mean, (probs.argmax(1) == labels,))


@score
def brier(predictive: Predictive, targets: Any) -> Terms:
    """Mean Σ_c (p_c − 1[y = c])², between 0 and 2; for two classes mean (p₁ − y)², between 0 and 1; lower is better.

    As in scikit-learn. Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    return Terms(arrays.brier, class_probs(predictive, targets, "brier"))


@score
def brier_decomposition(predictive: Predictive, targets: Any, *, bins: int = BINS) -> Terms:
    """`BrierParts`: brier = reliability − resolution + uncertainty + within_bin, summed over classes (halved for two).

    See `credo.metrics.arrays.brier_decomposition` for the parts. Murphy (1973); Stephenson, Coelho and Jolliffe (2008).
    """
    probs_labels = class_probs(predictive, targets, "brier_decomposition")
    return Terms(arrays.brier_decomposition, probs_labels, (("bins", bins),))


@score
def ece(predictive: Predictive, targets: Any, *, bins: int = BINS) -> Terms:
    """Expected calibration error: Σ_b W_b/W |accuracy_b − confidence_b| over equal-width bins of confidence.

    Bin b is [b/B, (b + 1)/B); p = 1 belongs to the last. Naeini, Cooper and Hauskrecht (2015); Guo et al. (2017).
    """
    return Terms(arrays.ece, class_probs(predictive, targets, "ece"), (("bins", bins),))


@score
def adaptive_ece(predictive: Predictive, targets: Any, *, bins: int = BINS) -> Terms:
    """`ece` over bins that hold equal weight; rows of one confidence share a bin. Nguyen and O'Connor (2015)."""
    return Terms(arrays.adaptive_ece, class_probs(predictive, targets, "adaptive_ece"), (("bins", bins),))


@score
def classwise_ece(predictive: Predictive, targets: Any, *, bins: int = BINS) -> Terms:
    """The calibration error of each class's own probability, averaged over classes. Kull et al. (2019)."""
    return Terms(arrays.classwise_ece, class_probs(predictive, targets, "classwise_ece"), (("bins", bins),))


@score
def auroc(predictive: Predictive, targets: Any) -> Terms:
    """P(s₊ > s₋) + ½ P(s₊ = s₋) with s the probability of class 1, or the mean of class against rest over classes.

    Classes that no target has are left out. Refused where all targets are of one class. For scores that are not class
    probabilities (entropy against out-of-distribution inputs) use `credo.metrics.arrays.auroc(scores, labels)`.
    """
    probs, labels = class_probs(predictive, targets, "auroc")
    two_groups(labels, "auroc")
    return Terms(_AUROC, (probs, labels))


@score
def aupr(predictive: Predictive, targets: Any) -> Terms:
    """Average precision of class 1, or the mean of class against rest over the classes that targets have.

    Refused where all targets are of one class, since every ranking then has the same precision.
    """
    probs, labels = class_probs(predictive, targets, "aupr")
    two_groups(labels, "aupr")
    return Terms(_AUPR, (probs, labels))


@score
def tpr_at_fpr(predictive: Predictive, targets: Any, *, max_fpr: float = 0.05) -> Terms:
    """The largest true-positive rate of class 1 of two, among thresholds whose false-positive rate is ≤ `max_fpr`."""
    column_labels = positive_class(predictive, targets, "tpr_at_fpr")
    return Terms(arrays.tpr_at_fpr, column_labels, (("max_fpr", float(max_fpr)),))
