"""A fit on a table from start to end: read, split, encode, fit, score, save. `fit`, `resume` and `demo` share it."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import credo
from credo.cli.console import plain, say
from credo.tables.doubts import doubts
from credo.tables.duration import Stopwatch, announced
from credo.tables.job import CHECKPOINT, Job, job_file
from credo.tables.score import confusion_of, predictive_at, scores_of, true_targets
from credo.errors import InputError, Refusal, Unwritable
from credo.storage.atomic_write import check_replaceable
from credo.storage.run_directory.write import PAGES, is_run, save_fit
from credo.tables.auto import AUTO, chosen_for, settle
from credo.tables.auto.honest import checked, with_units
from credo.tables.columns.roles import known_targets, without_columns
from credo.tables.encode.encoder import Arrays, TableEncoder
from credo.tables.encode.targets import choose_task
from credo.tables.model import build, table_model
from credo.tables.read import parse
from credo.tables.read.files import read_with_notes
from credo.tables.rows.copies import copies_note, copies_of
from credo.tables.rows.splits import split_rows
from credo.training.budget import left_of, seconds
from credo.training.clock import COMPILING

if TYPE_CHECKING:
    import pandas as pd

HELD_OUT_ROWS = 20_000  # rows that a run keeps for its report


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Everything that a fit needs, checked; the job names its method, also where nobody did. `groups` are those of the
    rows of `held`, where whole groups are held out."""

    job: Job
    encoder: TableEncoder
    train: Arrays
    held: Arrays | None
    model: Any
    method: Any
    notes: list[str]
    groups: np.ndarray | None = None
    watch: Stopwatch = dataclasses.field(default_factory=Stopwatch)


def check_place(out: Path) -> None:
    """Raise a sentence where a new run cannot be written."""
    check_replaceable(out, is_run)
    if job_file(out).is_file():
        raise InputError(
            f"{out} holds an unfinished run: `credo resume {out}` finishes it; to start anew remove it or choose "
            "another --out."
        )


def prepare(job: Job) -> Prepared:
    """Read the table and check everything that can be checked before the first step."""
    watch, begun = Stopwatch(), (time.perf_counter(), COMPILING.seconds)
    if job.method != AUTO:
        build(job.method, job.settings)
    if job.steps is not None and job.budget is not None:
        raise InputError("Give --steps or --budget, not both.")
    if job.budget is not None:
        seconds(job.budget)
    frame, read_notes = read_with_notes(job.table)
    target: Any = job.target[0] if len(job.target) == 1 else job.target
    frame, target_notes = known_targets(parse.named_frame(frame), job.target, job.missing)
    frame, aside = without_columns(frame, job.drop, job.target, (job.split_by, job.time, job.weights))
    task, why = choose_task(frame, target, job.task)
    stratify = target if task == "classification" and job.split_by is None and job.time is None else None
    train_rows, held_rows = split_rows(frame, job.holdout, job.seed, job.split_by, job.time, stratify)
    train = frame.iloc[train_rows]
    exact = job.task if job.task in ("binary", "multiclass") else task
    aside += () if job.split_by is None else (job.split_by,)
    encoder = TableEncoder.learn(train, target, exact, job.missing, job.weights, ignore=aside)
    arrays = encoder.arrays(train)
    groups = _groups(frame, job)
    if job.method == AUTO:
        job = settled(job, encoder, arrays, begun, None if groups is None else groups[train_rows[arrays.rows]])
    method, options = build(job.method, job.settings)
    if job.why:
        method = with_units(method, arrays[:3], None if groups is None else groups[train_rows[arrays.rows]])
    model = table_model(encoder, job.network, options, job.method)
    held = encoder.arrays(frame.iloc[held_rows], unseen="zeros") if len(held_rows) else None
    held = None if held is None or len(held.rows) == 0 else held._replace(rows=held_rows[held.rows])
    copies = copies_note(copies_of(frame, job.target))
    notes = [note for note in (*read_notes, *target_notes, why, copies, *encoder.notes, job.why) if note]
    own = None if groups is None or held is None else groups[held.rows]
    return Prepared(job, encoder, arrays, held, model, method, notes, own, watch)


def settled(
    job: Job, encoder: TableEncoder, arrays: Arrays, begun: tuple[float, float], groups: np.ndarray | None = None
) -> Job:
    """The job with the method that suits the table, and what else nobody said; its budget began when the job did."""
    say("No method is named: looking for one that suits the table …")
    choice = chosen_for(
        encoder, arrays[:3], job.network, job.settings, job.budget, job.seed, groups, announce=_announce(job)
    )
    found = settle(choice, job.network, job.settings, job.steps, job.batch_size, job.budget)
    budget = None if job.budget is None else f"{left_of(job.budget, *begun):.3f}s"
    planned = choice.seconds or None if job.steps is None else None
    return dataclasses.replace(
        job, **found, why=f"Method: {choice.why}", correction=choice.correction, planned=planned, budget=budget
    )


