"""Predictions of a run on the scale of its table, and their scores."""

from typing import Any

import jax
import numpy as np

from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.data.encoder import TableEncoder
from credo.metrics.scores import summarise as scores_of

__all__ = ["predictive_at", "scores_of", "true_targets"]


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
