"""One-line representations of objects, and small tables for notebooks: sizes, never the arrays."""

import dataclasses
from abc import ABC, abstractmethod
from html import escape
from typing import Any

import jax
import numpy as np

FEW = 4  # numbers that are shown themselves
MOST_LETTERS = 160  # of one value


def short(value: Any) -> str:
    """A value on one line: arrays by type and shape, trees of them by their sizes.

    Example:
        >>> short(np.zeros((4, 1000))), short({"w": np.zeros((3, 2)), "b": np.zeros(2)}), short(np.float32(0.5))
        ('float64[4, 1000]', '{2 arrays of 8 numbers}', '0.5')
    """
    if is_array(value):
        return _array(value)
    if isinstance(value, dict | list | tuple) and any(is_array(x) for x in jax.tree.leaves(value)):
        arrays = [x for x in jax.tree.leaves(value) if is_array(x)]
        numbers = sum(int(np.prod(x.shape)) for x in arrays)
        return f"{{{plural(len(arrays), 'array')} of {plural(numbers, 'number')}}}"
    text = repr(value)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def fields_in_short(item: Any) -> str:
    """The repr of a dataclass, with arrays by their shapes."""
    fields = (f"{f.name}={short(vars(item)[f.name])}" for f in dataclasses.fields(item) if f.repr)
    return f"{type(item).__qualname__}({', '.join(fields)})"


class Card(ABC):
    """An object that shows a few facts: `_facts` gives name → value, for one line and for a table."""

    @abstractmethod
    def _facts(self) -> dict[str, str]: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._facts().values())})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts())


def html_table(title: str, facts: dict[str, str]) -> str:
    """Facts as a small table for a notebook."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption>{rows}</table>"


def plural(count: int, what: str) -> str:
    """ "1 row", "1,200 rows"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def is_array(value: Any) -> bool:
    """Has it a shape and a dtype, whatever library it comes from?"""
    return isinstance(value, np.ndarray | np.generic | jax.Array) or (
        hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)
    )


def name_of(thing: Any) -> str:
    """The name of a function or class, and of the class of anything else."""
    return getattr(thing, "__name__", type(thing).__name__)


def _array(value: Any) -> str:
    concrete = not isinstance(value, jax.core.Tracer) and isinstance(value, np.ndarray | np.generic | jax.Array)
    if (
        concrete
        and jax.dtypes.issubdtype(value.dtype, np.number)
        and int(np.prod(value.shape)) <= FEW
        and value.ndim < 2
    ):
        return repr(np.asarray(value).tolist()) if value.ndim else f"{np.asarray(value).item():.6g}"
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
