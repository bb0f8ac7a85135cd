"""Gaussians from the curvature at a mode, and the exact last layer."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credo.methods.laplace.laplace import Laplace as Laplace
    from credo.methods.laplace.last_layer import LastLayer as LastLayer

# Loaded when first used: the curvature below serves other methods, too.
_NAMES = {"Laplace": "laplace", "LastLayer": "last_layer"}


def __getattr__(name: str) -> Any:
    from credo.registry import load

    if name not in _NAMES:
        raise AttributeError(f"module 'credo.methods.laplace' has no attribute {name!r}")
    return load(f"credo.methods.laplace.{_NAMES[name]}:{name}")
