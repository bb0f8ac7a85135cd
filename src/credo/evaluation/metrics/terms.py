"""What a score is: terms of every row, computed once, and a function of those terms and of the weights of rows.

A bootstrap sample is another set of weights, so an interval never asks the network again.
"""

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.batch import bucket, pad_rows, pad_weights
from credo.core.numeric import host_floats
from credo.core.predictive import Predictive
from credo.errors import InputError


class Terms(NamedTuple):
    """A pure function of (arrays…, weights, **options) with its arrays, each of n rows."""

    function: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    options: tuple[tuple[str, Any], ...] = ()  # hashable, because the function is compiled for them


class Score:
    """A score of predictions: `score(predictive, targets, weights=None, **options)` is a number.

    Made by `@score` from a function that gives the `Terms`. `score.given(level=0.5)` is the same score with other
    options, for `with_interval` and `difference`.

    Example:
        >>> from credo.evaluation import metrics
        >>> metrics.coverage.given(level=0.5)
        coverage(level=0.5)
    """

    def __init__(self, function: Callable[..., Terms], **options: Any):
        self._function, self._options = function, options
        functools.update_wrapper(self, function)
        predictive, targets, *others = inspect.signature(function).parameters.values()
        weights = inspect.Parameter("weights", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
        self.__signature__ = inspect.Signature([predictive, targets, weights, *others])

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{self._function.__name__}({options})"

    def given(self, **options: Any) -> "Score":
        """The same score with these options."""
        return Score(self._function, **self._options | options)

    def terms(self, predictive: Predictive, targets: Any = None, **options: Any) -> Terms:
        """Everything that the score needs to know about each row."""
        return self._function(predictive, targets, **self._options | options)

    def __call__(self, predictive: Predictive, targets: Any = None, weights: Any = None, **options: Any) -> Any:
        terms = self.terms(predictive, targets, **options)
        return jax.tree.map(float, evaluate(terms, checked_weights(weights, len(predictive))))


def score(function: Callable[..., Terms]) -> Score:
    """Make a `Score` from a function of (predictive, targets, **options) that gives its `Terms`."""
    return Score(function)


def checked_weights(weights: Any, rows: int) -> np.ndarray:
    """Weights of rows as numbers [n]: 1 each where None, else finite, at least 0 and not all 0."""
    if weights is None:
        return np.ones(rows)
    array = host_floats(weights, "Weights")
    if array.shape != (rows,) or not (array >= 0).all() or not array.sum() > 0:
        raise InputError(f"Weights must be {rows} numbers of at least 0, not all 0.")
    return array


def evaluate(terms: Terms, weights: np.ndarray) -> Any:
    """The score in double precision, as NumPy numbers."""
    with jax.enable_x64(True):
        arrays, weights = padded(terms.arrays, weights)
        return jax.tree.map(np.asarray, _compiled(terms.function, terms.options, arrays, weights))


def padded(arrays: tuple[np.ndarray, ...], weights: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Arrays of doubles with more rows, of weight 0: tables of similar length share a program."""
    width = bucket(len(weights))
    longer = tuple(pad_rows(_double(array), width) for array in arrays)
    return longer, pad_weights(weights, width)


def _double(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind in "fb" else array


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(function: Callable[..., Any], options: Any, arrays: Any, weights: jax.Array) -> Any:
    return function(*arrays, weights, **dict(options))
