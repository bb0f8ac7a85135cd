"""Names of types that the whole library shares."""

from typing import Any

PyTree = Any  # a nest of arrays: dicts, tuples and registered classes, as `jax.tree` sees them
