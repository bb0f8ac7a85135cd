"""The scores that every run reports."""

from typing import Any

import jax
import numpy as np

from credo.core.predictive import Predictive
from credo.evaluation.metrics.bootstrap import Interval, with_interval
from credo.evaluation.metrics.terms import Score
from credo.registry import METRICS

DRAWN, FEWEST = 20_000_000, 100  # numbers drawn for the mean CRPS of all rows, and draws of a row at least


def _reported(predictive: Predictive, targets: Any) -> dict[str, Score]:
    """The rows of the registry for these predictions, those of classes where the targets allow them."""
    when = {"always"}
    if predictive.kind == "classes" and len(np.unique(np.asarray(targets))) > 1:
        when |= {"several", "two"} if predictive.probs.shape[1] == 2 else {"several"}
    draws = {"crps": {"draws": max(FEWEST, min(1000, DRAWN // max(1, len(predictive))))}}
    return {
        row.name: row.load().given(**dict(row.given), **draws.get(row.name, {}))
        for row in METRICS.values()
        if row.when in when and predictive.kind in row.kinds
    }


def summarise(predictive: Predictive, targets: Any, weights: Any = None) -> dict[str, float]:
    """The scores that every run reports: of numbers, of counts (without CRPS), or of classes.

    Classes get the accuracy and beside it that of always naming the most frequent class; where targets have more than
    one class the area under the ROC curve, and where there are two classes recall and precision of class 1 at the
    threshold of best expected F1, and its lift in the top tenth of rows.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.evaluation.metrics import summarise
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
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
