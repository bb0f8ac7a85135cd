"""Coresets: the few rows of a task that are kept, at random or spread out."""

import jax
import numpy as np

from credo.core.numeric import host_arrays
from credo.core.typing import PyTree
from credo.errors import InputError

KINDS = ("random", "k_centre")


def random_rows(key: jax.Array, inputs: PyTree, size: int) -> np.ndarray:
    """`size` row numbers, drawn without replacement.

    Example:
        >>> import jax, numpy as np, credo
        >>> credo.continual.random_rows(jax.random.key(0), np.zeros((10, 2)), 3).shape
        (3,)
    """
    total = _check_size(inputs, size)
    return np.asarray(jax.random.permutation(key, total)[:size])


def k_centre(key: jax.Array, inputs: PyTree, size: int) -> np.ndarray:
    """`size` row numbers by the greedy rule for k centres: always the row that is farthest from those taken before.

    No row is then farther from its nearest centre than twice what the best choice of centres reaches. The first row is
    drawn at random. Gonzalez (1985), Clustering to minimize the maximum intercluster distance.

    Example:
        >>> import jax, numpy as np, credo
        >>> rows = np.array([[0.0], [0.1], [5.0], [5.1], [9.0]])
        >>> sorted(rows[credo.continual.k_centre(jax.random.key(0), rows, 3)][:, 0].round().tolist())
        [0.0, 5.0, 9.0]
    """
    inputs = host_arrays(inputs)
    total = _check_size(inputs, size)
    flat = np.concatenate([np.asarray(x).astype(np.float32).reshape(total, -1) for x in jax.tree.leaves(inputs)], 1)
    squares = np.einsum("ij,ij->i", flat, flat)
    chosen = [int(jax.random.randint(key, (), 0, total))]
    nearest = np.full(total, np.inf, np.float32)
    while len(chosen) < size:
        centre = flat[chosen[-1]]
        nearest = np.minimum(nearest, squares - 2 * flat @ centre + squares[chosen[-1]])
        nearest[chosen[-1]] = -np.inf  # never twice, even where rows repeat
        chosen.append(int(nearest.argmax()))
    return np.array(chosen)


def _check_size(inputs: PyTree, size: int) -> int:
    total = len(jax.tree.leaves(inputs)[0])
    if not 1 <= size < total:
        raise InputError(f"A coreset of {size} rows needs a task of more rows, and at least one; the task has {total}.")
    return total