def _announce(job: Job) -> Callable[[float], None] | None:
    """Says how long the fit will take, once that is known; None where the user's steps decide."""
    return None if job.steps is not None else lambda planned: say(announced(planned))


def _groups(frame: pd.DataFrame, job: Job) -> np.ndarray | None:
    """A number for the group of each row, where whole groups are held out."""
    if job.split_by is None:
        return None
    return parse.text_keys(parse.find_column(frame, job.split_by, "--split-by"))[0]


def train(job: Job, out: Path, prepared: Prepared, resuming: bool = False) -> dict[str, Any]:
    """Fit, score and save; returns what there is to tell."""
    stale = sorted(path.name for name in PAGES for path in out.glob(name))
    job.write(out)
    try:
        result = _fit(job, out, prepared)
        metrics = scores(result, prepared, job.seed)
        against = doubts(metrics, prepared.train, prepared.held, len(prepared.encoder.classes or ()))
        result = dataclasses.replace(result, notes=(*result.notes, *against))
        metrics |= prepared.watch.read() | ({} if job.planned is None else {"seconds_planned": job.planned})
        stopped = result.status.outcome in ("interrupted", "stopped by the disk")
        out = _save(result, out, stopped, prepared, job, metrics)
    except (InputError, Refusal):
        if not resuming:
            shutil.rmtree(out / CHECKPOINT, ignore_errors=True)
        raise
    except Unwritable as error:
        raise Unwritable(f"{error} Nothing is lost: then `credo resume {out}`.") from error
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"Stopped; `credo resume {out}` continues.") from error
    if stopped:
        say(f"Stopped early: {out} can be used as it is, and `credo resume {out}` continues it.")
    if stale:
        names = ", ".join(stale)
        say(f"Removed, because they are about the fit that was here before: {names}. `credo report {out}` writes anew.")
    return told(result, prepared, metrics, out)


def _save(
    result: Any, out: Path, stopped: bool, prepared: Prepared, job: Job, metrics: dict[str, Any]
) -> Path:  # fmt: skip
    """Write the run; a fit that is finished is never thrown away, whatever happened to its folder meanwhile."""
    parts: dict[str, Any] = {
        "encoder": prepared.encoder, "metrics": plain(metrics), "extra": job.facts(), "heldout": _kept(prepared),
        "keep": (CHECKPOINT,) if stopped else (),
    }  # fmt: skip
    try:
        save_fit(result, out, **parts)
    except InputError as error:
        beside = next(p for i in itertools.count(2) if not (p := out.with_name(f"{out.name}-{i}")).exists())
        say(f"{error} The run is in {beside}.")
        save_fit(result, beside, **parts)
        return beside
    return out


def _fit(job: Job, out: Path, prepared: Prepared) -> Any:
    def keep_job(event: Any) -> None:
        """Somebody may remove the folder: the next checkpoint makes it anew, and `credo resume` wants a job beside."""
        if not job_file(out).exists():
            job.write(out)

    try:
        found = credo.fit(
            jax.random.key(job.seed), prepared.model, prepared.train[:3], prepared.method, steps=job.steps,
            budget=job.budget, batch_size=job.batch_size, checkpoint=credo.Checkpoint(out / CHECKPOINT, job.every),
            callbacks=[keep_job],
        )  # fmt: skip
        return checked(found, job.correction) if job.why else found
    except OSError as error:
        raise Unwritable(f"Cannot write to {out}: {error.strerror or error}; make room.") from error


def scores(result: Any, prepared: Prepared, seed: int) -> dict[str, Any]:
    """metrics.json: scores on the held-out rows, on the scale of the table, and times."""
    found: dict[str, Any] = {}
    held = prepared.held
    if held is not None:
        predictive = predictive_at(result, prepared.encoder, held.inputs, seed)
        weights = held.weights if prepared.encoder.weight_column else None
        truth = true_targets(prepared.encoder, held.targets)
        found = {f"test_{name}": value for name, value in scores_of(predictive, truth, weights).items()}
        table = confusion_of(predictive, truth, weights)
        found |= {} if table is None else {"test_confusion": table}
    rows = {"train_rows": len(prepared.train.rows), "test_rows": 0 if held is None else len(held.rows)}
    return found | result.timing | rows


def told(result: Any, prepared: Prepared, metrics: dict[str, Any], out: Path) -> dict[str, Any]:
    """The summary that `--json` prints."""
    encoder = prepared.encoder
    return {
        "run": str(out),
        "task": encoder.task,
        "target": encoder.target,
        "classes": encoder.classes,
        "method": result.config["method"],
        "features": len(encoder.feature_names),
        "ok": result.status.ok,
        "status": str(result.status),
        "notes": prepared.notes,
        "metrics": metrics,
    }


def _kept(prepared: Prepared) -> dict[str, np.ndarray] | None:
    if prepared.held is None:
        return None
    known = prepared.held._asdict() | ({} if prepared.groups is None else {"groups": prepared.groups})
    return {name: np.asarray(value[:HELD_OUT_ROWS]) for name, value in known.items()}
