"""A fit on a table from start to end: read, split, encode, fit, score, save."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.errors import InputError, OutOfMemory, Refusal, Unwritable
from credo.storage.atomic_write import check_replaceable
from credo.storage.locks import locked
from credo.storage.run_directory.write import PAGES, is_run, versions
from credo.tables.auto import AUTO
from credo.tables.doubts import doubts
from credo.tables.encode.learning import target_names
from credo.tables.job import CHECKPOINT, Job, digest, job_file, read_job
from credo.tables.prepare import Prepared, prepare
from credo.tables.read.source import read_source
from credo.tables.run import Run, load
from credo.tables.score import held_out_scores
from credo.training.checkpoint import Checkpoint

HELD_OUT_ROWS = 20_000  # rows that a run keeps for its report
Tell = Callable[[str], Any]


def fit(
    table: Any,
    target: str | Sequence[str],
    *,
    task: str = "auto",
    method: str = AUTO,
    network: str | None = None,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    budget: str | float | None = None,
    effort: str = "normal",
    batch_size: int | None = None,
    seed: int = 0,
    holdout: float = 0.1,
    drop: Sequence[str] = (),
    missing: str = "auto",
    weights: str | None = None,
    split_by: str | None = None,
    time: str | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    tell: Tell | None = None,
    progress: bool | None = None,
    tell_notes: bool = True,
) -> Run:
    """Learn to predict columns of a table from its others, and score rows that were held out.

    `credo fit` is this function: the same table, seed and options give the same run, bit for bit.

    Args:
        table: a path (CSV, TSV, Parquet, Feather, Excel) or a data frame of pandas, polars or Arrow.
        target: the column to predict, or several columns of numbers.
        task: "auto", "regression", "classification" or "count".
        method: the name of an inference method; "auto" chooses one for the table.
        network: "mlp:50,50", "mlp:50:tanh" or "shallow:8"; None is the method's.
        settings: of the method and the model, such as {"learning_rate": 0.01, "prior": "normal:1.0"}.
        steps: steps, or draws of each chain; None is the method's.
        budget: time instead, such as "60s" or "5m", compilation aside; it counts from the first line.
        effort: of "auto": how many models it fits and mixes by how well each predicts rows that it has not seen:
            "quick" in a few seconds, "normal" in up to half a minute, "best" in minutes, compilation aside. A budget
            says how long instead.
        batch_size: rows of a minibatch; None is all up to 512, else 128.
        seed: the same seed gives the same numbers.
        holdout: share of rows to score on.
        drop: columns that are no inputs.
        missing: "auto" (fills inputs in and learns what a gap means), "error", "drop" (leaves rows out) or "impute"
            (fills inputs in, categories with the most common one).
        weights: a column of row weights.
        split_by: hold out whole groups of this column.
        time: hold out the latest rows by this column.
        out: a run directory to write; None keeps the run in memory, where `Run.save` finds it.
        checkpoint_every: seconds between checkpoints, where there is a run directory.
        tell: called with sentences about the table, the choice of the method and the time that it takes.
        progress: show a bar on stderr; None shows it on a terminal.
        tell_notes: tell the notes on the table and the choice, which are in `Run.notes` too.

    Example:
        >>> import credo, numpy as np, pandas as pd
        >>> x = np.linspace(-1, 1, 60)
        >>> frame = pd.DataFrame({"x": x, "town": ["Bath", "York"] * 30, "price": 3 * x + 10})
        >>> run = credo.tables.fit(frame, target="price", method="map", steps=50)
        >>> list(run.predict(frame).columns)
        ['mean', 'std', 'aleatoric_std', 'epistemic_std', 'lower', 'upper']
    """
    say: Tell = tell or (lambda sentence: None)
    path = os.path.realpath(table) if isinstance(table, str | os.PathLike) else ""
    job = Job(
        table=path, target=list(target_names(target)), task=task, method=method, network=network,
        settings=dict(settings or {}), steps=steps, budget=budget, batch_size=batch_size, seed=seed, holdout=holdout,
        missing=missing, weights=weights, split_by=split_by, time=time, every=checkpoint_every, drop=list(drop),
        effort=effort,
    )  # fmt: skip
    frame = None if path else read_source(table).frame
    folder = None if out is None else Path(out)
    with locked(folder):
        if folder is not None:
            check_folder(folder)
        prepared = prepare(job, frame, say)
        for note in prepared.notes if tell_notes else ():
            say(note)
        prepared = prepared._replace(job=dataclasses.replace(prepared.job, digest=digest(path or frame)))
        return train(prepared, folder, say, progress)


def resume(
    folder: str | os.PathLike[str], table: Any = None, *, tell: Tell | None = None, progress: bool | None = None
) -> Run:
    """Finish a run that was killed or stopped; the result is that of a run that was never stopped.

    Args:
        folder: the run directory.
        table: the data frame that the run learns from, where it was none of a file.
        tell, progress: as in `fit`.
    """
    folder, say = Path(folder), tell or (lambda sentence: None)
    if not job_file(folder).is_file():
        run = load(folder)
        say(f"The run {folder} is finished; there is nothing to resume.")
        return run
    with locked(folder):
        job = read_job(folder)
        frame = None if table is None else read_source(table).frame
        job.check_table(frame)
        return train(prepare(job, frame, say), folder, say, progress, resuming=True)


def check_folder(out: Path) -> None:
    """Raise a sentence where a new run cannot be written."""
    check_replaceable(out, is_run)
    if job_file(out).is_file():
        raise InputError(
            f"{out} holds an unfinished run: `credo resume {out}` finishes it; to start anew remove it or choose "
            "another --out."
        )


def train(prepared: Prepared, out: Path | None, say: Tell, progress: bool | None = None, resuming: bool = False) -> Run:
    """Fit, score and, where there is a folder, save."""
    job = prepared.job
    stale = [] if out is None else sorted(path.name for name in PAGES for path in out.glob(name))
    if out is not None:
        job.write(out)
    try:
        run = _scored(_fit(prepared, out, progress), prepared)
        stopped = run.fit.status.outcome in ("interrupted", "stopped by the disk")
        if out is None:
            return run
        run = _save(run, out, (CHECKPOINT,) if stopped else (), say)
    except (InputError, Refusal, OutOfMemory) as error:
        if out is not None and not resuming and not (isinstance(error, OutOfMemory) and _begun(out)):
            shutil.rmtree(out / CHECKPOINT, ignore_errors=True)
        raise
    except Unwritable as error:
        raise Unwritable(f"{error} Nothing is lost: then `credo resume {out}`.") from error
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"Stopped; `credo resume {out}` continues." if out else "Stopped.") from error
    if stopped:
        say(f"Stopped early: {run.folder} can be used as it is, and `credo resume {run.folder}` continues it.")
    if stale:
        names = ", ".join(stale)
        say(f"Removed, because they are about the fit that was here before: {names}. `credo report {out}` writes anew.")
    return run


def _begun(out: Path) -> bool:
    """Has a fit got as far as a checkpoint, from which it can go on where there is more memory?"""
    return Checkpoint(out / CHECKPOINT).newest() is not None


def _fit(prepared: Prepared, out: Path | None, progress: bool | None) -> Any:
    job = prepared.job

    def keep_job(event: Any) -> None:
        """Somebody may remove the folder: the next checkpoint makes it anew, and `credo resume` wants a job beside."""
        if out is not None and not job_file(out).exists():
            job.write(out)

    try:
        return prepared.resolved.fit(
            jax.random.key(job.seed), prepared.train[:3], callbacks=[keep_job], progress=progress,
            checkpoint=None if out is None else Checkpoint(out / CHECKPOINT, job.every),
        )  # fmt: skip
    except OSError as error:
        raise Unwritable(f"Cannot write to {out}: {error.strerror or error}; make room.") from error


def _scored(fit: Any, prepared: Prepared) -> Run:
    """The run in memory: with scores, with what held-out rows say against it, and with the time that it took."""
    encoder, job = prepared.encoder, prepared.job
    metrics = held_out_scores(fit, encoder, prepared.train, prepared.held, job.seed)
    against = doubts(metrics, prepared.train, prepared.held, len(encoder.classes or ()))
    fit = dataclasses.replace(fit, notes=(*fit.notes, *against))
    metrics |= prepared.watch.read() | ({} if job.planned is None else {"seconds_planned": job.planned})
    table = dataclasses.asdict(job)
    return Run(None, fit, encoder, metrics, table, _held_out_arrays(prepared), versions(), tuple(prepared.notes))


def _held_out_arrays(prepared: Prepared) -> dict[str, np.ndarray]:
    if prepared.held is None:
        return {}
    arrays = prepared.held._asdict() | ({} if prepared.groups is None else {"groups": prepared.groups})
    return {name: np.asarray(value[:HELD_OUT_ROWS]) for name, value in arrays.items()}


def _save(run: Run, out: Path, keep: tuple[str, ...], say: Tell) -> Run:
    """Write the run; a fit that is finished is never thrown away, whatever happened to its folder meanwhile."""
    try:
        return run.save(out, keep)
    except InputError as error:
        beside = next(p for i in itertools.count(2) if not (p := out.with_name(f"{out.name}-{i}")).exists())
        say(f"{error} The run is in {beside}.")
        return run.save(beside, keep)
