"""Predictions as the columns of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.errors import InputError


def prediction_columns(
    predictive: Any, interval: float, targets: Sequence[str] | None = None, labels: Sequence[Any] | None = None
) -> dict[str, np.ndarray]:
    """The columns of `Predictive.to_pandas`, by name."""
    if predictive.kind == "classes":
        return _classes(predictive, labels)
    low, high = predictive.interval(interval)
    columns = {
        "mean": predictive.mean,
        "std": predictive.std,
        "aleatoric_std": np.sqrt(predictive.aleatoric),
        "epistemic_std": np.sqrt(predictive.epistemic),
        "lower": low,
        "upper": high,
    }
    if predictive.mean.ndim == 1:
        return columns
    outputs = predictive.mean.shape[1]
    names = [f"y{i}" for i in range(outputs)] if targets is None else list(targets)
    if len(names) != outputs:
        raise InputError(f"There are {outputs} targets to name, got {len(names)} names.")
    return {f"{target}_{name}": x[:, i] for i, target in enumerate(names) for name, x in columns.items()}


def _classes(predictive: Any, labels: Sequence[Any] | None) -> dict[str, np.ndarray]:
    probs = predictive.probs
    named = list(range(probs.shape[1])) if labels is None else list(labels)
    if len(named) != probs.shape[1]:
        raise InputError(f"There are {probs.shape[1]} classes to name, got {len(named)} labels.")
    text = any(isinstance(label, str) for label in named)
    columns = {"label": np.array(named, dtype=object if text else None)[probs.argmax(1)]}
    columns |= {f"p_{label}": probs[:, i] for i, label in enumerate(named)}
    return columns | {
        "entropy": predictive.entropy(),
        "aleatoric_entropy": predictive.aleatoric,
        "mutual_information": predictive.mutual_information(),
    }
