"""What the rows that a run held out say against it, in sentences with figures."""

from typing import Any

import numpy as np

from credo.evaluation.metrics.judge import judge

LEVEL = 0.9
FEWEST = 20  # rows that can tell something
WARNING = "Warning:"
LOG_LOSS = f"{WARNING} log loss"  # how the sentence on classes begins
WORSE = 0.01  # share of the frequencies' log loss that may be chance


def doubts(metrics: dict[str, Any], train: Any, held: Any, classes: int) -> list[str]:
    """Sentences where intervals hold too few of the held-out rows, or where classes are told worse than by frequency.

    Args:
        metrics: scores of the held-out rows, with the prefix `test_`.
        train, held: encoded training and held-out rows.
        classes: how many classes there are; 0 for numbers and counts.
    """
    if held is None or len(held.rows) < FEWEST:
        return []
    if not classes:
        return _narrow(metrics.get("test_coverage_90"), held)
    return _worse(-metrics["test_log_likelihood"], train, held, classes)


def _narrow(coverage: float | None, held: Any) -> list[str]:
    if coverage is None:
        return []
    judgement = judge(coverage, len(held.rows), LEVEL)
    if judgement.verdict != "low":
        return []
    return [
        f"{WARNING} 90 % intervals hold {100 * coverage:.0f} % of {judgement.rows} rows that the fit did not see; give "
        "it more time or rows, or another method, before you trust its error bars."
    ]


def _worse(loss: float, train: Any, held: Any, classes: int) -> list[str]:
    counts = np.bincount(train.targets.astype(int), train.weights, minlength=classes) + 0.5
    log_shares = np.log(counts / counts.sum())[held.targets.astype(int)]
    baseline = -float(np.average(log_shares, weights=held.weights))
    if loss <= (1 + WORSE) * baseline:
        return []
    return [
        f"{LOG_LOSS} is {loss:.3f} on {len(held.rows)} rows that the fit did not see, and that of the classes' "
        f"frequencies is {baseline:.3f}; do not use these probabilities."
    ]
