"""Sets of classes that hold the true one with a promised probability."""

import dataclasses

import numpy as np

from credo.core.checks import checked_predictive
from credo.core.predictive import Predictive
from credo.errors import InputError


@dataclasses.dataclass(frozen=True)
class ConformalSets:
    """Sets {c : score_c ≤ bound} of classes, with the most probable one; see `split_conformal`."""

    coverage: float
    method: str
    num_classes: int
    bound: float
    rows: int
    note: str

    def __repr__(self) -> str:
        return f"ConformalSets(coverage={self.coverage:g}, {self.method}, bound={self.bound:.4g}, rows={self.rows})"

    def apply(self, predictive: Predictive) -> np.ndarray:
        """True where a class belongs to the set of its row [n, C]."""
        checked_predictive(predictive)
        if predictive.kind != "classes" or predictive.probs.shape[1] != self.num_classes:
            raise InputError(f"These sets were calibrated for {self.num_classes} classes: {self.note}")
        probs = predictive.probs
        top = probs.argmax(1)[:, None] == np.arange(self.num_classes)
        return top | (set_scores(probs, self.method) <= self.bound)


def set_scores(probs: np.ndarray, method: str) -> np.ndarray:
    """How badly each class fits its row [n, C]: 1 − p_c, or the probability of all classes at least as probable."""
    probs = np.asarray(probs, np.float64)
    if method == "threshold":
        return 1 - probs
    order = np.argsort(-probs, axis=1)
    ordered = np.take_along_axis(probs, order, 1)
    sums = np.cumsum(ordered, 1)
    # equal probabilities all get the sum at the last of them
    last = np.where(np.diff(ordered, append=-1.0) != 0, sums, np.inf)
    through = np.minimum.accumulate(last[:, ::-1], 1)[:, ::-1]
    scores = np.empty_like(probs)
    np.put_along_axis(scores, order, through, 1)
    return scores
