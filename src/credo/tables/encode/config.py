"""Settings of encoders as plain JSON: written from frozen dataclasses and checked when read back."""

from __future__ import annotations

import dataclasses
import math
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from credo.errors import ArtifactError

T = TypeVar("T")
LATER = "added later"


def to_plain(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, with its `kind`, as plain JSON types."""
    return {"kind": item.kind} | {f.name: to_setting(vars(item)[f.name]) for f in dataclasses.fields(item)}


def to_setting(value: Any) -> Any:
    """A setting as JSON holds it."""
    return list(value) if isinstance(value, tuple) else value


def added(default: Any) -> Any:
    """A field that runs of earlier versions did not save: where it is absent, it is the default."""
    return dataclasses.field(default=default, metadata={LATER: True})


def from_plain(cls: type[T], config: Any, what: str = "encoder") -> T:
    """Build a dataclass from what `to_plain` wrote, checking every name and type."""
    if isinstance(config, dict):
        fields = [field for field in dataclasses.fields(cls) if field.metadata.get(LATER)]  # type: ignore[arg-type]
        config = {field.name: to_setting(field.default) for field in fields} | config
    check_names(config, ["kind", *(field.name for field in dataclasses.fields(cls))], what)  # type: ignore[arg-type]
    hints = get_type_hints(cls)
    values = {
        field.name: checked(config[field.name], hints[field.name], f"{what} setting '{field.name}'")
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
    }
    try:
        return cls(**values)
    except ValueError as error:
        raise ArtifactError(f"The saved encoder is damaged: {what} {error}; fit again.") from error


def from_kinds(kinds: dict[str, type[T]], config: Any, what: str) -> T:
    """Build the one dataclass among `kinds` that the saved `kind` names."""
    kind = config.get("kind") if isinstance(config, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ArtifactError(f"The saved encoder is damaged: {what} has the unknown kind {kind!r}; fit again.")
    return from_plain(kinds[kind], config, kind)


def check_names(config: Any, names: list[str], what: str) -> None:
    """Raise `ArtifactError` unless `config` is a dict with exactly these names."""
    if not isinstance(config, dict):
        raise ArtifactError(f"The saved encoder is damaged: {what} is not a group of settings; fit again.")
    odd = sorted(map(str, set(config) ^ set(names)))
    if odd:
        state = "lacks" if odd[0] in names else "has the unknown"
        raise ArtifactError(f"The saved encoder is damaged: {what} {state} setting '{odd[0]}'; fit again.")


def checked(value: Any, hint: Any, what: str) -> Any:
    """Return `value` as the type that `hint` asks for, or raise `ArtifactError`."""
    origin = get_origin(hint)
    if origin is tuple and isinstance(value, list):
        return tuple(checked(item, get_args(hint)[0], what) for item in value)
    if origin in (Union, UnionType):
        choices = get_args(hint)
        # The exact type goes first: True is also an int, and 1 is also a float.
        exact = [choice for choice in choices if type(value) is choice]
        loose = [choice for choice in choices if choice is float and type(value) is int]
        if exact or loose:
            return checked(value, (exact or loose)[0], what)
    elif hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    elif hint in (str, int, bool, NoneType) and type(value) is hint:
        return value
    raise ArtifactError(f"The saved encoder is damaged: {what} is {value!r:.80}; fit again.")
