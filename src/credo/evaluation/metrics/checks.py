"""Targets and predictions that fit a score, or a sentence."""

from typing import Any

import numpy as np

from credo.core.numeric import host_floats
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal


def class_probs(predictive: Predictive, targets: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [n, C] and class indices [n]."""
    if predictive.kind != "classes":
        raise Refusal(f"{name} is a score of class probabilities; these predictions are {predictive.kind}.")
    probs = predictive.probs
    labels = np.asarray(targets)
    good = labels.dtype.kind in "fiub" and labels.size == len(probs) and labels.shape[:1] == (len(probs),)
    labels = labels.reshape(-1)
    if not (good and ((labels >= 0) & (labels < probs.shape[1]) & (np.floor(labels) == labels)).all()):
        raise InputError(
            f"Expected {len(probs)} class indices from 0 to {probs.shape[1] - 1}, one for each prediction."
        )
    return probs, labels.astype(np.int32)


def positive_column(probs: np.ndarray, name: str) -> np.ndarray:
    """Probabilities of class 1 [n]; a refusal unless there are two classes."""
    if probs.shape[1] != 2:
        raise Refusal(f"{name} needs a positive and a negative class; there are {probs.shape[1]}.")
    return probs[:, 1]


def positive_class(predictive: Predictive, targets: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of class 1 of two [n], and class indices [n] of which both occur."""
    probs, labels = class_probs(predictive, targets, name)
    column = positive_column(probs, name)
    two_groups(labels, name)
    return column, labels


def numbers(predictive: Predictive, targets: Any, name: str) -> np.ndarray:
    """Targets as numbers of the shape of the predictions, [n] or [n, k]."""
    if predictive.kind == "classes":
        raise Refusal(f"{name} is a score of numbers; these predictions are classes.")
    values = host_floats(targets, "Targets")
    expected = predictive.mean.shape
    if values.shape != expected:
        raise InputError(f"Expected targets of shape {list(expected)}, got {list(values.shape)}.")
    return values


def two_groups(labels: np.ndarray, name: str) -> None:
    """A refusal where all rows are of one class."""
    if len(np.unique(labels)) == 1:
        raise Refusal(f"{name} compares a class with the others, but all targets are of class {labels[0]}.")
