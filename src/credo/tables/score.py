"""Predictions of a run on the scale of its table, and their scores."""

from typing import Any

import jax
import numpy as np

from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.evaluation.metrics import confusion
from credo.evaluation.metrics.bootstrap import Interval
from credo.evaluation.metrics.scores import summarise as scores_of
from credo.evaluation.metrics.scores import summarise_with_intervals
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.scale import on_scale, true_targets
from credo.tables.encode.unseen import predict_unseen

MOST_CLASSES = 100  # whose confusions a run keeps
__all__ = ["confusion_of", "intervals_of", "predictive_at", "scores_of", "true_targets"]


def intervals_of(predictive: Predictive, targets: np.ndarray, weights: Any) -> dict[str, Interval]:
    """The scores with bootstrap intervals; a fixed key, so that the same table gives the same ends."""
    return summarise_with_intervals(predictive, targets, key=jax.random.key(0), weights=weights)


def predictive_at(fit: Any, encoder: TableEncoder, inputs: np.ndarray, seed: int = 0) -> Predictive:
    """The predictive distribution at encoded inputs; the seed decides which weights are drawn."""
    key = jax.random.fold_in(jax.random.key(seed), 1)
    return on_scale(predict_unseen(lambda rows: predict(key, fit, rows), encoder, inputs), encoder)


def confusion_of(predictive: Predictive, targets: np.ndarray, weights: Any = None) -> list[list[float]] | None:
    """Rows of each true class by the class that is named; None where targets are no classes, or too many."""
    if predictive.kind != "classes" or predictive.probs.shape[1] > MOST_CLASSES:
        return None
    return confusion(predictive, targets, weights).tolist()
