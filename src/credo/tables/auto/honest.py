"""Error bars held against rows that a fit had not seen, and corrected where these say so."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.core.batch import bucket
from credo.core.predict import member_outputs
from credo.core.tree import field_values
from credo.evaluation.recalibration.unseen import Correction, Unseen, at_frequencies, corrected, with_settings
from credo.methods.ensembles.early_stopping import EarlyStopping
from credo.tables.rows.copies import merged, unit_codes

if TYPE_CHECKING:
    from credo.training.fit import Fit

MOST = 20_000  # rows that are looked at


def with_units(method: Any, data: Any, groups: Any = None) -> Any:
    """The method with rows that belong together on one side wherever members hold rows out: copies, and groups."""
    if "units" not in field_values(method):
        return method
    units = units_of(data, groups)
    if units is None:
        return method
    first = np.unique(units, return_index=True, return_inverse=True)
    codes = first[1][first[2].ravel()].astype(np.int32)
    rest = np.arange(len(codes), bucket(len(codes)), dtype=np.int32)
    return dataclasses.replace(method, units=np.concatenate([codes, rest]))


def units_of(data: Any, groups: Any = None) -> np.ndarray | None:
    """For every row that weighs something the unit that it belongs to, or None where each is by itself."""
    inputs, targets = data[0], np.asarray(data[1])
    weighing = slice(None) if len(data) < 3 or data[2] is None else np.asarray(data[2]) > 0
    leaves = [np.asarray(x) for x in jax.tree.leaves(inputs)]
    in_memory = all(x.dtype.kind in "fiub" and not isinstance(x, np.memmap) for x in [*leaves, targets])
    codes = unit_codes([x[weighing] for x in [*leaves, targets]]) if in_memory else None
    return merged(codes, None if groups is None else np.asarray(groups)[weighing])


def as_record(correction: Correction) -> dict[str, Any]:
    """A correction as plain data, which a job or a configuration keeps."""
    return {
        "settings": correction.settings, "honest": correction.honest, "facts": correction.facts,
        "sentence": correction.sentence,
    }  # fmt: skip


def checked(fit: Fit, correction: dict[str, Any] | None = None) -> Fit:
    """The fit with error bars as rows that it had not seen want them, and a sentence on that in its notes.

    Members of an early-stopped ensemble say what they think of the rows that they had put aside; of chains a pilot has
    already told (`correction`).

    Args:
        fit: the result of `credo.fit`.
        correction: of a pilot.
    """
    loop = fit.loop
    if loop is not None and isinstance(loop.stages[-1][0], EarlyStopping) and fit.outcome != "failed":
        correction = as_record(of_members(fit))
    return fit if correction is None else with_correction(fit, correction)


def with_correction(fit: Fit, correction: dict[str, Any]) -> Fit:
    """The fit with a correction that is known."""
    likelihood, settings = fit.model.likelihood, correction["settings"]
    likelihood = likelihood if settings is None else with_settings(likelihood, settings)
    notes = (correction["sentence"],) if correction["sentence"] else ()
    return dataclasses.replace(
        fit, model=dataclasses.replace(fit.model, likelihood=likelihood), notes=(*fit.notes, *notes),
        config=fit.config | {"correction": correction},
    )  # fmt: skip


def of_members(fit: Fit) -> Correction:
    """The correction by the rows that members had put aside: each row has the mixture of those that did not see it."""
    loop = fit.loop
    assert loop is not None
    source = loop.source
    held_out = np.asarray(loop.state().aside)[:, : source.num_rows]
    rows = np.flatnonzero(held_out.any(0))[:MOST]
    inputs = jax.tree.map(lambda x: np.asarray(x[rows], x.dtype), source.inputs)
    draws = member_outputs(jax.random.key(0), fit.posterior, fit.model, inputs, None)
    one = lambda x: np.asarray(x)[:, 0]  # noqa: E731  # a member is one draw
    with np.errstate(divide="ignore"):
        log_weights = np.log(held_out[:, rows] / held_out[:, rows].sum(0))
    targets, weight = np.asarray(source.targets), np.asarray(source.weight)
    likelihood: Any = fit.model.likelihood
    unseen = Unseen(
        likelihood, jax.tree.map(one, draws.likelihood), one(draws.values), log_weights, targets[rows], weight[rows],
        len(held_out),
    )  # fmt: skip
    frequencies = None
    if likelihood.kind == "classes":
        frequencies = at_frequencies(targets, weight, max(2, draws.values.shape[-1]))
    return corrected([unseen], frequencies, always=True)
