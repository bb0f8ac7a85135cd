"""Everything that can be done and checked before the first step: read, split, encode, choose."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credo.errors import InputError
from credo.tables.auto import AUTO
from credo.tables.auto.case import of_table
from credo.tables.auto.model_set import STACK
from credo.tables.auto.resolution import Resolved, resolve
from credo.tables.columns.roles import rows_with_targets, without_columns
from credo.tables.duration import Stopwatch, announced
from credo.tables.encode.encoder import Arrays, TableEncoder
from credo.tables.encode.learning import plain_target
from credo.tables.encode.targets import choose_task
from credo.tables.job import Job
from credo.tables.model import build
from credo.tables.read import parse
from credo.tables.read.source import read_source
from credo.tables.rows.copies import copies_note, copies_of
from credo.tables.rows.splits import split_rows
from credo.tables.vectors import takes_codes
from credo.training.budget import seconds
from credo.training.clock import COMPILING

if TYPE_CHECKING:
    import pandas as pd


class Prepared(NamedTuple):
    """Everything that a fit needs, checked; the job names its method, also where nobody did. `groups` are those of the
    rows of `held`, where whole groups are held out."""

    job: Job
    encoder: TableEncoder
    train: Arrays
    held: Arrays | None
    resolved: Resolved
    notes: list[str]
    groups: np.ndarray | None
    watch: Stopwatch


def prepare(job: Job, table: Any, say: Callable[[str], Any]) -> Prepared:
    """Read the table and check everything that can be checked before the first step.

    Args:
        job: what was asked for.
        table: a data frame; None where the job names a file.
        say: called with sentences.
    """
    watch, begun = Stopwatch(), (time.perf_counter(), COMPILING.seconds)
    check_duration(job.steps, job.budget)
    if job.method not in (AUTO, STACK):
        build(job.method, job.settings)
    frame, read_notes = read_source(job.table if table is None else table)
    target: Any = plain_target(tuple(job.target))
    frame, target_notes = rows_with_targets(parse.named_frame(frame), job.target, job.missing)
    frame, excluded = without_columns(frame, job.drop, job.target, (job.split_by, job.time, job.weights))
    task, why = choose_task(frame, target, job.task)
    stratify = target if task == "classification" and job.split_by is None and job.time is None else None
    train_rows, held_rows = split_rows(frame, job.holdout, job.seed, job.split_by, job.time, stratify)
    train = frame.iloc[train_rows]
    exact = job.task if job.task in ("binary", "multiclass") else task
    excluded += () if job.split_by is None else (job.split_by,)
    codes = takes_codes(job.method, job.network)
    encoder = TableEncoder.learn(train, target, exact, job.missing, job.weights, excluded, codes)
    arrays = encoder.arrays(train)
    groups = _groups(frame, job)
    train_groups = None if groups is None else groups[train_rows[arrays.rows]]
    if job.method == AUTO:
        say("No method is named: looking for one that suits the table …")
    resolved = resolve(
        of_table(encoder, arrays), method=job.method, network=job.network, settings=job.settings, steps=job.steps,
        batch_size=job.batch_size, budget=job.budget, seed=job.seed, groups=train_groups, begun=begun, why=job.why,
        effort=job.effort,
        announce=None if job.steps is not None else lambda planned: say(announced(planned)),
    )  # fmt: skip
    if job.method == AUTO:
        left = None if job.budget is None else f"{resolved.budget:.3f}s"  # as a resumed fit reads it
        job = dataclasses.replace(
            job, **resolved.words, why=f"Method: {resolved.why}", correction=resolved.correction, budget=left,
            planned=resolved.planned if job.steps is None else None,
        )  # fmt: skip
    resolved = resolved._replace(budget=job.budget, correction=job.correction)
    held = encoder.arrays(frame.iloc[held_rows], unseen="zeros") if len(held_rows) else None
    held = None if held is None or len(held.rows) == 0 else held._replace(rows=held_rows[held.rows])
    copies = copies_note(copies_of(frame, job.target))
    notes = [note for note in (*read_notes, *target_notes, why, copies, *encoder.notes, job.why) if note]
    held_groups = None if groups is None or held is None else groups[held.rows]
    return Prepared(job, encoder, arrays, held, resolved, notes, held_groups, watch)


def check_duration(steps: int | None, budget: str | float | None) -> float | None:
    """Seconds of a budget; an `InputError` where steps are given, too."""
    if steps is not None and budget is not None:
        raise InputError("Give steps or a budget, not both.")
    return None if budget is None else seconds(budget)


def _groups(frame: pd.DataFrame, job: Job) -> np.ndarray | None:
    """A number for the group of each row, where whole groups are held out."""
    if job.split_by is None:
        return None
    return parse.text_keys(parse.find_column(frame, job.split_by, "--split-by"))[0]
