"""Predictions as the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.core.predictive import Predictive
from credo.data.encoder import TableEncoder

if TYPE_CHECKING:
    import pandas as pd


def prediction_frame(
    predictive: Predictive, encoder: TableEncoder, interval: float, rows: np.ndarray, length: int
) -> pd.DataFrame:
    """One row for each of `length` rows of a table; those that are not among `rows` are empty."""
    import pandas as pd

    targets = None if isinstance(encoder.target, str) else encoder.target
    frame = predictive.to_pandas(interval, targets=targets, labels=encoder.classes)
    if len(rows) == length:
        return frame
    frame.index = pd.Index(rows)
    return frame.reindex(range(length))
