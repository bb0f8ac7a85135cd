"""Between what a model learns and what the table says: predictions and targets on the table's own scale."""

import numpy as np

from credo.core.predictive import Predictive
from credo.tables.encode.encoder import TableEncoder


def on_scale(predictive: Predictive, encoder: TableEncoder) -> Predictive:
    """The predictive distribution of the targets as the table has them; classes and counts stay."""
    if encoder.task != "regression":
        return predictive
    return predictive.rescaled(encoder.target_shift, encoder.target_scale)


def true_targets(encoder: TableEncoder, encoded: np.ndarray) -> np.ndarray:
    """Encoded targets on the scale of the table, in float64; class indices stay."""
    if encoder.task != "regression":
        return encoded
    return encoder.target_shift + encoder.target_scale * encoded.astype(np.float64)
