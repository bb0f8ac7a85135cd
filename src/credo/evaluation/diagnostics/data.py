"""Data as users give it, (inputs, targets) or (inputs, targets, weights), checked against a fit."""

from typing import Any

import jax
import numpy as np

from credo.core.draws import check_targets
from credo.core.numeric import host_floats, host_targets
from credo.core.predict import checked_inputs
from credo.core.typing import PyTree
from credo.errors import InputError


def rows_of(data: Any) -> tuple[PyTree, Any, Any]:
    """Inputs, targets and weights (or None)."""
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise InputError("Data must be a pair (inputs, targets) or a triple (inputs, targets, weights).")
    return data[0], data[1], data[2] if len(data) == 3 else None


def canonical(fit: Any, data: Any) -> tuple[PyTree, np.ndarray, np.ndarray]:
    """Inputs, targets in the likelihood's own form and weights [n], or a sentence."""
    inputs, targets, weight = rows_of(data)
    inputs = jax.tree.map(np.asarray, checked_inputs(fit, inputs))
    likelihood = fit.model.likelihood
    prepared = host_targets(likelihood, targets)
    rows = len(jax.tree.leaves(inputs)[0])
    if len(prepared) != rows:
        raise InputError(f"Expected {rows} targets, one for each input, got {len(prepared)}.")
    check_targets(fit, targets)
    weights = np.ones(rows) if weight is None else host_floats(weight, "Weights")
    if weights.shape != (rows,):
        raise InputError(f"Expected {rows} weights, one for each row, got shape {list(weights.shape)}.")
    return inputs, prepared, weights
