"""Draws of a posterior at some inputs, with the chain axis, for diagnostics, model choice and the audit."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.batch import bucket, pad_rows
from credo.core.capabilities import StoredPosterior, ask
from credo.core.model import Model
from credo.core.numeric import host_targets
from credo.core.pieces import in_pieces
from credo.core.posterior import Draws
from credo.core.predict import CHUNK_BYTES, FEW_ROWS, checked_inputs, disk_outputs, member_outputs
from credo.core.predictive import check_columns
from credo.core.typing import PyTree
from credo.errors import InputError


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
    rows, width, block = _blocks(fit, inputs, num)
    starts, model = range(0, rows, width), fit.model
    posterior = fit.posterior.joint_at(block(start) for start in starts)
    if ask(posterior, StoredPosterior).on_disk:
        parts: Any = disk_outputs(key, posterior, model, [partial(block, s) for s in starts], num)
    else:
        posterior = jax.device_put(posterior)
        parts = (member_outputs(key, posterior, model, block(s), num) for s in starts)
    values, shared = [], None
    for start, draws in zip(starts, parts):
        values.append(np.asarray(draws.values[:, :, : rows - start]))
        shared = shared or jax.tree.map(np.asarray, (draws.likelihood, draws.log_weights))
    assert shared is not None
    return Draws(np.concatenate(values, 2), *shared)  # type: ignore[arg-type]


def log_likelihood_draws(key: jax.Array, fit: Any, inputs: PyTree, targets: Any, num: int | None = None) -> np.ndarray:
    """log p(y_n | x_n, θ) [member, draw, n] of every row under about `num` draws of θ (see `function_draws`)."""
    canonical = host_targets(fit.model.likelihood, targets)
    rows = len(jax.tree.leaves(inputs)[0])
    if len(canonical) != rows:
        raise InputError(f"Expected {rows} targets, one for each input, got {len(canonical)}.")
    check_targets(fit, targets)
    rows, width, block = _blocks(fit, inputs, num)
    starts = range(0, rows, width)
    posterior = fit.posterior.joint_at(block(start) for start in starts)

    def evaluate(part: Any, start: int, num: int | None) -> jax.Array:
        y = pad_rows(canonical[start : start + width], width)
        return _log_likelihood(key, part, fit.model, block(start), y, num)

    if ask(posterior, StoredPosterior).on_disk:
        parts: Any = in_pieces(partial(evaluate, num=None), posterior, num, starts)
    else:
        posterior = jax.device_put(posterior)
        parts = (evaluate(posterior, start, num) for start in starts)
    return np.concatenate([np.asarray(x[:, :, : rows - start]) for start, x in zip(starts, parts)], 2)


def check_targets(fit: Any, targets: Any) -> None:
    """Raise where targets have other columns than those of the fit; a likelihood checks classes itself."""
    if fit.model.likelihood.kind != "classes":
        check_columns(np.shape(targets), math.prod(fit.target_shape))


def _blocks(fit: Any, inputs: PyTree, num: int | None) -> tuple[int, int, Callable[[int], PyTree]]:
    """(rows, width, block): `block(start)` are the padded inputs of `width` rows, whose outputs under all draws stay
    below `CHUNK_BYTES`."""
    inputs = checked_inputs(fit, inputs)
    rows = len(jax.tree.leaves(inputs)[0])
    members, each = fit.posterior.num_draws(num)
    width = max(1, min(max(bucket(rows), FEW_ROWS), CHUNK_BYTES // (16 * members * each)))

    def block(start: int) -> PyTree:
        return jax.tree.map(lambda x: pad_rows(np.asarray(x[start : start + width]), width), inputs)

    return rows, width, block
