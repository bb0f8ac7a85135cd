"""A fitted predictor for other places: as a program for JAX, or as numbers for NumPy alone."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credo.storage.export.portable.load import load as _load
    from credo.storage.export.write import export as export

    load_exported = _load

# Loaded when first used.
_NAMES = {"export": "write:export", "load_exported": "portable.load:load"}


def __getattr__(name: str) -> Any:
    from credo.registry import load

    if name not in _NAMES:
        raise AttributeError(f"module 'credo.storage.export' has no attribute {name!r}")
    return load(f"credo.storage.export.{_NAMES[name]}")
