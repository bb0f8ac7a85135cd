"""Draws of a posterior at given inputs with the chain axis kept, for diagnostics, model choice and the audit."""

from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.batch import bucket
from credo.core.model import Model
from credo.core.posterior import Draws
from credo.core.predict import CHUNK_BYTES, FEW_ROWS, checked_inputs
from credo.core.predictive import pad_last
from credo.errors import InputError

PyTree = Any


@partial(jax.jit, static_argnames="num")
def _outputs(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Draws:
    return posterior.outputs(key, model, inputs, num)


@partial(jax.jit, static_argnames="num")
def _log_likelihood(
    key: jax.Array, posterior: Any, model: Model, inputs: PyTree, targets: jax.Array, num: int | None
) -> jax.Array:
    draws = posterior.outputs(key, model, inputs, num)
    per_draw = jax.vmap(jax.vmap(model.likelihood.log_prob, (0, 0, None)), (0, 0, None))
    return per_draw(draws.likelihood, draws.values, targets)


def function_draws(key: jax.Array, fit: Any, inputs: PyTree, num: int | None = None) -> Draws:
    """f_θ(x) at the inputs [member, draw, n, out] for about `num` draws of θ, as NumPy arrays.

    Weights are not identified (permute two hidden units and nothing changes); functions are.

    Args:
        key: for posteriors whose draws are made afresh; stored draws need none.
        fit: the result of `credo.fit` or `credo.load`.
        inputs: array [n, …] or a tree of them, like the training inputs.
        num: draws over all members; None takes all stored draws, or 200 for each member of a distribution.
    """
    posterior = jax.device_put(fit.posterior)
    values, rest = [], None
    for _, block, count in _chunks(fit, inputs, num):
        draws = _outputs(key, posterior, fit.model, block, num)
        values.append(np.asarray(draws.values[:, :, :count]))
        rest = rest or jax.tree.map(np.asarray, (draws.likelihood, draws.log_weights))
    assert rest is not None
    return Draws(np.concatenate(values, 2), *rest)  # type: ignore[arg-type]


def log_likelihood_draws(key: jax.Array, fit: Any, inputs: PyTree, targets: Any, num: int | None = None) -> np.ndarray:
    """log p(y_n | x_n, θ) [member, draw, n] of every row under about `num` draws of θ (see `function_draws`)."""
    canonical = fit.model.likelihood.prepare(np.asarray(targets))
    rows = len(jax.tree.leaves(inputs)[0])
    if len(canonical) != rows:
        raise InputError(f"Expected {rows} targets, one for each input, got {len(canonical)}.")
    posterior = jax.device_put(fit.posterior)
    parts = []
    for where, block, count in _chunks(fit, inputs, num):
        y = pad_last(canonical[where], len(jax.tree.leaves(block)[0]))
        parts.append(np.asarray(_log_likelihood(key, posterior, fit.model, block, y, num)[:, :, :count]))
    return np.concatenate(parts, 2)


def _chunks(fit: Any, inputs: PyTree, num: int | None) -> Any:
    """(rows, padded inputs, real rows) of chunks whose outputs under all draws stay below `CHUNK_BYTES`."""
    inputs = checked_inputs(fit, inputs)
    rows = len(jax.tree.leaves(inputs)[0])
    members, each = fit.posterior.num_draws(num)
    width = max(1, min(max(bucket(rows), FEW_ROWS), CHUNK_BYTES // (16 * members * each)))
    for start in range(0, rows, width):
        where = slice(start, min(start + width, rows))
        block = jax.tree.map(lambda x, w=where: pad_last(np.asarray(x[w]), width), inputs)
        yield where, block, where.stop - where.start
