"""The labels of a batch of classes together: a table of outcomes that grows by one row's label at a time."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TABLE = 4096  # outcomes of the rows chosen so far: all of them up to here, as many drawn ones beyond
NUMBERS_AT_ONCE = 2**22  # of joint probabilities: what a processor's caches still like


class JointOutcomes(NamedTuple):
    """Joint outcomes y_1 … y_b of the rows chosen so far, with p(y | θ_k) = e^m q_k.

    Attributes:
        probs: q [draws, outcomes].
        log_scale: m [outcomes]; a product of hundreds of probabilities is below what single precision holds.
        factor: e^m over the chance by which an outcome came into the table [outcomes].
        which: the draw of θ that a drawn outcome is of [outcomes]; None where all outcomes are in the table.
    """

    probs: jax.Array
    log_scale: jax.Array
    factor: jax.Array
    which: jax.Array | None = None


def no_outcomes(draws: int) -> JointOutcomes:
    """One outcome, that of no label."""
    return JointOutcomes(jnp.ones((draws, 1)), jnp.zeros(1), jnp.ones(1))


def extend(
    key: jax.Array, outcomes: JointOutcomes, selected: list[np.ndarray], weights: np.ndarray, table: int | None = None
) -> JointOutcomes:
    """The outcomes together with the labels of one more row.

    Up to `table` of them all are kept. Beyond, each is a draw of θ and of labels given it, made once; a further row
    adds one label to each. So a batch of b rows costs b steps, and no step draws anew what an earlier one drew.

    Args:
        key: a JAX key, the same for all rows of a batch.
        outcomes: of the rows before.
        selected: p(c | θ_k) [draws, classes] of every row of the batch, the new one last.
        weights: of the draws.
        table: how many outcomes; None is `TABLE`.
    """
    table = TABLE if table is None else table
    draws, classes = selected[-1].shape
    if outcomes.which is None and outcomes.probs.shape[1] * classes <= table:
        probs = (outcomes.probs[:, :, None] * selected[-1][:, None, :]).reshape(draws, -1)
        return JointOutcomes(probs, jnp.zeros(probs.shape[1]), jnp.ones(probs.shape[1]))
    first = len(selected) - 1
    if outcomes.which is None:  # the table is full: draw the labels of all rows so far
        outcomes, first = _draw(jax.random.fold_in(key, 0), jnp.asarray(weights), table), 0
    for i in range(first, len(selected)):
        outcomes = _extend_draws(jax.random.fold_in(key, i + 1), outcomes, selected[i], weights)
    return outcomes


@partial(jax.jit, static_argnames="table")
def _draw(key: jax.Array, weights: jax.Array, table: int) -> JointOutcomes:
    """Draws of θ, no label yet."""
    which = jax.random.categorical(key, jnp.log(weights), shape=(table,))
    return JointOutcomes(jnp.ones((len(weights), table)), jnp.zeros(table), jnp.ones(table), which)


@jax.jit
def _extend_draws(key: jax.Array, outcomes: JointOutcomes, probs: jax.Array, weights: jax.Array) -> JointOutcomes:
    assert outcomes.which is not None
    log_probs = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    labels = jax.random.categorical(key, log_probs[outcomes.which], axis=-1)
    product = outcomes.probs * probs[:, labels]
    size = product.max(0)
    scaled, log_scale = product / size, outcomes.log_scale + jnp.log(size)
    # The chance of an outcome is that of its labels under the predictive, Σ_k w_k p(y | θ_k), once in each of S draws.
    return JointOutcomes(scaled, log_scale, 1 / (scaled.shape[1] * (weights @ scaled)), outcomes.which)


def joint_entropies(pieces: list[jax.Array], outcomes: JointOutcomes, weights: np.ndarray, rows: int) -> np.ndarray:
    """H of the outcomes together with the label of each row [rows]: −Σ_s (1/chance_s) Σ_c p(s, c) log p(s, c).

    Args:
        pieces: p(c | θ_k) of the rows [draws, width, classes], the last one padded.
        outcomes: of the rows chosen so far.
        weights: of the draws.
        rows: how many there are.
    """
    weighted = outcomes.probs * weights[:, None]
    entropies = [_entropies(weighted, piece, outcomes.log_scale, outcomes.factor) for piece in pieces]
    return np.concatenate([np.asarray(x) for x in entropies])[:rows]


@jax.jit
def _entropies(weighted: jax.Array, probs: jax.Array, log_scale: jax.Array, factor: jax.Array) -> jax.Array:
    joint = jnp.einsum("ks,knc->snc", weighted, probs)
    logs = jnp.log(jnp.maximum(joint, jnp.finfo(joint.dtype).tiny)) + log_scale[:, None, None]
    return -jnp.einsum("snc,snc,s->n", joint, logs, factor)


def in_pieces(probs: np.ndarray, table: int | None = None) -> list[jax.Array]:
    """p(c | θ_k) [draws, rows, classes] in pieces of one width, on the device once for all steps.

    Args:
        probs: of the rows.
        table: how many outcomes they will be held against; None is `TABLE`.
    """
    rows, classes = probs.shape[1:]
    width = int(np.clip(NUMBERS_AT_ONCE // ((TABLE if table is None else table) * classes), 1, rows))
    pieces = []
    for start in range(0, rows, width):
        piece = probs[:, start : start + width]
        short = width - piece.shape[1]
        pieces.append(jnp.asarray(np.concatenate([piece, np.repeat(piece[:, -1:], short, axis=1)], 1)))
    return pieces
