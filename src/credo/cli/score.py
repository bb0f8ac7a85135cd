"""Predictions of a run on the scale of its table, and their scores."""

from typing import Any

import jax
import numpy as np

from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.data.encoder import TableEncoder
from credo.metrics.bootstrap import Interval
from credo.metrics.scores import summarise as scores_of
from credo.metrics.scores import summarise_with_intervals

__all__ = ["intervals_of", "predictive_at", "scores_of", "true_targets"]


def intervals_of(predictive: Predictive, targets: np.ndarray, weights: Any) -> dict[str, Interval]:
    """The scores with bootstrap intervals; a fixed key, so that the same table gives the same ends."""
    return summarise_with_intervals(predictive, targets, key=jax.random.key(0), weights=weights)


def predictive_at(fit: Any, encoder: TableEncoder, inputs: np.ndarray, seed: int = 0) -> Predictive:
    """The predictive distribution at encoded inputs; the seed decides which weights are drawn."""
    predictive = predict(jax.random.fold_in(jax.random.key(seed), 1), fit, inputs)
    if encoder.task != "regression":
        return predictive
    return predictive.rescaled(encoder.target_shift, encoder.target_scale)


def true_targets(encoder: TableEncoder, encoded: np.ndarray) -> np.ndarray:
    """Encoded targets on the scale of the table, in float64; class indices stay."""
    if encoder.task != "regression":
        return encoded
    return encoder.target_shift + encoder.target_scale * encoded.astype(np.float64)
