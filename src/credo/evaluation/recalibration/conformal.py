"""Split conformal prediction: intervals and sets whose coverage holds for finite samples, whatever the model."""

import dataclasses
import math
from typing import Any

import numpy as np

from credo.core.checks import checked_predictive, one_of, share
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal
from credo.evaluation.metrics.checks import class_probs, numbers
from credo.evaluation.recalibration.conformal_sets import ConformalSets, set_scores


@dataclasses.dataclass(frozen=True)
class ConformalIntervals:
    """Intervals [q_low − margin, q_high + margin] around quantiles of a predictive; see `split_conformal`.

    margin: in units of the target, one for each output; negative where the predictive's own intervals were too wide.
    """

    coverage: float
    kind: str
    margin: np.ndarray
    rows: int
    note: str

    def __repr__(self) -> str:
        return f"ConformalIntervals(coverage={self.coverage:g}, margin={self.margin.tolist()}, rows={self.rows})"

    def apply(self, predictive: Predictive) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends at any inputs, in the shape of the targets."""
        checked_predictive(predictive)
        low, high = predictive.interval(self.coverage)
        if predictive.kind != self.kind or np.shape(self.margin) != low.shape[1:]:
            raise InputError(f"These intervals were calibrated for other targets: {self.note}")
        low, high = low - self.margin, high + self.margin
        middle = (low + high) / 2
        low, high = np.minimum(low, middle), np.maximum(high, middle)  # a negative margin may cross them
        if self.kind == "counts":
            low, high = np.maximum(np.floor(low), 0), np.ceil(high)
        return low, high


def split_conformal(
    predictive: Predictive, targets: Any, coverage: float = 0.9, *, method: str | None = None
) -> ConformalIntervals | ConformalSets:
    """Intervals (numbers, counts) or sets (classes) that hold a new target with probability at least `coverage`.

    P(Y ∈ C(X)) ≥ coverage over the calibration rows and the new one, if those are exchangeable: for any model, any n.
    It is a promise on average over inputs, not at each of them. Scores are ranked, and the margin is that of rank
    ⌈(n + 1) · coverage⌉. Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World.

    Numbers and counts: score max(q_low(x) − y, y − q_high(x)), for each output by itself. Romano, Patterson and
    Candès (2019), Conformalized quantile regression. Classes: "threshold", score 1 − p_y, gives the smallest sets
    (Sadinle, Lei and Wasserman 2019); "adaptive", score Σ_c p_c [p_c ≥ p_y], gives sets that grow where the model is
    unsure (Romano, Sesia and Candès 2020). Sets always hold the most probable class.

    Args:
        predictive: predictions at calibration rows that training did not see.
        targets: what came true there.
        coverage: the probability wanted.
        method: "quantile" for numbers and counts, "threshold" (default) or "adaptive" for classes.

    Returns:
        An object with `apply(predictive)`: ends (low, high), or sets as true and false [n, C].

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 80)[:, None]
        >>> y = x[:, 0] + 0.2 * np.random.default_rng(0).normal(size=80)
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(noise=0.05))
        >>> fit = credo.fit(jax.random.key(0), model, (x[::2], y[::2]), "map", steps=500)
        >>> held_out = credo.predict(jax.random.key(1), fit, x[1::2])
        >>> low, high = credo.recalibration.split_conformal(held_out, y[1::2]).apply(held_out)
        >>> bool(np.mean((low <= y[1::2]) & (y[1::2] <= high)) >= 0.9)
        True
    """
    checked_predictive(predictive)
    coverage = share(coverage, "Coverage")
    methods = ("threshold", "adaptive") if predictive.kind == "classes" else ("quantile",)
    method = methods[0] if method is None else method
    one_of(method, methods, f"method for {predictive.kind}")
    rows = len(predictive)
    bound_rank = rank(rows, coverage)
    note = (
        f"Recalibrated after the fact: split conformal ({method}) with {rows} calibration rows; on average over new "
        f"rows that are exchangeable with those, {coverage:.4g} or more are covered."
    )
    if predictive.kind == "classes":
        probs, labels = class_probs(predictive, targets, "split_conformal")
        scores = set_scores(probs, method)[np.arange(rows), labels]
        return ConformalSets(coverage, method, probs.shape[1], float(np.sort(scores)[bound_rank - 1]), rows, note)
    values = numbers(predictive, targets, "split_conformal")
    low, high = predictive.interval(coverage)
    margin = np.sort(np.maximum(low - values, values - high), axis=0)[bound_rank - 1]
    return ConformalIntervals(coverage, predictive.kind, np.asarray(margin), rows, note)


def rank(rows: int, coverage: float) -> int:
    """⌈(n + 1) · coverage⌉, the rank of the score that is the bound; refused where it exceeds n.

    Example:
        >>> from credo.evaluation.recalibration.conformal import rank
        >>> rank(99, 0.9)
        90
    """
    # (n + 1) · coverage may end a rounding error above a whole number
    bound_rank = max(1, math.ceil((rows + 1) * coverage - 1e-9))
    if bound_rank > rows:
        needed = math.ceil(coverage / (1 - coverage) - 1e-9)
        raise Refusal(
            f"{rows} calibration rows cannot promise a coverage of {coverage:g}: even the largest of their scores is "
            f"exceeded more often. Use at least {needed} rows, or a coverage of at most {rows / (rows + 1):.4g}."
        )
    return bound_rank
