"""Fit every model of a set to the same folds and mix them by what they say of rows that they had not seen."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from credo.core.folds import even_folds
from credo.errors import InputError, Refusal
from credo.tables.auto.honest import as_record, units_of, with_correction, with_units
from credo.tables.auto.model_set import FOLDS, ModelPlan
from credo.tables.auto.stack import Candidate, correction, mixed
from credo.training.budget import left_of
from credo.training.budget import seconds as seconds_of
from credo.training.checkpoint import Checkpoint
from credo.training.clock import COMPILING
from credo.training.interrupt import part_of_more
from credo.training.warn import unwarned, warn

if TYPE_CHECKING:
    from credo.training.fit import Fit

LEAST_TIME = 0.3  # of what a model was planned to take, that must be left for it to begin


class Planned(NamedTuple):
    """One model of the set, with its objects."""

    part: ModelPlan
    method: Any
    model: Any


def fit_set(
    key: jax.Array,
    data: Any,
    planned: Sequence[Planned],
    *,
    budget: str | float | None = None,
    seed: int = 0,
    groups: Any = None,
    checkpoint: Checkpoint | None = None,
    **how: Any,
) -> Fit:
    """The mixture of all models of a set that came to something, with error bars that unseen rows have corrected.

    A model that fails, is refused or no longer has time is left out, and a note says so. After a Ctrl-C the mixture is
    that of the models that were finished.

    Args:
        key: each model has a key of its own from it.
        data: (inputs, targets, weights), encoded.
        planned: the models, quickest first.
        budget: seconds for all of them, compilation aside.
        seed: of the folds.
        groups: a number for the group of each row; folds hold whole groups.
        checkpoint: a folder, in which every model has one of its own.
        how: callbacks and progress, as for `credo.fit`.
    """
    begun = time.perf_counter(), COMPILING.seconds
    folds = even_folds(len(data[1]), FOLDS, seed, units_of(data, groups))
    candidates: list[Candidate] = []
    late: list[str] = []
    notes: list[str] = []
    outcome = "finished"
    for number, model in enumerate(planned):
        left = None if budget is None else left_of(budget, *begun)
        seconds = None if left is None else left * model.part.share / sum(rest.part.share for rest in planned[number:])
        if seconds is not None and candidates and seconds < LEAST_TIME * _plan(planned, budget, model.part):
            late.append(model.part.name)
            continue
        model_checkpoint = (
            None if checkpoint is None else Checkpoint(checkpoint.folder / f"model_{number}", checkpoint.every)
        )
        try:
            fit = _fit_one(jax.random.fold_in(key, number), model, data, folds, seconds, groups, model_checkpoint, how)
        except (InputError, Refusal) as error:
            notes.append(f"Left out: {model.part.name}. {error}")
            continue
        except KeyboardInterrupt:
            if not candidates:
                raise
            outcome = "interrupted"
            break
        candidate = None if fit.outcome == "failed" else Candidate.of(model.part.name, fit, folds)
        if candidate is None or not np.isfinite(candidate.density).any():
            notes.append(f"Left out: {model.part.name}, which came to nothing.")
            continue
        candidates.append(candidate)
        if fit.outcome != "finished":
            outcome = fit.outcome
            break
    if late:
        notes.append(f"Left out for want of time: {'; '.join(late)}.")
    if not candidates:
        raise Refusal(f"None of {len(planned)} models could be fitted. {' '.join(notes)}")
    fit, parts, weights = mixed(candidates)
    fit = with_correction(fit, as_record(correction(fit, parts, weights)))
    fit = dataclasses.replace(fit, notes=(*fit.notes, *notes), outcome=outcome)
    warn(fit)
    return fit


def _plan(planned: Sequence[Planned], budget: str | float | None, part: ModelPlan) -> float:
    """Seconds that the part had in the plan."""
    return 0.0 if budget is None else seconds_of(budget) * part.share / sum(model.part.share for model in planned)


def _fit_one(
    key: jax.Array,
    planned: Planned,
    data: Any,
    folds: Sequence[np.ndarray],
    seconds: float | None,
    groups: Any,
    checkpoint: Checkpoint | None,
    how: dict[str, Any],
) -> Fit:
    """One model; a Gaussian process needs no folds, and takes the time that it takes."""
    from credo.training.fit import fit

    part = planned.part
    alone = part.method == "infinite_width"
    timed = seconds is not None and not alone
    # Threads that wait for each other over factors of few rows make a process slower, tenfold on a busy machine.
    with part_of_more(), unwarned(), threadpool_limits(1) if alone else nullcontext():
        return fit(
            key, planned.model, data, with_units(planned.method, data, groups), steps=None if timed else part.steps,
            budget=seconds if timed else None, batch_size=part.batch_size, folds=None if alone else folds,
            checkpoint=checkpoint, **how,
        )  # fmt: skip
