"""What continual learning gives: a posterior after each task, and how well every task is remembered."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from credo.applications.continual.tasks import Task, with_head
from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.core.short import fields_in_short
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.evaluation import metrics
from credo.training.fit import Fit

HIGHER = ("accuracy", "log_likelihood")  # scores of which more is better


@dataclasses.dataclass
class Continual:
    """The result of `credo.applications.continual.learn`.

    Attributes:
        fits: one for each task: its posterior was the next task's prior.
        refined: what predicts after each task: refined on the coresets, or the fit itself without them.
        scores: A[t, i] by name: the score on the test rows of task i after task t, NaN for tasks to come.
        coresets: row numbers that were kept apart, of each task.
        seconds: of each task, scores left out.
        heads: "single" or "multi".
    """

    fits: list[Fit]
    refined: list[Fit]
    scores: dict[str, np.ndarray]
    coresets: list[np.ndarray]
    seconds: list[float]
    heads: str = "single"

    __repr__ = fields_in_short

    @property
    def posteriors(self) -> list[Any]:
        """q_t after each task, without coresets."""
        return [fit.posterior for fit in self.fits]

    @property
    def main(self) -> str:
        """The score that `average`, `forgetting` and `backward_transfer` are about."""
        if not self.scores:
            raise InputError("There are no scores: give each task test inputs and test targets.")
        return next(iter(self.scores))

    @property
    def average(self) -> np.ndarray:
        """Mean over the tasks so far, after each task [T]: (1/t) Σ_{i ≤ t} A[t, i]."""
        return np.nanmean(self.scores[self.main], axis=1)

    @property
    def backward_transfer(self) -> float:
        """(1/(T−1)) Σ_{i<T} (A[T, i] − A[i, i]): below 0 where later tasks harmed earlier ones.

        Lopez-Paz and Ranzato (2017), Gradient episodic memory for continual learning.
        """
        matrix = self.scores[self.main]
        return float((matrix[-1, :-1] - np.diagonal(matrix)[:-1]).mean()) if len(matrix) > 1 else 0.0

    @property
    def forgetting(self) -> float:
        """(1/(T−1)) Σ_{i<T} (max_{t<T} A[t, i] − A[T, i]): how far scores fell from their best.

        Chaudhry et al. (2018), Riemannian walk for incremental learning.
        """
        matrix = self.scores[self.main]
        return float((np.nanmax(matrix[:-1, :-1], axis=0) - matrix[-1, :-1]).mean()) if len(matrix) > 1 else 0.0

    def predict(
        self,
        key: jax.Array,
        inputs: PyTree,
        task: int,
        *,
        after: int = -1,
        num_samples: int | None = None,
        mode: str | None = None,
    ) -> Predictive:
        """The predictive distribution for inputs of a task, after that or a later one (the last by default).

        Args:
            key: a JAX key for drawing from the posterior.
            inputs: like those of the tasks.
            task: number of the task, from 0: it chooses the head.
            after: after which task.
            num_samples, mode: as in `credo.predict`.
        """
        rows = with_head(inputs, task) if self.heads == "multi" else inputs
        return predict(key, self.refined[after], rows, num_samples=num_samples, mode=mode)

    def summary(self) -> str:
        """The table of scores, their means and what was forgotten, as text."""
        matrix = self.scores[self.main]
        lines = [f"{self.main} on task …".ljust(20) + "".join(f"{i:>9}" for i in range(len(matrix))) + "     mean"]
        for t, (row, mean) in enumerate(zip(matrix, self.average)):
            cells = "".join(f"{x:9.4f}" if np.isfinite(x) else " " * 9 for x in row)
            lines.append(f"after task {t}".ljust(20) + cells + f"{mean:9.4f}")
        lines.append(f"forgetting {self.forgetting:.4f}, backward transfer {self.backward_transfer:+.4f}")
        return "\n".join(lines)

    def plot(self) -> Any:
        """A figure: the scores of every task after every task, and their mean (`credo.report.continual`)."""
        from credo.report.continual import plot

        return plot(self)


def score_row(result: Continual, key: jax.Array, tasks: Sequence[Task], num_samples: int | None) -> None:
    """Add the scores of all tasks so far after the last fit."""
    scores: dict[str, list[float]] = {}
    for i, task in enumerate(tasks):
        predictive = result.predict(jax.random.fold_in(key, i), task.test_inputs, i, num_samples=num_samples)
        names = ("accuracy", "log_likelihood") if predictive.kind == "classes" else ("log_likelihood", "rmse")
        targets = np.asarray(task.test_targets)
        for name in names:
            scores.setdefault(name, []).append(float(vars(metrics)[name](predictive, targets)))
    for name, row in scores.items():
        before = result.scores.get(name, np.zeros((0, 0)))
        wide = np.full((len(row), len(row)), np.nan)
        wide[: len(before), : len(before)] = before
        wide[-1] = row
        result.scores[name] = wide
