"""One process for each set, split and model, and nothing else at the same time; what is on record is not run again."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.portfolio import scores
from benchmarks.portfolio.rivals import CREDO, RIVALS, credo_options, mark, refusal
from benchmarks.portfolio.sets import DataSet, load
from benchmarks.records import Records, without_accelerator

NAME, SEED, LATE = "portfolio", 0, "took longer than it may"
ROOT = Path(benchmarks.__file__).resolve().parents[1]
Tell = Callable[[str], Any]


def study(
    names: Iterable[str],
    models: Iterable[str],
    splits: Iterable[int] | None,
    data_dir: Path | None,
    peers: str | None,
    limit: float,
    records: Records,
    tell: Tell,
) -> None:
    """Run what is not on record, models in the outer loop: a study that is stopped has some of them on all sets."""
    loaded: dict[str, DataSet] = {}
    for model in models:
        for name in names:
            data = loaded.setdefault(name, load(name, data_dir))
            for split in range(len(data.splits)) if splits is None else splits:
                if split >= len(data.splits):
                    continue
                digest = mark(model, data, split)
                key = f"{NAME}-{name}-{model}-{split}-{digest}"
                if not _done(records.read(key), limit):
                    record = cell(model, data, split, peers, limit)
                    if record is not None:
                        records.write(key, record | {"fingerprint": digest})
                    tell(_progress(model, name, split, record))


def _done(record: dict[str, Any] | None, limit: float) -> bool:
    """Is it on record? What ran out of time is tried again where it has more."""
    return record is not None and record.get("limit", limit) >= limit


def cell(model: str, data: DataSet, split: int, peers: str | None, limit: float) -> dict[str, Any] | None:
    """The record of one piece of work; None where somebody ended its process."""
    train, new = data.splits[split]
    inputs = data.frame.drop(columns=data.target)
    facts: dict[str, Any] = {
        "set": data.name, "task": data.task, "model": model, "split": split, "rows": len(train),
        "columns": inputs.shape[1], "machine": without_accelerator(), "refused": refusal(model, data, len(train)),
    }  # fmt: skip
    if facts["refused"]:
        return facts
    y = targets(data)
    with tempfile.TemporaryDirectory(prefix="portfolio-") as name:
        folder = Path(name)
        inputs.iloc[train].reset_index(drop=True).to_parquet(folder / "train.parquet")
        inputs.iloc[new].reset_index(drop=True).to_parquet(folder / "new.parquet")
        np.save(folder / "targets.npy", y[train])
        options = credo_options(model) if model in CREDO else {}
        job = {"task": data.task, "seed": SEED, "options": options}
        (folder / "facts.json").write_text(json.dumps(job), encoding="utf-8")
        if model in CREDO:
            np.save(folder / "truth.npy", y[new])
        began, failed = _process(model, folder, peers, limit)
        if failed is not None:
            late = {"limit": limit} if failed.endswith(LATE) else {}
            return facts | late | {"refused": failed} if failed else None
        times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
        times["seconds"] = times.pop("done") - began
        return facts | times | scores.means(_rows(folder, y[train], y[new], data.task))


def targets(data: DataSet) -> np.ndarray:
    """Numbers, or codes of classes in the order of their labels."""
    if data.task == "regression":
        return data.frame[data.target].to_numpy(np.float64)
    return np.unique(data.frame[data.target].to_numpy(), return_inverse=True)[1].astype(np.int64)


def _process(model: str, folder: Path, peers: str | None, limit: float) -> tuple[float, str | None]:
    """Run it; the time of its start, and why it failed: an empty sentence where somebody ended it."""
    if model in CREDO:
        command = [sys.executable, "-m", "benchmarks.portfolio.credo_worker", str(folder)]
    else:
        module = RIVALS[model].module
        command = [peers or sys.executable, "-m", "benchmarks.portfolio.peers.worker", module, model, str(folder)]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH") if model in CREDO else None]))
    variables = {"PYTHONPATH": path, "OMP_WAIT_POLICY": "passive"}  # threads that wait for others leave them the cores
    began = time.time()
    try:
        completed = subprocess.run(
            command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return began, f"{model} {LATE}"
    if completed.returncode == 0:
        return began, None
    message = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[-1]
    return began, "" if completed.returncode < 0 else f"{model} failed: {message[:300]}"


def _rows(folder: Path, trained_on: np.ndarray, truth: np.ndarray, task: str) -> scores.Rows:
    name = "rows.npz" if (folder / "rows.npz").is_file() else "answer.npz"
    with np.load(folder / name, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    if name == "rows.npz":
        return arrays
    if task == "regression":
        return scores.of_normals(arrays["mean"], arrays["std"], truth, trained_on)
    return scores.of_classes(arrays["probs"], truth)


def _progress(model: str, name: str, split: int, record: dict[str, Any] | None) -> str:
    if record is None:
        return f"{name} {model} {split}: ended by somebody, nothing is kept"
    if record["refused"]:
        return f"{name} {model} {split}: {record['refused']}"
    return f"{name} {model} {split}: {record['log_likelihood']:.3f} in {record['seconds']:.1f} s"
