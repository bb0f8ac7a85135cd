"""What one setting may be: a number in a range, a whole number, or one of some choices."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.errors import InputError

FINEST = 1e-12  # share of a range's ends that its width must be more than: fewer numbers are no range
MOST_WHOLE = 2**50  # whole numbers that keep halves apart in double precision
EDGE = 1e-9  # share of a range by which rounding may carry a number over its end


@dataclasses.dataclass(frozen=True)
class Float:
    """A number in [low, high]; with `log` its logarithm is what steps are equal in.

    Example:
        >>> import credo
        >>> rate = credo.applications.optimise.Float(1e-4, 1.0, log=True)
        >>> round(rate.decode(np.array([0.5])), 6)
        0.01
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log, "Float")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        low, high = self._ends
        if not FINEST * (1.0 if self.log else max(abs(low), abs(high))) < high - low < math.inf:
            raise InputError(
                f"The range of a Float has a width that double precision can divide, got {self.low!r} to {self.high!r}."
            )

    columns = 1

    @property
    def count(self) -> int | None:
        """None: as many as there are numbers."""
        return None

    @property
    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    def checked(self, value: Any) -> float:
        """The value as a number of the range, or a sentence."""
        number = _number(value)
        slack = EDGE * (self.high - self.low)
        if number is None or not self.low - slack <= number <= self.high + slack:
            raise InputError(f"a number between {self.low:g} and {self.high:g} is wanted, got {value!r}")
        return min(max(number, self.low), self.high)

    def code(self, value: float) -> np.ndarray:
        """The position in [0, 1], [1]."""
        low, high = self._ends
        return np.array([((math.log(value) if self.log else value) - low) / (high - low)])

    def decode(self, unit: np.ndarray) -> float:
        """The value at a position."""
        low, high = self._ends
        value = low + float(np.clip(unit[0], 0, 1)) * (high - low)
        return min(max(math.exp(value) if self.log else value, self.low), self.high)


@dataclasses.dataclass(frozen=True)
class Int:
    """A whole number from low to high, both included. Each has a share of [0, 1] of its own.

    Example:
        >>> import credo
        >>> units = credo.applications.optimise.Int(1, 4)
        >>> [units.decode(np.array([u])) for u in (0.0, 0.3, 0.6, 1.0)]
        [1, 2, 3, 4]
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or _number(end) is None or float(end) != int(end) or abs(end) > MOST_WHOLE:
                raise InputError(
                    f"The ends of an Int are whole numbers of at most {MOST_WHOLE}, got {self.low!r} and {self.high!r}."
                )
        _check_range(self.low, self.high, self.log, "Int")
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))

    columns = 1

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = self.low - 0.5, self.high + 0.5
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def checked(self, value: Any) -> int:
        """The value as a whole number of the range, or a sentence."""
        number = _number(value)
        if number is None or number != round(number) or not self.low <= number <= self.high:
            raise InputError(f"a whole number from {self.low} to {self.high} is wanted, got {value!r}")
        return round(number)

    def code(self, value: int) -> np.ndarray:
        """The position in [0, 1], [1]."""
        low, high = self._ends
        return np.array([((math.log(value) if self.log else value) - low) / (high - low)])

    def decode(self, unit: np.ndarray) -> int:
        """The value whose share of [0, 1] holds a position."""
        low, high = self._ends
        value = low + float(np.clip(unit[0], 0, 1)) * (high - low)
        return int(min(max(round(math.exp(value) if self.log else value), self.low), self.high))


@dataclasses.dataclass(frozen=True)
class Category:
    """One of some choices: texts, numbers, true or false. Coded by one column for each.

    Example:
        >>> import credo
        >>> credo.applications.optimise.Category(["sgd", "adam"]).code("adam").tolist()
        [0.0, 1.0]
    """

    choices: Sequence[Any]

    def __post_init__(self) -> None:
        choices = self.choices
        if isinstance(choices, str) or not isinstance(choices, Sequence) or len(choices) < 2:
            raise InputError(f"A Category has a list of at least two choices, got {choices!r}.")
        for choice in choices:
            if not isinstance(choice, str | bool | int | float):
                raise InputError(f"A choice is a text, a number, true or false, got {choice!r}.")
        if len({(type(c).__name__, c) for c in choices}) < len(choices):
            raise InputError(f"The choices of a Category differ from each other, got {list(choices)}.")
        object.__setattr__(self, "choices", tuple(choices))

    @property
    def columns(self) -> int:
        """One for each choice."""
        return len(self.choices)

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.choices)

    def checked(self, value: Any) -> Any:
        """The choice, or a sentence."""
        for choice in self.choices:
            if choice == value and isinstance(choice, bool) == isinstance(value, bool):
                return choice
        raise InputError(f"one of {', '.join(map(repr, self.choices))} is wanted, got {value!r}")

    def code(self, value: Any) -> np.ndarray:
        """1 in the choice's column, 0 in the others."""
        return np.array([float(choice is value or choice == value) for choice in self.choices])

    def decode(self, unit: np.ndarray) -> Any:
        """The choice with the largest number."""
        return self.choices[int(np.argmax(unit))]


Dimension = Float | Int | Category
KINDS: dict[str, Any] = {"float": Float, "int": Int, "categorical": Category}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _check_range(low: Any, high: Any, log: Any, kind: str) -> None:
    ends = _number(low), _number(high)
    if ends[0] is None or ends[1] is None or not ends[0] < ends[1]:
        raise InputError(f"The range of a {kind} goes from a number to a larger one, got {low!r} and {high!r}.")
    if not isinstance(log, bool):
        raise InputError(f"log is true or false, got {log!r}.")
    if log and not ends[0] > 0:
        raise InputError(f"A {kind} with log=True has a positive lower end, got {low!r}.")


def to_plain(dimension: Dimension) -> dict[str, Any]:
    """The dimension as plain data."""
    if isinstance(dimension, Category):
        return {"type": "categorical", "choices": list(dimension.choices)}
    kind = "int" if isinstance(dimension, Int) else "float"
    return {"type": kind, "low": dimension.low, "high": dimension.high, "log": dimension.log}


def from_plain(name: str, data: Any) -> Dimension:
    """A dimension from plain data, as in a TOML file; a sentence where it says something else."""
    if not isinstance(data, dict):
        raise InputError(f'"{name}" is a table with a type and a range, such as type = "float", low = 0, high = 1.')
    fields = dict(data)
    kind = fields.pop("type", "categorical" if "choices" in fields else "float")
    if kind not in KINDS:
        raise InputError(f'The type of "{name}" is one of {", ".join(KINDS)}, got {kind!r}.')
    expected = {"choices"} if kind == "categorical" else {"low", "high", "log"}
    extra, missing = sorted(fields.keys() - expected), sorted(expected - {"log"} - fields.keys())
    if extra or missing:
        words = f"no {missing[0]!r}" if missing else f"{extra[0]!r}, which a {kind} does not have"
        raise InputError(f'"{name}" has {words}; a {kind} takes {", ".join(sorted(expected))}.')
    try:
        return KINDS[kind](**fields)
    except InputError as error:
        raise InputError(f'"{name}": {error}') from error


def is_log(dimension: Any) -> bool:
    """Are steps of this dimension equal in the logarithm?"""
    return isinstance(dimension, Float | Int) and dimension.log
