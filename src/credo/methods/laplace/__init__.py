"""Gaussians from the curvature at a mode, and the exact last layer."""

from typing import TYPE_CHECKING

from credo.registry import lazy

if TYPE_CHECKING:
    from credo.methods.laplace.laplace import Laplace as Laplace
    from credo.methods.laplace.last_layer import LastLayer as LastLayer

# Loaded when first used: the curvature below serves other methods, too.
__getattr__, __dir__ = lazy(
    __name__, {"Laplace": "methods.laplace.laplace:Laplace", "LastLayer": "methods.laplace.last_layer:LastLayer"}
)
