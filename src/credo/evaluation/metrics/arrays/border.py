"""Arguments of the pure functions on their way to JAX: numbers that it holds, in shapes that belong together."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from credo.core.checks import share, whole_number
from credo.core.numeric import operand
from credo.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")
REST = "..."  # axes of any number, the same for all arrays that have them
ANY = "any"  # shape


def of_arrays(**shapes: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The function with its arrays checked, by their names; a letter stands for one length, "..." for further axes.

    Lists and arrays of NumPy become what JAX holds, and integers of 64 bits do not wrap. Types and shapes are looked at
    while a program is traced, too; weights and labels where there are numbers.

    Example:
        >>> @of_arrays(values="n ...", weights="n")
        ... def total(values, weights=None):
        ...     return values.sum()
        >>> total([[1.0, 2.0]], [1.0, 1.0])
        Traceback (most recent call last):
        ...
        credo.errors.InputError: total takes values [n, ...] and weights [n], got [1, 2] and [2].
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                if name in shapes and (value is not None or signature.parameters[name].default is not None):
                    bound.arguments[name] = operand(value, name.capitalize())
                elif name in SETTINGS and not isinstance(value, jax.core.Tracer):
                    SETTINGS[name](value)
            arrays = {name: bound.arguments[name] for name in shapes if bound.arguments.get(name) is not None}
            _check_shapes(function.__name__, arrays, shapes)
            _check_numbers(arrays, shapes)
            return function(*bound.args, **bound.kwargs)

        return run

    return checked


def _check_shapes(name: str, arrays: Mapping[str, Any], shapes: Mapping[str, str]) -> None:
    """A sentence where lengths that have one letter differ, or one of them is 0."""
    lengths: dict[str, Any] = {}
    if all(_fits(np.shape(array), shapes[word].split(), lengths) for word, array in arrays.items()):
        return
    taken = _listed([f"{word} [{', '.join(shapes[word].split())}]" for word in arrays])
    got = _listed([str(list(np.shape(array))) for array in arrays.values()])
    raise InputError(f"{name} takes {taken}, got {got}.")


def _fits(shape: tuple[int, ...], axes: list[str], lengths: dict[str, Any]) -> bool:
    named = [axis for axis in axes if axis != REST]
    if axes == [ANY] or (not shape and axes == [REST]):  # one number for all
        return True
    if len(shape) < len(named) or (REST not in axes and len(shape) > len(named)) or 0 in shape:
        return False
    found = dict(zip(named, shape)) | ({REST: shape[len(named) :]} if REST in axes else {})
    return all(lengths.setdefault(axis, length) == length for axis, length in found.items())


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _check_numbers(arrays: Mapping[str, Any], shapes: Mapping[str, str]) -> None:
    """Weights that are negative, and labels that are no classes; traced ones have no numbers yet."""
    known = {name: x for name, x in arrays.items() if not isinstance(x, jax.core.Tracer)}
    if "weights" in known:
        weights = np.asarray(known["weights"])
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise InputError("Weights must be finite numbers of at least 0, not all 0.")
    if "labels" in known:
        several = shapes.get("probs") == "n c"
        classes = np.shape(arrays["probs"])[1] if several else 2
        if not np.isin(np.asarray(known["labels"]), np.arange(classes)).all():
            words = f"class indices from 0 to {classes - 1}" if several else "1 (true) for positive rows, 0 for others"
            raise InputError(f"Labels must be {words}.")


def _part(value: Any, name: str) -> None:
    """A share that may be all; none may be a false-positive rate alone."""
    if not (type(value) in (int, float) and (value == 1 or (value == 0 and name == "max_fpr"))):
        share(value, name)


SETTINGS: dict[str, Callable[[Any], Any]] = {
    "bins": lambda value: whole_number(value, "bins"),
    "cells": lambda value: whole_number(value, "cells", 2),
    "level": lambda value: share(value, "level"),
    "share": lambda value: _part(value, "share"),
    "max_fpr": lambda value: _part(value, "max_fpr"),
}
