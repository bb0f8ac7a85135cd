"""The numbers behind the figures, one output at a time, read once from a predictive distribution."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError

COVERAGE = 0.9


@dataclass(frozen=True)
class RealView:
    """One real-valued or count output on the scale of the table; uncertainties are standard deviations.

    Attributes:
        pit: P(Y ≤ y) of each observed value, spread over its step for counts; uniform where the model is right.
        nominal: the probability that the intervals truly hold, which is above 0.9 for whole numbers.
        rows: the index of each row in the table, from 0.
    """

    name: str
    mean: np.ndarray
    aleatoric: np.ndarray
    epistemic: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    target: np.ndarray | None = None
    pit: np.ndarray | None = None
    nominal: float = COVERAGE
    rows: np.ndarray | None = None

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of the prediction."""
        return np.sqrt(self.aleatoric**2 + self.epistemic**2)

    @property
    def share(self) -> np.ndarray:
        """The part of the variance that is epistemic."""
        total = np.maximum(self.std**2, np.finfo(float).tiny)
        return self.epistemic**2 / total

    @property
    def inside(self) -> np.ndarray:
        """Whether each interval holds its observed value."""
        return (self.target >= self.lower) & (self.target <= self.upper)


@dataclass(frozen=True)
class ClassView:
    """Class probabilities, entropies in nats and, where known, the true classes as indices."""

    name: str
    labels: tuple[str, ...]
    probs: np.ndarray
    aleatoric: np.ndarray
    epistemic: np.ndarray
    target: np.ndarray | None = None
    rows: np.ndarray | None = None

    @property
    def guess(self) -> np.ndarray:
        """The most probable class."""
        return self.probs.argmax(-1)

    @property
    def confidence(self) -> np.ndarray:
        """The probability of the most probable class."""
        return self.probs.max(-1)

    @property
    def right(self) -> np.ndarray:
        """Whether the most probable class is the true one."""
        return self.guess == self.target


View = RealView | ClassView


def which(view: View, pick: np.ndarray) -> dict[str, list[str]]:
    """The rows that a figure shows, counted from 1: in the table where that is known, else among those scored."""
    if view.rows is None:
        return {"scored row": [f"{i + 1}" for i in pick]}
    return {"row of the table": [f"{view.rows[i] + 1}" for i in pick]}


def views(
    predictive: Predictive, targets: Any = None, encoder: Any = None, rows: np.ndarray | None = None
) -> list[View]:
    """One view for each output of a predictive.

    Args:
        predictive: predictions on the scale of the table.
        targets: observed values on the same scale; class indices for classes.
        encoder: names the outputs and the classes.
        rows: the index of each row in the table, from 0.
    """
    if targets is not None and len(targets) != len(predictive):
        raise InputError(f"There are {len(predictive)} predictions but {len(targets)} targets.")
    names = _names(encoder)
    if predictive.kind == "classes":
        return [_class_view(predictive, targets, encoder, names[0], rows)]
    return list(_real_views(predictive, targets, names, rows))


def _names(encoder: Any) -> list[str]:
    target = "target" if encoder is None else encoder.target
    return [target] if isinstance(target, str) else list(target)


def _class_view(predictive: Predictive, targets: Any, encoder: Any, name: str, rows: np.ndarray | None) -> ClassView:
    probs = np.asarray(predictive.probs, np.float64)
    classes = None if encoder is None else encoder.classes
    labels = tuple(str(c) for c in (range(probs.shape[1]) if classes is None else classes))
    indices = None if targets is None else np.asarray(targets).astype(int).reshape(-1)
    return ClassView(name, labels, probs, predictive.aleatoric, predictive.epistemic, indices, rows)


def _real_views(predictive: Predictive, targets: Any, names: list[str], rows: np.ndarray | None) -> list[RealView]:
    def columns(values: Any) -> np.ndarray:
        return np.asarray(values, np.float64).reshape(len(predictive), -1)

    mean, noise, spread = (
        columns(v) for v in (predictive.mean, np.sqrt(predictive.aleatoric), np.sqrt(predictive.epistemic))
    )
    lower, upper = (columns(v) for v in predictive.interval(COVERAGE))
    nominal = COVERAGE
    if predictive.kind == "counts":
        mass = columns(predictive.cdf(predictive.interval(COVERAGE)[1])) - _below(predictive, lower, columns)
        nominal = float(mass.mean())
    observed = pit = None
    if targets is not None:
        observed, pit = columns(targets), columns(predictive.cdf(targets))
        if predictive.kind == "counts":
            low = _below(predictive, observed, columns)
            pit = low + np.random.default_rng(0).uniform(size=pit.shape) * (pit - low)
    count = mean.shape[1]
    names = names if len(names) == count else [f"output {i + 1}" for i in range(count)]
    return [
        RealView(
            names[i], mean[:, i], noise[:, i], spread[:, i], lower[:, i], upper[:, i],
            None if observed is None else observed[:, i], None if pit is None else pit[:, i], nominal, rows,
        )
        for i in range(count)
    ]  # fmt: skip


def _below(predictive: Predictive, values: np.ndarray, columns: Any) -> np.ndarray:
    """P(Y < y) of whole numbers."""
    shape = np.shape(predictive.mean)
    previous = np.maximum(values - 1, 0).reshape(shape)
    return np.where(values > 0, columns(predictive.cdf(previous)), 0.0)
