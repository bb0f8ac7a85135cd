"""Predictions as the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

    classes = encoder.classes
    columns = _numbers(predictive, encoder, interval) if classes is None else _classes(predictive, encoder)
    frame = pd.DataFrame(columns)
    if len(rows) == length:
        return frame
    frame.index = pd.Index(rows)
    return frame.reindex(range(length))


def _numbers(predictive: Predictive, encoder: TableEncoder, interval: float) -> dict[str, Any]:
    low, high = predictive.interval(interval)
    columns = {
        "mean": predictive.mean,
        "std": predictive.std,
        "aleatoric_std": np.sqrt(predictive.aleatoric),
        "epistemic_std": np.sqrt(predictive.epistemic),
        "lower": low,
        "upper": high,
    }
    if isinstance(encoder.target, str):
        return columns
    return {f"{t}_{name}": values[:, i] for i, t in enumerate(encoder.target) for name, values in columns.items()}


def _classes(predictive: Predictive, encoder: TableEncoder) -> dict[str, Any]:
    probs = predictive.probs
    columns: dict[str, Any] = {"label": encoder.labels(probs.argmax(1))}
    for i, label in enumerate(encoder.classes or ()):
        columns[f"p_{label}"] = probs[:, i]
    return columns | {
        "entropy": predictive.entropy(),
        "aleatoric_entropy": predictive.aleatoric,
        "mutual_information": predictive.mutual_information(),
    }
