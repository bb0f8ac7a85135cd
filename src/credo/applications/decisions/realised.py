"""What decisions were worth once the outcomes are known, beside acting on the point prediction."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from credo.applications.decisions.chosen import Decisions
from credo.core.short import fields_in_short
from credo.errors import InputError
from credo.evaluation.metrics.arrays import mean
from credo.evaluation.metrics.bootstrap import Interval, bootstrap


@dataclasses.dataclass(frozen=True)
class Realised:
    """Realised utility; see `score_decisions`. Intervals are over the rows, the fit held fixed.

    Attributes:
        utility: the mean utility of a row, with its interval.
        other: that of what it is compared with.
        difference: utility − other on the same rows, with its paired interval.
        expected: what the decisions themselves expected of a row, on average; far above `utility` says that the
            predictive distribution is too sure.
        rows: the utility of each row [n].
        against: what it is compared with, in words.
        level: probability of the intervals.
    """

    utility: Interval
    other: Interval
    difference: Interval
    expected: float
    rows: np.ndarray = dataclasses.field(repr=False)
    against: str = "the point prediction"
    level: float = 0.9

    __repr__ = fields_in_short

    def __str__(self) -> str:
        return "\n".join(
            [
                f"Realised utility of a row, with {self.level:.0%} bootstrap intervals:",
                f"  these decisions         {self.utility}   (expected {self.expected:.4g})",
                f"  {self.against:<22}  {self.other}",
                f"  gain                    {self.difference}",
            ]
        )


def score_decisions(
    decisions: Decisions,
    outcomes: Any,
    *,
    against: Decisions | None = None,
    key: jax.Array | None = None,
    level: float = 0.9,
    resamples: int = 1000,
) -> Realised:
    """Realised utility of decisions with a bootstrap interval, and the paired gain over acting on the point prediction.

    To act on the point prediction is to take the likeliest class, or the mean, for sure, and the best action for it:
    argmax_a u(a, ŷ). Both are scored by the same rows in every resample (Efron and Tibshirani, 1993).

    Args:
        decisions: what `credo.decide` gave.
        outcomes: what came true: class indices, or numbers [n].
        against: other decisions at the same rows to compare with, instead of the point prediction.
        key: a JAX key for the bootstrap; the same key gives the same interval.
        level: the probability of the intervals.
        resamples: how many.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.applications import score_decisions
        >>> x = np.linspace(-2, 2, 60)[:, None]
        >>> y = (x[:, 0] > 0).astype(int)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), "map", steps=300)
        >>> decisions = credo.decide(credo.predict(jax.random.key(1), fit, x), [[0, -20], [-1, 0]])
        >>> bool(decisions.plug_in.mean() < decisions.best.mean())
        True
        >>> score_decisions(decisions, y).utility.value < 0
        True
    """
    ours = decisions.realised(outcomes)
    if against is not None and len(against) != len(decisions):
        raise InputError(f"A comparison needs the same rows, got {len(decisions)} and {len(against)} decisions.")
    other = decisions.realised(outcomes, plug_in=True) if against is None else against.realised(outcomes)
    start = jax.random.key(0) if key is None else key
    first, second, gap = (
        bootstrap(mean, values, key=start, level=level, resamples=resamples) for values in (ours, other, ours - other)
    )
    words = "the point prediction" if against is None else "the other decisions"
    return Realised(first, second, gap, float(decisions.expected_utility.mean()), ours, words, level)
