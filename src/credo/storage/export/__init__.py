"""A fitted predictor for other places: as a program for JAX, or as numbers for NumPy alone."""

from typing import TYPE_CHECKING

from credo.registry import lazy

if TYPE_CHECKING:
    from credo.storage.export.portable.load import load as _load
    from credo.storage.export.write import export as export

    load_exported = _load

# Loaded when first used.
__getattr__, __dir__ = lazy(
    __name__, {"export": "storage.export.write:export", "load_exported": "storage.export.portable.load:load"}
)
