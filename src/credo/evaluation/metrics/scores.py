"""The scores that every run reports."""

from typing import Any

import jax
import numpy as np

from credo.core.predictive import Predictive
from credo.evaluation.metrics import classes, numbers, threshold
from credo.evaluation.metrics.bootstrap import Interval, with_interval
from credo.evaluation.metrics.terms import Score

OF_CLASSES = {
    "log_likelihood": numbers.log_likelihood,
    "accuracy": classes.accuracy,
    "majority_accuracy": threshold.majority_accuracy,
    "brier": classes.brier,
    "ece": classes.ece,
}
OF_RANKING = {"auroc": classes.auroc}  # where targets have more than one class
OF_TWO = {  # and there are but two classes
    "recall": threshold.recall,
    "precision": threshold.precision,
    "threshold": threshold.threshold,
    "lift_10": threshold.lift.given(share=0.1),
}
OF_NUMBERS = {
    "log_likelihood": numbers.log_likelihood,
    "rmse": numbers.rmse,
    "crps": numbers.crps,
    "coverage_90": numbers.coverage.given(level=0.9),
}
DRAWN, FEWEST = 20_000_000, 100  # numbers drawn for the mean CRPS of all rows, and draws of a row at least


def _reported(predictive: Predictive, targets: Any) -> dict[str, Score]:
    if predictive.kind == "classes":
        if len(np.unique(np.asarray(targets))) < 2:
            return OF_CLASSES
        return OF_CLASSES | OF_RANKING | (OF_TWO if predictive.probs.shape[1] == 2 else {})
    if predictive.kind == "counts":  # their draws are slow to compile and to make
        return {name: score for name, score in OF_NUMBERS.items() if name != "crps"}
    draws = max(FEWEST, min(1000, DRAWN // max(1, len(predictive))))
    return OF_NUMBERS | {"crps": numbers.crps.given(draws=draws)}


def summarise(predictive: Predictive, targets: Any, weights: Any = None) -> dict[str, float]:
    """The scores that every run reports: of numbers, of counts (without CRPS), or of classes.

    Classes get the accuracy and beside it that of always naming the most frequent class; where targets have more than
    one class the area under the ROC curve, and where there are two classes recall and precision of class 1 at the
    threshold of best expected F1, and its lift in the top tenth of rows.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.evaluation.metrics import summarise
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([5]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=100)
        >>> list(summarise(credo.predict(jax.random.key(1), fit, x), x[:, 0]))
        ['log_likelihood', 'rmse', 'crps', 'coverage_90']
    """
    return {name: score(predictive, targets, weights) for name, score in _reported(predictive, targets).items()}


def summarise_with_intervals(
    predictive: Predictive,
    targets: Any,
    *,
    key: jax.Array,
    level: float = 0.9,
    resamples: int = 1000,
    weights: Any = None,
) -> dict[str, Interval]:
    """The same scores, each with its bootstrap interval; all see the same resamples. See `with_interval`."""
    settings: dict[str, Any] = {"key": key, "level": level, "resamples": resamples, "weights": weights}
    return {
        name: with_interval(s, predictive, targets, **settings) for name, s in _reported(predictive, targets).items()
    }
