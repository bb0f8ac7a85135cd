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
        """Save what is known so far; the file appears whole or not at all."""
        known = dataclasses.asdict(dataclasses.replace(self, fit=None))
        store.save(**{name: value for name, value in known.items() if name != "fit"})

    @staticmethod
    def read(store: Store) -> "ActiveLearning | None":
        """What an earlier run with the same settings saved; None where there is nothing."""
        if not store.path.exists():
            return None
        known = store.content
        with store.understood():
            found = ActiveLearning(
                str(known["acquisition"]), [int(r) for r in known["rows"]], [int(s) for s in known["sizes"]],
                {str(k): [float(x) for x in v] for k, v in known["scores"].items()},
                [float(s) for s in known["seconds"]],
            )  # fmt: skip
            rounds = {len(found.sizes), len(found.seconds), *map(len, found.scores.values())}
            if len(rounds) > 1 or any(size > len(found.rows) for size in found.sizes) or min(found.rows, default=0) < 0:
                raise ValueError("the rounds do not agree")
        return found


def labels_needed(runs: Sequence[ActiveLearning], level: float, score: str | None = None) -> np.ndarray:
    """Labels at which each run first reaches a score, between two sizes by a straight line; ∞ where it never does.

    Example:
        >>> import credo
        >>> run = credo.applications.active.ActiveLearning("bald", [], [10, 20], {"accuracy": [0.5, 0.7]}, [])
        >>> credo.applications.active.labels_needed([run], 0.6).tolist()
        [15.0]
    """
    found = []
    for run in runs:
        name = score or run.main
        sign = 1.0 if HIGHER.get(name, True) else -1.0
        values, sizes = sign * np.asarray(run.scores[name]), np.asarray(run.sizes, float)
        reached = np.flatnonzero(values >= sign * level)
        if not len(reached):
            found.append(np.inf)
            continue
        i = int(reached[0])
        if i == 0:
            found.append(sizes[0])
            continue
        share = (sign * level - values[i - 1]) / (values[i] - values[i - 1])
        found.append(sizes[i - 1] + share * (sizes[i] - sizes[i - 1]))
    return np.array(found)
