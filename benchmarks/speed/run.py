"""The driver: every case runs alone in a fresh process with an empty compilation cache, one after another.

Passes go through all cases in turn, so that a drift of the machine hits all alike, and ratios are taken within a pass.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import Records, fingerprint
from benchmarks.speed import machine, plan
from credo.evaluation.diagnostics import arviz_border

HERE = Path(__file__).resolve().parent
Row = dict[str, Any]
DROPPED = ("JAX_NUM_CPU_DEVICES", "JAX_COMPILATION_CACHE_DIR", "PYTHONPATH")


def run_all(
    cases: list[plan.Case],
    peers: str | None,
    passes: int,
    limit: float,
    quick: bool,
    records: Records,
    tell: Callable[[str], Any],
) -> list[Row]:
    """One row for each case and pass; those in `records` are not run again."""
    rows: list[Row] = []
    for number in range(passes):
        for case in cases:
            name = f"{case.key}-{number}-{fingerprint(case, quick, machine.description())}"
            row = records.read(name)
            if row is None:
                python = peers if case.is_peer and peers else sys.executable
                row = finish(run_case(case, python, 1000 * number, limit, quick), case, number)
                if "failed" not in row:
                    records.write(name, row)
            rows.append(row)
            tell(progress(row))
    return rows


def run_case(case: plan.Case, python: str, seed: int, limit: float, quick: bool) -> Row:
    """One fresh process: its record, or the reason why there is none."""
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        folder = Path(name)
        command = [python, "-m", "cases.worker", case.module, case.function, json.dumps(case.options)]
        command += ["--seed", str(seed), "--out", name, *(["--quick"] if quick else [])]
        before, watch = machine.gemm_gflops(), machine.Watch.start()
        try:
            done = subprocess.run(
                command, env=environment(case, folder), cwd=folder, capture_output=True, text=True, timeout=limit
            )
            error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
        except subprocess.TimeoutExpired:
            error = f"took more than {limit:.0f} s"
        row: Row = watch.stop()
        row["machine_gflops"] = [before, machine.gemm_gflops()]
        result = folder / "result.json"
        if not result.exists():
            return row | {"failed": error}
        record = json.loads(result.read_text(encoding="utf-8"))
        draws = folder / "function_draws.npy"
        if draws.exists():
            record = with_effective_samples(record, np.load(draws, allow_pickle=False))
        return row | record


def environment(case: plan.Case, folder: Path) -> dict[str, str]:
    """CPU only, cold caches, and only the virtual devices that the case asks for."""
    env = {k: v for k, v in os.environ.items() if k not in DROPPED}
    env |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(HERE)}
    env["XDG_CACHE_HOME"] = str(folder / "cache")
    if case.devices is not None:
        env["JAX_NUM_CPU_DEVICES"] = str(case.devices)
    return env


def with_effective_samples(record: Row, draws: np.ndarray) -> Row:
    """Turn runs per second into median effective samples of f(x) per second: one estimator for everybody.

    The bulk effective sample size and the split R-hat (rank-normalised) of f at each test input; draws are
    [chain, draw, point].
    """
    sizes = arviz_border.ess(draws)
    size = float(np.median(sizes))
    return record | {
        "values": [v * size for v in record["values"]],
        "cold_value": record["cold_value"] * size,
        "ess_median": size,
        "ess_min": float(sizes.min()),
        "rhat_max": float(arviz_border.rhat(draws).max()),
    }


def finish(row: Row, case: plan.Case, number: int) -> Row:
    """Add the case's names, the value and its spread."""
    names = {"key": case.key, "workload": case.workload, "library": case.library, "variant": case.variant}
    row = {**names, "unit": case.unit, "pass": number, **row}
    if "failed" not in row:
        values = row["values"]
        row["value"] = statistics.median(values) if values else None
        row["spread"] = [min(values), max(values)] if values else None
    return row


def progress(row: Row) -> str:
    """One line per finished case, for people who wait."""
    flag = f"  CONTENDED ({row['other_cores']:.2f} cores)" if row.get("contended") else ""
    head = f"pass {row['pass']}  {row['key']:36s}"
    if "failed" in row:
        return f"{head} FAILED: {row['failed']}{flag}"
    if row["value"] is None:
        return f"{head} too short to tell from compilation ({row['compile_seconds']:.2f} s){flag}"
    low, high = row["spread"]
    return (
        f"{head} {row['value']:12,.4g} {row['unit']}  [{low:,.4g}, {high:,.4g}]"
        f"  compile {row['compile_seconds']:.2f} s{flag}"
    )


def usable(path: str | None) -> str | None:
    """The peers' interpreter as an absolute path (links kept: a venv's python is one), if it is there."""
    if path is None:
        return None
    absolute = os.path.abspath(path)
    return absolute if os.access(absolute, os.X_OK) else None


def document(rows: list[Row], passes: int, quick: bool) -> dict[str, Any]:
    """All rows and ratios, for a program."""
    from benchmarks.speed import table

    facts = {"machine": machine.description(), "passes": passes, "quick": quick}
    return facts | {"rows": rows, "ratios": table.lines(rows)}
