"""Categories that training did not have: predictions that are averages over the ones that it had.

A row whose category is new has no effect of its own to be predicted with. Its level could be any of those that training
had, with the shares of training, so its predictive distribution is the mixture

    p(y | x, D) = Σ_l π_l p(y | x with level l, D),

whose epistemic part holds the spread between levels beside the spread of the posterior. Levels are stratified over the
posterior's draws, independently between columns, so that a row costs `LEVELS` times that of another, and no more draws
are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.tables.columns.decode import feature_groups
from credo.tables.encode.columns import CategoryColumn
from credo.tables.encode.encoder import TableEncoder

LEVELS = 16
# With fewer draws than this for each level, every draw is taken at every level.
DRAWS_PER_LEVEL = 4


class UnseenCategories(NamedTuple):
    """Where a column's category is new: the column, its features, and a mask of rows."""

    column: CategoryColumn
    features: tuple[int, ...]
    rows: np.ndarray


def find_unseen(encoder: TableEncoder, inputs: np.ndarray) -> list[UnseenCategories]:
    """The columns with categories that training did not have, from inputs that were encoded with `unseen="zeros"`."""
    found = []
    for column, features in zip(encoder.columns, feature_groups(encoder).values()):
        if isinstance(column, CategoryColumn) and not column.other:
            own = features[: len(column.categories)]
            rows = np.asarray(inputs[:, list(own)]).sum(axis=1) == 0.0
            found += [UnseenCategories(column, own, rows)] if rows.any() else []
    return found


def unseen_notes(encoder: TableEncoder, inputs: np.ndarray) -> list[str]:
    """A sentence for each column with such rows."""
    return [
        f"Column '{column.name}' has categories that training did not have in {int(rows.sum())} of {len(rows)} rows; "
        "there predictions are averages over the known ones, by their shares in training, and less certain."
        for column, _, rows in find_unseen(encoder, inputs)
    ]


def predict_unseen(
    predict_at: Callable[[np.ndarray], Predictive], encoder: TableEncoder, inputs: np.ndarray
) -> Predictive:
    """The predictive at encoded inputs, where rows with a new category are mixtures over the known ones.

    Args:
        predict_at: gives the predictive at inputs, with the same draws of the posterior at every call.
        encoder: how the table was encoded.
        inputs: encoded rows [n, features], with `unseen="zeros"`.
    """
    plain = predict_at(inputs)
    found = find_unseen(encoder, inputs)
    if not found:
        return plain
    rows = np.logical_or.reduce([one.rows for one in found])
    given = plain._chunks

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for where, draws in given():
            own = np.flatnonzero(rows[where])
            count = len(draws.outputs)
            levels = 1 if count >= DRAWS_PER_LEVEL * LEVELS else LEVELS
            draws = draws if levels == 1 else _repeated(draws, levels)
            if len(own):
                mixed = _at_levels(predict_at, found, inputs[where][own], where.start + own, count, levels)
                outputs = np.array(draws.outputs)
                outputs[:, own] = mixed
                draws = draws._replace(outputs=jnp.asarray(outputs))
            yield where, draws

    result = copy.copy(plain)
    result.__dict__.pop("_summary", None)  # a cached answer of the plain one
    result._chunks = chunks
    return result


def _repeated(draws: Flat, times: int) -> Flat:
    """Every draw so many times, each with its share of the weight."""
    outputs, params = jax.tree.map(lambda x: jnp.repeat(x, times, axis=0), (draws.outputs, draws.params))
    return Flat(outputs, params, jnp.repeat(draws.log_weights, times) - np.log(times))


def _at_levels(
    predict_at: Callable[[np.ndarray], Predictive],
    found: list[UnseenCategories],
    inputs: np.ndarray,
    places: np.ndarray,
    count: int,
    times: int,
) -> np.ndarray:
    """Outputs [draws, rows, out]: draw k at level k mod `LEVELS`, or each draw at each level where `times` is not 1."""
    result: Any = None
    for level in range(LEVELS):
        version = inputs.copy()
        for number, (column, features, rows) in enumerate(found):
            version[np.flatnonzero(rows[places]), features[_levels(column, number)[level]]] = 1.0
        draws = _outputs(predict_at(version))
        if result is None:
            result = np.empty((count * times, *draws.shape[1:]), draws.dtype)
        # Both ways place k of the result has level k mod LEVELS.
        result[level::LEVELS] = draws[level::LEVELS] if times == 1 else draws
    return result


def _outputs(predictive: Predictive) -> np.ndarray:
    """Outputs of all draws at all rows, without those that only fill a chunk."""
    parts = [np.asarray(d.outputs)[:, : where.stop - where.start] for where, d in predictive._chunks()]
    return np.concatenate(parts, axis=1)


def _levels(column: CategoryColumn, number: int) -> np.ndarray:
    """`LEVELS` places among the categories in proportion to their shares, in an order that differs between columns."""
    shares = np.array(column.shares or [1.0 / len(column.categories)] * len(column.categories))
    ends = np.cumsum(shares / shares.sum())
    places = np.searchsorted(ends, (np.arange(LEVELS) + 0.5) / LEVELS).clip(0, len(shares) - 1)
    return np.random.default_rng(number).permutation(places)
