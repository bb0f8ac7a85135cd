"""Names of types that the whole library shares.

A shape is an `Annotated` array: a type checker sees the array, a reader its axes, and tests check them at every call
(`tests/support/shapes.py`), by jaxtyping, in whose words they are written.
"""

from typing import Annotated, Any

import jax

PyTree = Any  # a nest of arrays: dicts, tuples and registered classes, as `jax.tree` sees them

Scalar = Annotated[jax.Array, ""]
PerRow = Annotated[jax.Array, "n"]  # one number for each row
Outputs = Annotated[jax.Array, "n out"]  # f(x), or parameters of a distribution of it
Targets = Annotated[jax.Array, "n *k"]  # y: [n] for classes, [n, k] for numbers and counts
Entries = Annotated[jax.Array, "n k"]  # a number for each entry of y, or for each class
Blocks = Annotated[jax.Array, "n out out"]  # a matrix over the outputs for each row
