"""Cells that are not known at prediction: predictions that are averages over what training had.

A row whose category is new has no effect of its own to be predicted with, and where training had no gaps it could not
teach what one means. Such a cell could be any of those that training had, with the shares of training, so the
predictive distribution of its row is the mixture

    p(y | x, D) = Σ_l π_l p(y | x with level l, D),

whose epistemic part holds the spread between levels beside the spread of the posterior. Levels are stratified over the
posterior's draws, independently between columns, so that a row costs `LEVELS` times that of another, and no more draws
are kept.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.levels import Unknown, outputs_at_levels, repeats, unknown_in, without_gaps


def find_unseen(encoder: TableEncoder, inputs: np.ndarray) -> list[Unknown]:
    """The columns with cells that are not known, from inputs that were encoded with `unseen="zeros"`."""
    unknown: list[Unknown] = []
    start = 0
    for column in encoder.columns:
        places = range(start, start + len(column.names))
        start = places.stop
        unknown += unknown_in(inputs, column.name, places, column.values, column.new(inputs[:, places.start : start]))
    return unknown


def unseen_notes(encoder: TableEncoder, inputs: np.ndarray) -> list[str]:
    """A sentence for each column with such rows."""
    return [unseen.note() for unseen in find_unseen(encoder, inputs)]


def fill_gaps(encoder: TableEncoder, inputs: np.ndarray) -> np.ndarray:
    """Inputs without NaN: gaps that training did not have get its middle value, for what cannot average over rows."""
    return without_gaps(inputs, find_unseen(encoder, inputs)) if np.isnan(inputs).any() else inputs


def predict_unseen(
    predict_at: Callable[[np.ndarray], Predictive], encoder: TableEncoder, inputs: np.ndarray
) -> Predictive:
    """The predictive at encoded inputs, where rows with a cell that is not known are mixtures over known ones.

    Args:
        predict_at: gives the predictive at inputs, with the same draws of the posterior at every call.
        encoder: how the table was encoded.
        inputs: encoded rows [n, features], with `unseen="zeros"`.
    """
    unknown = find_unseen(encoder, inputs)
    inputs = without_gaps(inputs, unknown)
    plain = predict_at(inputs)
    if not unknown:
        return plain
    rows = np.logical_or.reduce([column.rows for column in unknown])
    plain_chunks = plain._chunks

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for where, draws in plain_chunks():
            affected = np.flatnonzero(rows[where])
            count = len(draws.outputs)
            draws = draws if repeats(count) == 1 else _repeated(draws, repeats(count))
            if len(affected):
                outputs = np.array(draws.outputs)
                outputs[:, affected] = outputs_at_levels(
                    lambda version: _outputs(predict_at(version)),
                    unknown,
                    inputs[where][affected],
                    where.start + affected,
                    count,
                )
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


def _outputs(predictive: Predictive) -> np.ndarray:
    """Outputs of all draws at all rows, without those that only fill a chunk."""
    parts = [np.asarray(d.outputs)[:, : where.stop - where.start] for where, d in predictive._chunks()]
    return np.concatenate(parts, axis=1)
