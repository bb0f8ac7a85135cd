"""Actions that are numbers: the best amount for every row, by a grid and golden sections."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from credo.applications.decisions.outcomes import Outcomes
from credo.applications.decisions.risk import Mean, Risk
from credo.applications.decisions.utilities import Amount
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal

GRID = 33
SECTIONS = 28  # golden sections: the bracket of two grid cells shrinks to 1e-6 of itself
RATIO = (5**0.5 - 1) / 2
EDGE = 0.001  # the range of amounts lies between these quantiles where no bounds are given


class BestAmounts(NamedTuple):
    """The best amounts of some rows."""

    amounts: np.ndarray  # [n]
    utility: np.ndarray  # u(amount, y) at the outcomes [K, n, J]
    most: np.ndarray  # the largest E[u|a, θ_k] over the grid and the best amount [K, n]
    top: np.ndarray  # the largest E[u|a] over the same amounts [n]
    ideal: np.ndarray  # max over amounts of u(a, y) at the outcomes


def amount_range(predictive: Predictive, utility: Amount) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest amount to look at, for each row."""
    count = len(predictive)
    if utility.bounds is not None:
        return np.full(count, utility.bounds[0]), np.full(count, utility.bounds[1])
    if predictive.kind == "classes":
        raise InputError("Amounts for classes need bounds=(low, high): classes have no range of their own.")
    low, high = (predictive.quantile(q).reshape(count).astype(np.float64) for q in (EDGE, 1 - EDGE))
    return low, np.maximum(high, low + 1e-9 * (1 + np.abs(low)))


def exact_amounts(predictive: Predictive, utility: Amount, risk: Risk) -> np.ndarray | None:
    """The best amounts where a formula has them: quantiles, for expected utility."""
    if utility.level is None:
        return None
    if predictive.kind == "classes":
        raise Refusal(
            "The best amount of this utility is a quantile, and classes have no order; use numbers or counts."
        )
    if not isinstance(risk, Mean):
        return None
    amounts = predictive.quantile(utility.level).reshape(len(predictive)).astype(np.float64)
    return amounts if utility.bounds is None else np.clip(amounts, *utility.bounds)


def criterion(outcomes: Outcomes, utility: np.ndarray, risk: Risk, over: str) -> np.ndarray:
    """The value of a lottery for each row [n]: of utilities over all outcomes, or of E[u|θ] over draws alone.

    Args:
        outcomes: of these rows.
        utility: u at the outcomes.
        risk: the criterion.
        over: "outcomes" or "parameters".
    """
    if isinstance(risk, Mean):
        return np.asarray(outcomes.weights @ outcomes.mean(utility))
    if over == "parameters":
        return risk.value(outcomes.mean(utility).T, outcomes.weights)
    return risk.value(*outcomes.flat(utility))


def best_amounts(
    utility: Amount, outcomes: Outcomes, ends: tuple[np.ndarray, np.ndarray], exact: Any, risk: Risk, over: str
) -> BestAmounts:
    """The best amount of each row: the best of a grid, then golden sections around it, unless a formula has it.

    Args:
        utility: of amounts.
        outcomes: of these rows.
        ends: the smallest and the largest amount of each row.
        exact: the best amounts from `exact_amounts`, or None.
        risk, over: the criterion.
    """

    def at(amounts: np.ndarray) -> np.ndarray:
        return utility.of(amounts[None, :, None], outcomes.values, outcomes.mass)

    def value(amounts: np.ndarray) -> np.ndarray:
        return criterion(outcomes, at(amounts), risk, over)

    low, high = ends
    grid = [low + (high - low) * i / (GRID - 1) for i in range(GRID)]
    most, ideal, values = np.full(outcomes.mass.shape[:2], -np.inf), np.array(-np.inf), []
    top = np.full(len(low), -np.inf)
    for amounts in grid:
        worth = at(amounts)
        by_draw = outcomes.mean(worth)
        most, top = np.maximum(most, by_draw), np.maximum(top, outcomes.weights @ by_draw)
        if utility.ideal is None:
            ideal = np.maximum(ideal, worth)
        if exact is None:
            values.append(criterion(outcomes, worth, risk, over))
    best = _refine(value, low, high, np.stack(values), np.stack(grid)) if exact is None else exact
    worth = at(best)
    by_draw = outcomes.mean(worth)
    most, top = np.maximum(most, by_draw), np.maximum(top, outcomes.weights @ by_draw)
    full = utility.ideal(outcomes.values) if utility.ideal is not None else np.maximum(ideal, worth)
    return BestAmounts(best, worth, most, top, np.asarray(full, np.float64))


def _refine(
    value: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, values: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Golden sections in the two cells around the best point of the grid (Kiefer, 1953), all rows at once."""
    index = values.argmax(0)
    start = np.take_along_axis(grid, index[None], 0)[0]
    cell = (high - low) / (GRID - 1)
    a, b = np.maximum(start - cell, low), np.minimum(start + cell, high)
    c, d = b - RATIO * (b - a), a + RATIO * (b - a)
    at_c, at_d = value(c), value(d)
    for _ in range(SECTIONS):
        left = at_c >= at_d
        a, b = np.where(left, a, c), np.where(left, d, b)
        new = np.where(left, b - RATIO * (b - a), a + RATIO * (b - a))
        at_new = value(new)
        c, d = np.where(left, new, d), np.where(left, c, new)
        at_c, at_d = np.where(left, at_new, at_d), np.where(left, at_c, at_new)
    middle = np.where(at_c >= at_d, c, d)
    # The grid's own point stays where the utility is flat or has its best value at a corner.
    return np.where(np.maximum(at_c, at_d) > values.max(0), middle, start)
