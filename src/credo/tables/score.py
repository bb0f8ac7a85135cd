"""Predictions of a run on the scale of its table, and their scores."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.evaluation.metrics import confusion
from credo.evaluation.metrics.scores import summarise, summarise_with_intervals
from credo.tables.encode.encoder import Arrays, TableEncoder
from credo.tables.encode.scale import on_scale, true_targets
from credo.tables.encode.unseen import predict_unseen
from credo.training.placement import on_one_device

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 100  # whose confusions a run keeps


def prediction_key(seed: int) -> jax.Array:
    """The key that decides which weights a run predicts with: the same for predictions, scores, reports and exports."""
    return jax.random.fold_in(jax.random.key(seed), 1)


def predictive_at(
    fit: Any, encoder: TableEncoder, inputs: np.ndarray, seed: int = 0, num_samples: int | None = None
) -> Predictive:
    """The predictive distribution at encoded inputs, on the scale of the table."""
    key, fit = prediction_key(seed), dataclasses.replace(fit, posterior=on_one_device(fit.posterior))
    return on_scale(
        predict_unseen(lambda rows: predict(key, fit, rows, num_samples=num_samples), encoder, inputs), encoder
    )


def prediction_frame(
    predictive: Predictive, encoder: TableEncoder, interval: float, rows: np.ndarray, index: Any
) -> pd.DataFrame:
    """One row for each of a table's index; those whose places are not among `rows` are empty."""
    import pandas as pd

    targets = None if isinstance(encoder.target, str) else encoder.target
    frame = predictive.to_pandas(interval, targets=targets, labels=encoder.classes)
    if len(rows) < len(index):
        frame.index = pd.Index(rows)
        frame = frame.reindex(range(len(index)))
    frame.index = index
    return frame


def held_out_scores(fit: Any, encoder: TableEncoder, train: Arrays, held: Arrays | None, seed: int) -> dict[str, Any]:
    """metrics.json: scores on the held-out rows, on the scale of the table, and times."""
    scores: dict[str, Any] = {}
    if held is not None:
        predictive, truth, weights = _observed(fit, encoder, held, seed)
        scores = {f"test_{name}": value for name, value in summarise(predictive, truth, weights).items()}
        if encoder.classes is None:
            scores["test_errors"] = _errors(predictive, truth, weights, encoder, train)
        table = confusion_of(predictive, truth, weights)
        scores |= {} if table is None else {"test_confusion": table}
    rows = {"train_rows": len(train.rows), "test_rows": 0 if held is None else len(held.rows)}
    return scores | fit.timing | rows


def _errors(
    predictive: Predictive, truth: np.ndarray, weights: Any, encoder: TableEncoder, train: Arrays
) -> dict[str, dict[str, float]]:
    """Target → √ mean squared error of the predictions, and of guessing the mean of the training rows."""
    names = [encoder.target] if isinstance(encoder.target, str) else encoder.target
    truth, mean = (np.asarray(x, np.float64).reshape(len(truth), -1) for x in (truth, predictive.mean))
    learned = np.asarray(true_targets(encoder, train.targets), np.float64).reshape(len(train.targets), -1)
    guess = np.average(learned, axis=0, weights=train.weights)
    rmse, guessed = (np.sqrt(np.average((x - truth) ** 2, axis=0, weights=weights)) for x in (mean, guess))
    return {name: {"rmse": float(a), "guess": float(b)} for name, a, b in zip(names, rmse, guessed)}


def scores_with_intervals(fit: Any, encoder: TableEncoder, rows: Arrays, seed: int) -> dict[str, Any]:
    """Scores of rows, their 90 % bootstrap intervals under "intervals", the number of rows, and for classes confusions.

    The bootstrap has a fixed key, so that the same table gives the same ends.
    """
    predictive, truth, weights = _observed(fit, encoder, rows, seed)
    scores = summarise_with_intervals(predictive, truth, key=jax.random.key(0), weights=weights)
    counts = confusion_of(predictive, truth, weights)
    return {
        **{name: interval.value for name, interval in scores.items()}, "rows": len(rows.rows),
        "intervals": {name: [interval.low, interval.high] for name, interval in scores.items()},
        **({} if counts is None else {"confusion": counts, "classes": encoder.classes}),
    }  # fmt: skip


def _observed(fit: Any, encoder: TableEncoder, rows: Arrays, seed: int) -> tuple[Predictive, np.ndarray, Any]:
    """The predictive at rows, their targets on the scale of the table, and their weights."""
    weights = rows.weights if encoder.weight_column else None
    return predictive_at(fit, encoder, rows.inputs, seed), true_targets(encoder, rows.targets), weights


def confusion_of(predictive: Predictive, targets: np.ndarray, weights: Any = None) -> list[list[float]] | None:
    """Rows of each true class by the class that is named; None where targets are no classes, or too many."""
    if predictive.kind != "classes" or predictive.probs.shape[1] > MOST_CLASSES:
        return None
    return confusion(predictive, targets, weights).tolist()
