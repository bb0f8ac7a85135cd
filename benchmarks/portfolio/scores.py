"""Scores of every test row, by the same code for everybody."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.core.predictive import Predictive
from credo.evaluation.baselines.predictive import mixture
from credo.evaluation.comparison.cell import row_scores
from credo.evaluation.metrics.arrays import brier_terms

LEAST = 1e-15  # a probability, as in scikit-learn's log_loss

Rows = dict[str, np.ndarray]


def of_numbers(predictive: Predictive, truth: np.ndarray) -> Rows:
    """Log density, squared error, CRPS, and whether the 90 % interval holds the truth."""
    return row_scores(predictive, np.asarray(truth, np.float64))


def of_normals(mean: np.ndarray, std: np.ndarray, truth: np.ndarray, trained_on: np.ndarray) -> Rows:
    """The same of N(mean, std²), computed in units of the training targets.

    Example:
        >>> import numpy as np
        >>> rows = of_normals(np.zeros(1), np.ones(1), np.zeros(1), np.arange(3.0))
        >>> round(float(rows["log_likelihood"][0]), 4), round(float(rows["crps"][0]), 3)
        (-0.9189, 0.234)
    """
    shift, scale = float(np.mean(trained_on)), float(np.std(trained_on)) or 1.0
    scaled = mixture((mean - shift)[None] / scale, std[None] / scale)
    return of_numbers(scaled.rescaled(shift, scale), truth)


def of_classes(probs: np.ndarray, truth: np.ndarray) -> Rows:
    """Log probability of the true class, whether the most probable class is right, and the Brier score.

    Args:
        probs: [n, C]; classes that a model does not know may be left out at the end.
        truth: codes of classes [n].

    Example:
        >>> import numpy as np
        >>> rows = of_classes(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 2]))
        >>> rows["log_likelihood"].round(2).tolist(), rows["accuracy"].tolist()
        ([-0.69, -34.54], [1.0, 0.0])
    """
    probs, truth = np.asarray(probs, np.float64), np.asarray(truth).astype(int)
    lacking = max(int(truth.max()) + 1 - probs.shape[1], 0)
    probs = np.pad(probs, ((0, 0), (0, lacking)))
    return {
        "log_likelihood": np.log(np.maximum(probs[np.arange(len(truth)), truth], LEAST)),
        "accuracy": (probs.argmax(1) == truth).astype(np.float64),
        "brier": np.asarray(brier_terms(jnp.asarray(probs), jnp.asarray(truth)), np.float64),
    }


def means(rows: Rows) -> dict[str, Any]:
    """The mean of every score; the root of that of squared errors."""
    averages: dict[str, Any] = {name: float(values.mean()) for name, values in rows.items()}
    if "squared_error" in averages:
        averages["rmse"] = averages.pop("squared_error") ** 0.5
    return averages | {"test_rows": len(rows["log_likelihood"])}
