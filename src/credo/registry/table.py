"""A registry: rows by name. Builders are strings, so that reading a table imports none of them."""

import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from credo.errors import InputError


def load(address: str) -> Any:
    """What stands at "module:name"; the addresses are credo's own and never come from a file."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)


def lazy(package: str, addresses: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are loaded when first used.

    Args:
        package: its name.
        addresses: name → "module:name", modules below credo.
    """

    def get(name: str) -> Any:
        if name not in addresses:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load(f"credo.{addresses[name]}")

    return get, lambda: sorted(addresses)


@dataclass(frozen=True)
class Entry:
    """A row of a registry.

    Attributes:
        name: what users write.
        builder: "module:callable", a class or a function.
        summary: one sentence.
    """

    name: str
    builder: str
    summary: str

    def load(self) -> Any:
        """The builder itself."""
        return load(self.builder)


@dataclass(frozen=True)
class Part(Entry):
    """A row of a part of a model: a likelihood, a prior or a network.

    Attributes:
        makes: the class of what the builder gives, in the builder's module.
        example: how the command line names one.
    """

    makes: str
    example: str


R = TypeVar("R", bound=Entry)


class Table(dict[str, R], Generic[R]):
    """The rows of one kind by name, in the order in which they are listed."""

    def __init__(self, kind: str, rows: Iterable[R]):
        super().__init__({row.name: row for row in rows})
        self.kind = kind

    def find(self, name: str) -> R:
        """The row of this name, with a hint where there is none."""
        if name in self:
            return self[name]
        raise InputError(f"Unknown {self.kind} {name!r}.{did_you_mean(name, self)} There are {', '.join(self)}.")

    def row_of(self, item: Any) -> R | None:
        """The first row that makes objects of this one's class."""
        kind = type(item)
        for row in self.values():
            module, _, built = row.builder.partition(":")
            if (kind.__module__, kind.__name__) == (module, row.makes if isinstance(row, Part) else built):
                return row
        return None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ " Did you mean 'x'?" or nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""
