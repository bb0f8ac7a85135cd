"""Predictives of given outputs, without a network or a fit."""

import jax.numpy as jnp
import numpy as np

from credo.core.batch import pad_rows
from credo.core.mixture import Flat
from credo.core.predictive import Predictive


def predictive(likelihood, outputs, flat=True, weights=None, params=None, width=None):
    """The predictive of outputs [draw, n, out], all draws equally likely, in chunks of `width` rows."""
    outputs = np.asarray(outputs, np.float32)
    rows = outputs.shape[1]
    width = rows if width is None else width
    count = len(outputs)
    log_weights = np.full(count, -np.log(count)) if weights is None else np.log(weights)

    def chunks():
        for start in range(0, rows, width):
            where = slice(start, min(start + width, rows))
            block = np.moveaxis(pad_rows(np.moveaxis(outputs[:, where], 1, 0), width), 0, 1)
            yield where, Flat(jnp.asarray(block), params or {}, jnp.asarray(log_weights, jnp.float32))

    return Predictive(likelihood, chunks, rows, flat)
