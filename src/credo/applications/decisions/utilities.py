"""What an action is worth once the outcome is known: tables for classes, steps and functions for numbers, amounts."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from credo.core.checks import finite, names_of, positive, share
from credo.errors import InputError

NEGLIGIBLE = 1e-12  # probability below which an outcome without a utility does not count
ABSTAIN = "abstain"


@dataclasses.dataclass(frozen=True)
class NamedActions:
    """Some named actions, and the utility of each at outcomes.

    Attributes:
        actions: their names; ties go to the first.
        functions: u(y) of each, for arrays of outcomes.
        breaks: outcomes at which a utility jumps or bends.
        classes: names of the classes, where outcomes are named classes.
        num_classes: how many there are; None where outcomes are numbers or functions take any.
    """

    actions: tuple[str, ...]
    functions: tuple[Callable[[np.ndarray], Any], ...]
    breaks: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()
    num_classes: int | None = None

    def __post_init__(self) -> None:
        if not self.actions:
            raise InputError("There are no actions; name at least one.")
        if len(set(self.actions)) < len(self.actions):
            raise InputError("Two actions have the same name; give each its own.")

    def of(self, action: int, outcomes: np.ndarray, mass: np.ndarray | None = None) -> np.ndarray:
        """u(action, y), in the shape of the outcomes; refuses what is not a number where y has probability."""
        return evaluate(self.functions[action], outcomes, mass, f"of the action '{self.actions[action]}'")


@dataclasses.dataclass(frozen=True)
class Amount:
    """An action that is a number: u(amount, y), of which the best amount is found.

    Attributes:
        function: u(amount, y) for arrays.
        bounds: the amounts that are allowed; None takes the range of the predictions (their 0.1 % and 99.9 %
            quantiles).
        level: the best amount is this quantile of y, where the utility is such.
        ideal: max over amounts of u(amount, y), where there is a formula.
        name: of the action.
    """

    function: Callable[[Any, np.ndarray], Any]
    bounds: tuple[float, float] | None = None
    level: float | None = None
    ideal: Callable[[np.ndarray], Any] | None = None
    name: str = "act"

    def of(self, amount: Any, outcomes: np.ndarray, mass: np.ndarray | None = None) -> np.ndarray:
        """u(amount, y), in the shape of the outcomes."""
        return evaluate(lambda y: self.function(amount, y), outcomes, mass, "of an amount")


Utility = NamedActions | Amount


def evaluate(
    function: Callable[[np.ndarray], Any], outcomes: np.ndarray, mass: np.ndarray | None, whose: str
) -> np.ndarray:
    """A utility at outcomes as numbers of double precision, or a sentence.

    Args:
        function: u(y).
        outcomes: y.
        mass: their probabilities; None where all count.
        whose: in words, for the sentence.
    """
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(outcomes), np.float64)
            values = np.broadcast_to(values, np.broadcast_shapes(values.shape, outcomes.shape))
    except InputError:
        raise
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(
            f"The utility {whose} must take an array of outcomes and give a number for each ({error}); use NumPy "
            "functions such as np.where, not if."
        ) from error
    bad = ~np.isfinite(values)
    if bad.any():
        counted = bad if mass is None else bad & (mass > NEGLIGIBLE)
        if counted.any():
            at = float(np.broadcast_to(outcomes, counted.shape)[counted][0])
            raise InputError(
                f"The utility {whose} is not finite at the outcome {at:.6g}, which has probability; define it there."
            )
        values = np.where(bad, 0.0, values)
    return values


def class_utility(values: Any, actions: Sequence[Any] | None = None, classes: Sequence[Any] = ()) -> NamedActions:
    """Utilities of actions for classes: values[a, c] is that of action a where class c comes true.

    Args:
        values: array [actions, classes], or a pandas table with actions as its index and classes as its columns.
        actions: their names; None numbers them.
        classes: names of the classes, in the order of the columns.

    Example:
        >>> from credo.applications import class_utility
        >>> u = class_utility([[0, -20], [-1, 0]], ["wait", "treat"], ["well", "ill"])
        >>> u.of(0, np.array([0, 1])).tolist()
        [0.0, -20.0]
    """
    if isinstance(values, pd.DataFrame):
        actions = list(values.index) if actions is None else actions
        classes = list(values.columns) if len(classes) == 0 else classes
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("Utilities must be numbers; correct the table.") from error
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"A table of utilities has shape [actions, classes], got {list(array.shape)}.")
    if not np.isfinite(array).all():
        a, c = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"The utility of action {a + 1} for class {c + 1} is {array[a, c]}; give a finite number.")
    names = [f"action {i + 1}" for i in range(len(array))] if actions is None else names_of(actions, "actions")
    if len(names) != len(array):
        raise InputError(f"There are {len(array)} rows of utilities but {len(names)} actions; name each row.")
    if len(classes) not in (0, array.shape[1]):
        raise InputError(f"There are {array.shape[1]} columns of utilities but {len(classes)} classes.")

    def row(i: int) -> Callable[[np.ndarray], Any]:
        return lambda y: array[i][np.asarray(y).astype(int)]

    labels = tuple(str(name) for name in classes)
    return NamedActions(tuple(names), tuple(map(row, range(len(array)))), classes=labels, num_classes=array.shape[1])


def step_utility(rows: Mapping[str, tuple[float, float, float]]) -> NamedActions:
    """Actions whose utility for a number jumps once: u(a, y) = below where y < threshold, above where y ≥ threshold.

    Args:
        rows: action → (threshold, utility below, utility above).

    Example:
        >>> from credo.applications import step_utility
        >>> u = step_utility({"wait": (150, 0, -10), "treat": (150, -1, -1)})
        >>> u.of(0, np.array([100.0, 150.0])).tolist()
        [0.0, -10.0]
    """
    functions, breaks = [], set()
    for name, row in rows.items():
        try:
            threshold, below, above = (finite(x, "a number") for x in row)
        except (TypeError, ValueError) as error:
            raise InputError(f"Threshold and utilities of the action '{name}' must be finite numbers.") from error
        functions.append(partial(_step, threshold=threshold, below=below, above=above))
        breaks.add(threshold)
    return NamedActions(tuple(str(name) for name in rows), tuple(functions), tuple(sorted(breaks)))


def _step(y: np.ndarray, threshold: float, below: float, above: float) -> np.ndarray:
    return np.where(y < threshold, below, above)


def newsvendor(under: float, over: float, bounds: tuple[float, float] | None = None) -> Amount:
    """How much to order: each unit too few costs `under`, each too many `over`.

    u(a, y) = −under (y − a)⁺ − over (a − y)⁺; the best order is the quantile of y at level under/(under + over)
    (Arrow, Harris and Marschak, 1951, Optimal inventory policy).

    Args:
        under, over: costs of a unit, positive.
        bounds: orders that are allowed; None allows all.

    Example:
        >>> from credo.applications import newsvendor
        >>> newsvendor(under=3.0, over=1.0).level
        0.75
    """
    under, over = positive(under, "The cost of too few"), positive(over, "The cost of too many")

    def cost(a: Any, y: np.ndarray) -> np.ndarray:
        gap = y - a
        return over * gap - (under + over) * np.maximum(gap, 0.0)

    def ideal(y: np.ndarray) -> np.ndarray:
        return np.zeros_like(y) if bounds is None else cost(np.clip(y, *bounds), y)

    return Amount(cost, check_bounds(bounds), under / (under + over), ideal, "order")


def pinball(level: float) -> Amount:
    """To name a quantile: u(a, y) = −level (y − a)⁺ − (1 − level)(a − y)⁺ (Koenker and Bassett, 1978).

    Args:
        level: between 0 and 1; 0.5 is half the absolute error.

    Example:
        >>> from credo.applications import pinball
        >>> round(pinball(0.9).level, 12)
        0.9
    """
    level = share(level, "A quantile level")
    return dataclasses.replace(newsvendor(level, 1 - level), name="name")


def check_bounds(bounds: Any) -> tuple[float, float] | None:
    """Two finite numbers in order, or None."""
    if bounds is None:
        return None
    words = "bounds are the smallest and the largest amount, finite and in order"
    try:
        low, high = (finite(x, "an amount") for x in bounds)
    except (TypeError, ValueError) as error:
        raise InputError(f"{words}.") from error
    if not low < high:
        raise InputError(f"{words}, got {low:g}, {high:g}.")
    return low, high


def as_utility(utility: Any, actions: Any = None, classes: Sequence[Any] = (), bounds: Any = None) -> Utility:
    """A utility from what a user gave; see `credo.decide`."""
    if isinstance(utility, NamedActions | Amount):
        return utility
    if isinstance(utility, Mapping):
        if not all(callable(f) for f in utility.values()):
            raise InputError("A dictionary of utilities maps each action to a function of the outcome.")
        return NamedActions(tuple(str(name) for name in utility), tuple(utility.values()))
    if not callable(utility):
        return class_utility(utility, actions, classes)
    if actions is None and bounds is None:
        raise InputError("A function u(action, outcome) needs actions=[…], or bounds=(low, high) for an amount.")
    if actions is None:
        return Amount(utility, check_bounds(bounds))
    names_of(actions, "actions")
    return NamedActions(tuple(str(a) for a in actions), tuple(partial(utility, a) for a in actions))


def with_abstain(utility: NamedActions, cost: float, right: float | None = None) -> NamedActions:
    """The same actions and "abstain": to hand the row to somebody else.

    u = −cost; where `right` is given, the other then takes the best action with that probability and the worst one
    otherwise: u(y) = −cost + right · max_a u(a, y) + (1 − right) · min_a u(a, y).

    Args:
        utility: the actions.
        cost: of abstaining.
        right: the chance that the other is right.
    """
    check_abstain(cost, right)

    def deferred(y: np.ndarray) -> Any:
        if right is None:
            return -float(cost)
        each = np.stack([utility.of(i, y) for i in range(len(utility.actions))])
        return -cost + right * each.max(0) + (1 - right) * each.min(0)

    return dataclasses.replace(
        utility, actions=(*utility.actions, ABSTAIN), functions=(*utility.functions, deferred)
    )  # fmt: skip


def check_abstain(cost: float, right: float | None) -> None:
    """Refuse a cost that is not finite and a chance that is none."""
    finite(cost, "The cost of abstaining")
    if right is not None and not 0 <= finite(right, "The chance that the other is right") <= 1:
        raise InputError(f"The chance that the other is right lies between 0 and 1, got {right:g}.")
