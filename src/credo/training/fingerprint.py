"""A digest of all that decides a run's numbers: a checkpoint is only resumed by the run that wrote it."""

import dataclasses
import functools
import hashlib
import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.numeric import Mapped
from credo.core.tree import Held, field_values
from credo.core.typing import PyTree
from credo.renamed import first_name

WHOLE_BYTES = 2**28  # memory maps up to this size are read whole
SAMPLE_ROWS = 4096  # of larger ones


def fingerprint(
    config: dict[str, Any], method: Any, model: Any, start: PyTree, source: Any, left_out: np.ndarray | None = None
) -> str:
    """A digest of the settings, of every number of method, model and start, and of the data.

    Functions count by their names: two closures of one name with different values look the same.
    """
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for part in (method, model, start):
        _feed(digest, part)
    masks = [] if left_out is None else [left_out]
    for array in [*jax.tree.leaves(source.inputs), source.targets, source.weight, *masks]:
        _feed_array(digest, array)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        _feed_array(digest, value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed_name(digest, type(value))
        for name, part in field_values(value).items():
            digest.update(f".{name}=".encode())
            _feed(digest, part)
    elif isinstance(value, dict | list | tuple):
        pairs = sorted(value.items(), key=lambda p: str(p[0])) if isinstance(value, dict) else enumerate(value)
        digest.update(f"{type(value).__name__} of {len(value)}".encode())
        for index, part in pairs:
            digest.update(f"[{index}]=".encode())
            _feed(digest, part)
    elif value is None or isinstance(value, str | int | float | bool | complex):
        digest.update(f"{value!r};".encode())
    elif isinstance(value, Held):
        _feed(digest, ("held", value.value))
    elif isinstance(value, functools.partial):
        _feed(digest, (value.func, value.args, value.keywords))
    elif hasattr(value, "__qualname__"):
        _feed_name(digest, value)
    else:  # an object of another library: its name and, where it is a pytree, its leaves
        _feed_name(digest, type(value))
        leaves = jax.tree.leaves(value)
        if not any(leaf is value for leaf in leaves):
            _feed(digest, leaves)


def _feed_name(digest: Any, value: Any) -> None:
    # By the first name of its module: a checkpoint outlives the folders of the source.
    digest.update(f"{first_name(getattr(value, '__module__', None) or '')}.{value.__qualname__};".encode())


def _feed_array(digest: Any, array: Any) -> None:
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    digest.update(str((array.shape, array.dtype)).encode())
    file = array.filename if isinstance(array, np.memmap | Mapped) else None
    if file is not None and array.nbytes > WHOLE_BYTES:
        # Reading all of it would take as long as a fit; writing to the file changes its time.
        status = os.stat(file)
        digest.update(str((status.st_size, status.st_mtime_ns)).encode())
        array = array[np.unique(np.linspace(0, len(array) - 1, SAMPLE_ROWS).astype(int))]
    values = np.ascontiguousarray(np.asarray(array))
    digest.update(repr(values.tolist()).encode() if values.dtype.hasobject else values.reshape(-1).view(np.uint8))
