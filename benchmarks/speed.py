"""How fast credo is beside NumPyro, BlackJAX and Pyro: one table of ratios, compilation and run apart.

    python benchmarks/speed.py --peers .venv-peers/bin/python [--only mfvi,hmc] [--passes 3] [--json FILE]

Every case runs alone in a fresh process with an empty compilation cache, one after another; the passes go
through all cases in turn, so that a drift of the machine hits all alike, and ratios are taken within a pass.
credo runs through its public interface only. ``--quick`` does a few steps of each case to prove that it runs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
from speed_cases import machine, plan, table  # noqa: E402

Row = dict[str, Any]
DROPPED = ("JAX_NUM_CPU_DEVICES", "JAX_COMPILATION_CACHE_DIR", "PYTHONPATH")


def environment(case: plan.Case, folder: Path) -> dict[str, str]:
    """CPU only, cold caches, and only the virtual devices that the case asks for."""
    env = {k: v for k, v in os.environ.items() if k not in DROPPED}
    env |= {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(HERE)}
    env["XDG_CACHE_HOME"] = str(folder / "cache")
    if case.devices is not None:
        env["JAX_NUM_CPU_DEVICES"] = str(case.devices)
    return env


def run_case(case: plan.Case, python: str, seed: int, args: argparse.Namespace) -> Row:
    """One fresh process: its record, or the reason why there is none."""
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        folder = Path(name)
        command = [python, "-m", "speed_cases.worker", case.key, "--seed", str(seed), "--out", name]
        command += ["--quick"] if args.quick else []
        before, watch = machine.gemm_gflops(), machine.Watch.start()
        try:
            done = subprocess.run(
                command,
                env=environment(case, folder),
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=args.limit,
            )
            error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]
        except subprocess.TimeoutExpired:
            error = f"took more than {args.limit:.0f} s"
        row: Row = watch.stop()
        row["machine_gflops"] = [before, machine.gemm_gflops()]
        result = folder / "result.json"
        if not result.exists():
            return row | {"failed": error}
        record = json.loads(result.read_text())
        draws = folder / "function_draws.npy"
        if draws.exists():
            record = with_effective_samples(record, np.load(draws))
        return row | record


def with_effective_samples(record: Row, draws: np.ndarray) -> Row:
    """Turn runs per second into median effective samples of f(x) per second: one estimator for everybody.

    The bulk effective sample size and the split R-hat (rank-normalised) of f at each test input; draws are
    [chain, draw, point].
    """
    import arviz

    data = arviz.convert_to_dataset({"f": np.asarray(draws, np.float64)})
    sizes = np.asarray(arviz.ess(data, method="bulk")["f"])
    size = float(np.median(sizes))
    return record | {
        "values": [v * size for v in record["values"]],
        "cold_value": record["cold_value"] * size,
        "ess_median": size,
        "ess_min": float(sizes.min()),
        "rhat_max": float(np.asarray(arviz.rhat(data)["f"]).max()),
    }


def finish(row: Row, case: plan.Case, number: int) -> Row:
    """Add the case's names, the value and its spread."""
    names = {"key": case.key, "workload": case.workload, "library": case.library, "variant": case.variant}
    row = names | {"unit": case.unit, "pass": number} | row
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


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="interpreter that has the peers (make bench-peers)")
    parser.add_argument("--only", default="", help="prefixes of cases, such as mfvi,hmc/credo")
    parser.add_argument("--passes", type=int, default=1, help="rounds through all cases")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that one case may take")
    parser.add_argument("--json", type=Path, help="write every row and ratio here")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: checks that cases run, no more")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    return parser.parse_args()


def main() -> int:
    """Run the cases, print the table; 1 when a case failed."""
    args = options()
    cases = plan.chosen(args.only)
    if args.list:
        print("\n".join(c.key for c in cases))
        return 0
    peers = usable(args.peers)
    if peers is None and any(c.is_peer for c in cases):
        reason = f"no interpreter at {args.peers}" if args.peers else "no --peers interpreter given"
        print(f"Peers are skipped: {reason}; `make bench-peers` makes one.", file=sys.stderr)
        cases = [c for c in cases if not c.is_peer]
    rows: list[Row] = []
    for number in range(args.passes):
        for case in cases:
            python = peers if case.is_peer and peers else sys.executable
            rows.append(finish(run_case(case, python, seed=1000 * number, args=args), case, number))
            print(progress(rows[-1]), file=sys.stderr, flush=True)
            if args.json:
                save(args.json, rows, args)
    if args.quick:
        print("Quick sizes: this shows that the cases run; the numbers and verdicts mean nothing.\n")
    print(table.markdown(table.lines(rows)))
    return int(any("failed" in row for row in rows))


def save(path: Path, rows: list[Row], args: argparse.Namespace) -> None:
    """Rows and ratios so far: a long benchmark that is stopped keeps what it has."""
    record = {
        "machine": machine.description(),
        "passes": args.passes,
        "quick": args.quick,
        "rows": rows,
        "ratios": table.lines(rows),
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
