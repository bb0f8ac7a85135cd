"""What active learning gives: which rows were labelled, and how well the model did with so many of them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.errors import InputError
from credo.storage.store import Store

HIGHER = {"accuracy": True, "log_likelihood": True, "rmse": False}


@dataclasses.dataclass
class ActiveLearning:
    """The result of `credo.applications.active.learn`.

    Attributes:
        acquisition: how rows were chosen.
        rows: rows of the pool in the order in which they were labelled.
        sizes: numbers of labels at which the model was fitted and scored.
        scores: by name, one for each of `sizes`.
        seconds: of each round.
        fit: the last fit; None where all rounds were read from a folder.
    """

    acquisition: str
    rows: list[int]
    sizes: list[int]
    scores: dict[str, list[float]]
    seconds: list[float]
    fit: Any = None

    @property
    def main(self) -> str:
        """The score that `plot` and `labels_needed` are about."""
        if not self.scores:
            raise InputError("There are no scores: give test=(inputs, targets).")
        return next(iter(self.scores))

    def summary(self) -> str:
        """Labels and scores as text."""
        lines = [f"{'labels':>8}" + "".join(f"{name:>16}" for name in self.scores)]
        for i, size in enumerate(self.sizes):
            lines.append(f"{size:>8}" + "".join(f"{values[i]:>16.4f}" for values in self.scores.values()))
        return "\n".join([f"Rows chosen by {self.acquisition}.", *lines])

    def __str__(self) -> str:
        return self.summary()

    def plot(self, *others: "ActiveLearning") -> Any:
        """A figure of the score against the number of labels, of this run and others; several runs with one
        acquisition become a mean with an interval (`credo.report.active`)."""
        from credo.report.active import plot

        return plot([self, *others])

    def forget_last(self) -> None:
        """Take back the last round's size, scores and seconds."""
        self.sizes.pop()
        self.seconds.pop()
        for values in self.scores.values():
            values.pop()

    def write(self, store: Store) -> None:
        """Save the rounds so far; the file appears whole or not at all."""
        content = dataclasses.asdict(dataclasses.replace(self, fit=None))
        del content["fit"]
        store.save(**content)

    @staticmethod
    def read(store: Store) -> "ActiveLearning | None":
        """What an earlier run with the same settings saved; None where there is nothing."""
        if not store.path.exists():
            return None
        content = store.content
        with store.understood():
            run = ActiveLearning(
                str(content["acquisition"]), [int(r) for r in content["rows"]], [int(s) for s in content["sizes"]],
                {str(k): [float(x) for x in v] for k, v in content["scores"].items()},
                [float(s) for s in content["seconds"]],
            )  # fmt: skip
            rounds = {len(run.sizes), len(run.seconds), *map(len, run.scores.values())}
            if len(rounds) > 1 or any(size > len(run.rows) for size in run.sizes) or min(run.rows, default=0) < 0:
                raise ValueError("the rounds do not agree")
        return run


def labels_needed(runs: Sequence[ActiveLearning], level: float, score: str | None = None) -> np.ndarray:
    """Labels at which each run first reaches a score, between two sizes by a straight line; ∞ where it never does.

    Example:
        >>> import credo
        >>> run = credo.applications.active.ActiveLearning("bald", [], [10, 20], {"accuracy": [0.5, 0.7]}, [])
        >>> credo.applications.active.labels_needed([run], 0.6).tolist()
        [15.0]
    """
    needed = []
    for run in runs:
        name = score or run.main
        sign = 1.0 if HIGHER.get(name, True) else -1.0
        values, sizes = sign * np.asarray(run.scores[name]), np.asarray(run.sizes, float)
        reached = np.flatnonzero(values >= sign * level)
        if not len(reached):
            needed.append(np.inf)
        elif (i := int(reached[0])) == 0:
            needed.append(sizes[0])
        else:
            share = (sign * level - values[i - 1]) / (values[i] - values[i - 1])
            needed.append(sizes[i - 1] + share * (sizes[i] - sizes[i - 1]))
    return np.array(needed)
