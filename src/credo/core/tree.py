"""Pytrees: structured dataclasses, string paths, glob selection and flat vectors.

Every credo object (model, prior, likelihood, method, posterior) is a frozen dataclass *and* a pytree: fields marked
with `leaf()` are traced numbers, arrays or further objects; all other fields are structure. Two objects of equal
structure share one compiled program, whatever their numbers are.
"""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.short import fields_in_short
from credo.core.typing import PyTree

Select = str | Sequence[str]
T = TypeVar("T")

STRUCTS: dict[str, type] = {}  # every class that may appear in a saved file, by name
FLAT_LIMIT = 200_000  # below this many numbers one flat vector is faster than a tree of small arrays


def leaf(default: Any = dataclasses.MISSING, *, must: Any = None, **options: Any) -> Any:
    """A dataclass field that is traced: a number, an array or another pytree; `must` is a rule of `core.checks`."""
    return dataclasses.field(default=default, metadata={"leaf": True, "must": must}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(leaf, dataclasses.field))
def struct(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree whose `leaf()` fields are children."""
    cls = dataclasses.dataclass(frozen=True, repr=False)(cls)
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = fields_in_short  # type: ignore[method-assign]
    names = {True: [], False: []}  # type: dict[bool, list[str]]
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        names[bool(field.metadata.get("leaf"))].append(field.name)
    data, meta = tuple(names[True]), tuple(names[False])
    keys = tuple(jax.tree_util.GetAttrKey(name) for name in data)

    def flatten(item: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values = vars(item)
        return tuple([values[name] for name in data]), (cls, *[values[name] for name in meta])

    def flatten_with_keys(item: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        children, structure = flatten(item)
        return tuple(zip(keys, children)), structure

    def unflatten(structure: tuple[Any, ...], children: Any) -> Any:
        return cls(**dict(zip(data, children)), **dict(zip(meta, structure[1:])))

    # The class is part of the structure. `register_dataclass` would do all this, but (JAX 0.10) calls the structures of
    # two classes equal where their fields are: one class could then get the other's compiled program.
    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    STRUCTS[cls.__name__] = cls
    return cls


def field_values(item: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are: `dataclasses.asdict` would convert nested ones, too."""
    return {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}


def path_string(path: Sequence[Any]) -> str:
    """A key path as `hidden_0/kernel`."""
    return jax.tree_util.keystr(tuple(path), simple=True, separator="/")


def by_paths(tree: PyTree) -> dict[str, Any]:
    """The arrays of a tree by their string paths, in flattening order; what is held (None) is left out."""
    return {path_string(path): x for path, x in jax.tree_util.tree_flatten_with_path(tree)[0]}


def paths(tree: PyTree) -> list[str]:
    """String paths of all leaves, in flattening order."""
    return list(by_paths(tree))


def with_paths(tree: PyTree, values: Mapping[str, Any]) -> PyTree:
    """The tree with the arrays at these paths replaced."""
    return jax.tree_util.tree_map_with_path(lambda path, x: values.get(path_string(path), x), tree)


def matches(path: str, select: Select) -> bool:
    """Does a glob of `select` match the path, with or without its leading `network/`?"""
    globs = [select] if isinstance(select, str) else select
    short = path.removeprefix("network/")
    return any(fnmatch.fnmatchcase(p, g) for g in globs for p in (path, short))


def selected(tree: PyTree, select: Select) -> PyTree:
    """A tree of booleans: which leaves do the globs of `select` match?"""
    return jax.tree_util.tree_map_with_path(lambda path, _: matches(path_string(path), select), tree)


def size(tree: PyTree) -> int:
    """How many numbers a tree holds."""
    return sum(int(np.prod(np.shape(x))) for x in jax.tree.leaves(tree))


def num_bytes(tree: PyTree) -> int:
    """How many bytes the arrays of a tree take."""
    return sum(int(np.prod(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def all_finite(tree: PyTree) -> jax.Array:
    """True when every floating number in the tree is finite."""
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]
    return jnp.array([jnp.isfinite(x).all() for x in floats], bool).all()


def take(tree: PyTree, index: Any) -> PyTree:
    """Index the leading axis of every leaf; leaves may be NumPy arrays and the index traced."""
    if isinstance(index, jax.core.Tracer) and index.ndim == 0:  # brackets take JAX twenty times as long to trace
        return jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, index, keepdims=False), tree)
    return jax.tree.map(lambda x: jnp.asarray(x)[index], tree)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a tree lies in one flat vector; above `FLAT_LIMIT` numbers it stays a tree, as copies would cost more."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    flat: bool

    @staticmethod
    def of(tree: PyTree, limit: int = FLAT_LIMIT) -> "Layout":
        """The layout of a tree of arrays (or of their shapes)."""
        leaves, treedef = jax.tree.flatten(tree)
        return Layout(treedef, tuple(tuple(x.shape) for x in leaves), size(tree) <= limit)

    def ravel(self, tree: PyTree) -> PyTree:
        """The tree as one vector (or as it is, when large)."""
        if not self.flat:
            return tree
        leaves = [jnp.ravel(x) for x in jax.tree.leaves(tree)]
        return jnp.concatenate(leaves) if leaves else jnp.zeros(0)

    def unravel(self, vector: PyTree) -> PyTree:
        """The inverse of `ravel`; its gradient is one concatenation."""
        if not self.flat:
            return vector
        if not self.shapes:
            return jax.tree.unflatten(self.treedef, [])
        sizes = [int(np.prod(s)) for s in self.shapes]
        parts = jax.lax.split(vector, sizes) if len(sizes) > 1 else [vector]
        return jax.tree.unflatten(self.treedef, [p.reshape(s) for p, s in zip(parts, self.shapes)])


class Held:
    """A library's structure as static data: equal values are one program, with or without a hash."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held):
            return NotImplemented
        if self.value is other.value:
            return True
        try:
            return bool(self.value == other.value)
        except (TypeError, ValueError):  # arrays inside: then only the same object is equal
            return False

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __repr__(self) -> str:
        return f"Held({type(self.value).__name__})"
