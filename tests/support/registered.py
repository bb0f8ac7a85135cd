"""Every likelihood of the registry with defaults, and targets that it describes."""

import inspect

import numpy as np

from credo.registry import LIKELIHOODS


def likelihood(row, classes=3):
    """What the row builds by default."""
    build = row.load()
    return build(classes) if "num_classes" in inspect.signature(build).parameters else build()


def targets_of(row, numbers, counts, two, several):
    """The targets among these that the row's likelihood describes; positive numbers are at least 0.1."""
    if row.positive:
        return np.abs(numbers) + 0.1
    return {"regression": numbers, "count": counts, "binary": two, "multiclass": several}[row.tasks[-1]]


def cases(numbers, counts, two, several):
    """Name → (likelihood, targets) of every row."""
    return {
        row.name: (likelihood(row), np.asarray(targets_of(row, numbers, counts, two, several)))
        for row in LIKELIHOODS.values()
    }
