"""How fast the Laplace approximation is beside laplace-torch: the same network, rows and predictions in one run.

    python -m benchmarks.laplace --peers .venv-peers/bin/python [--data-dir DIR] [--only kfac] [--json FILE]

A 784-100-10 classifier and 10,000 rows of MNIST (DIR/mnist/mnist.npz or DIR/mnist.npz; made-up digits without it). Each
library fits the curvature at the same weights and predicts by the probit formula. Every case runs alone in a fresh
process with an empty compilation cache; the first call (which compiles) is apart from the best of the following ones.
Cases during which other processes took more than a tenth of a core are marked CONTENDED: do them again later.
The peers' environment: python3 -m venv .venv-peers && .venv-peers/bin/pip install torch==2.13.0 laplace-torch
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS, BATCH = 10_000, 1000
CASES = {"last_layer": 2000, "kfac": 2000, "diagonal": 2000}  # inputs that credo predicts
PEER_POINTS = {"last_layer": 2000, "kfac": 200, "diagonal": 0}  # laplace-torch needs seconds for a few hundred
PEER_ROWS = {"diagonal": 1000}  # its time is linear in the rows; scaled to all of them
BARS = {("last_layer", "fit"): 5, ("last_layer", "predict"): 10, ("kfac", "fit"): 3, ("kfac", "predict"): 100}
LIMITS = {("diagonal", "fit"): 1.0}  # seconds
MEMORY = 1000.0  # MB


def digits(folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    """12,000 rows of digits: pixels in [0, 1] and classes."""
    for name in ("mnist/mnist.npz", "mnist.npz"):
        path = Path(folder or ".") / name
        if folder and path.exists():
            data = np.load(path)
            return data["x_train"][:12_000].reshape(-1, 784).astype(np.float32) / 255, data["y_train"][:12_000].astype(
                int
            )
    rng = np.random.default_rng(0)
    centres = rng.random((10, 784)) < 0.2
    labels = rng.integers(0, 10, 12_000)
    noise = rng.random((12_000, 784)) * (rng.random((12_000, 784)) < 0.3)
    return np.clip(0.7 * centres[labels] + noise, 0, 1).astype(np.float32), labels


def trained(inputs: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of a classifier after a few passes of gradient descent, for both libraries."""
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=(784, 100)) / 28, rng.normal(size=(100, 10)) / 10
    b, c = np.zeros(100), np.zeros(10)
    for step in range(300):
        rows = rng.integers(0, len(inputs), 128)
        x, y = inputs[rows], np.eye(10)[labels[rows]]
        hidden = np.maximum(x @ w + b, 0)
        logits = hidden @ v + c
        g = np.exp(logits - logits.max(1, keepdims=True))
        g = (g / g.sum(1, keepdims=True) - y) / len(x)
        back = (g @ v.T) * (hidden > 0)
        rate = 0.5 * (1 - step / 300)
        w, b, v, c = w - rate * x.T @ back, b - rate * back.sum(0), v - rate * hidden.T @ g, c - rate * g.sum(0)
    return {k: x.astype(np.float32) for k, x in {"w": w, "b": b, "v": v, "c": c}.items()}


def timed(run: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Seconds of the first call and of the best of the following ones: interference only adds."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:])


def credo_case(case: str, data: dict[str, np.ndarray]) -> dict[str, Any]:
    """Curvature and prediction through credo's public interface."""
    import jax

    import credo
    from credo.core.network import Variables

    model = credo.Model(credo.networks.mlp([100]), credo.priors.normal(1.0), credo.likelihoods.categorical(10))
    layers = {"hidden_0": ("w", "b"), "output": ("v", "c")}
    network = {n: {"kernel": data[k].T, "bias": data[b]} for n, (k, b) in layers.items()}
    start = Variables({"network": network, "likelihood": {}, "prior": {}}, {})
    method = credo.methods.Laplace(structure=case, train=False)
    train, test = (data["x"][:ROWS], data["y"][:ROWS]), data["x"][ROWS : ROWS + CASES[case]]
    box: dict[str, Any] = {}

    def fit() -> None:
        box["fit"] = credo.fit(jax.random.key(0), model, train, method, start=start, batch_size=BATCH, progress=False)

    def predict() -> None:
        box["probs"] = credo.predict(jax.random.key(1), box["fit"], test, mode="probit").probs

    first_fit, fit_seconds = timed(fit, 15)
    first_predict, predict_seconds = timed(predict, 15)
    assert np.isfinite(box["probs"]).all()
    return {
        "fit": fit_seconds, "predict": predict_seconds / len(test), "compile_fit": first_fit - fit_seconds,
        "compile_predict": first_predict - predict_seconds, "probs": box["probs"],
    }  # fmt: skip


def torch_case(case: str, data: dict[str, np.ndarray]) -> dict[str, Any]:
    """The same with laplace-torch."""
    sys.path.pop(0)  # this file's own name would hide the library
    import torch
    from laplace import Laplace

    network = torch.nn.Sequential(torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
    with torch.no_grad():
        for layer, (k, b) in zip((network[0], network[2]), (("w", "b"), ("v", "c"))):
            layer.weight.copy_(torch.tensor(data[k].T))
            layer.bias.copy_(torch.tensor(data[b]))
    rows, points = PEER_ROWS.get(case, ROWS), PEER_POINTS[case]
    pairs = torch.utils.data.TensorDataset(torch.tensor(data["x"][:rows]), torch.tensor(data["y"][:rows]))
    loader = torch.utils.data.DataLoader(pairs, batch_size=min(BATCH, 100 if case == "diagonal" else BATCH))
    test = torch.tensor(data["x"][ROWS : ROWS + points])
    subset, structure = ("last_layer", "full") if case == "last_layer" else ("all", {"kfac": "kron"}.get(case, "diag"))
    box: dict[str, Any] = {}

    def fit() -> None:
        box["laplace"] = Laplace(network, "classification", subset_of_weights=subset, hessian_structure=structure)
        box["laplace"].fit(loader)

    def predict() -> None:
        parts = [box["laplace"](x, pred_type="glm", link_approx="probit") for x in test.split(100)]
        box["probs"] = torch.cat(parts).detach().numpy()

    first_fit, fit_seconds = timed(fit, 1 if case == "diagonal" else 5)
    scale = ROWS / rows
    record = {"fit": fit_seconds * scale, "compile_fit": max(0.0, first_fit - fit_seconds), "rows_timed": rows}
    if points:
        first, seconds = timed(predict, 3)
        record |= {"predict": seconds / points, "compile_predict": max(0.0, first - seconds), "probs": box["probs"]}
    return record


def worker(library: str, case: str, folder: Path) -> None:
    """One case in its own process: a record and the probabilities."""
    data = dict(np.load(folder / "data.npz"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    record = (credo_case if library == "credo" else torch_case)(case, data)
    probs = record.pop("probs", None)
    if probs is not None:
        np.save(folder / f"{library}_{case}.npy", probs)
    record |= {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "memory_data": before}
    (folder / f"{library}_{case}.json").write_text(json.dumps(record))


def run(library: str, case: str, python: str, folder: Path) -> dict[str, Any]:
    """The record of a case, or the reason why there is none."""
    from benchmarks.speed import machine  # here alone: peers run this file without credo

    env = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    env["XDG_CACHE_HOME"] = str(folder / f"cache_{case}")
    env.pop("JAX_DISABLE_MOST_OPTIMIZATIONS", None)
    # OpenBLAS's threads wait by spinning: beside other work two of them were twenty times slower than one.
    env["OPENBLAS_NUM_THREADS"] = "1"
    command = [python, __file__, "--worker", library, "--only", case, "--folder", str(folder)]
    watch = machine.Watch.start()
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    around = watch.stop()
    path = folder / f"{library}_{case}.json"
    if not path.exists():
        return around | {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    return around | json.loads(path.read_text())


def lines(records: dict[str, dict[str, Any]], folder: Path) -> list[str]:
    """The table: seconds of each library, ratios and bars."""
    table = ["| case | what | credo | laplace-torch | ratio | bar | compile |", "|---|---|---|---|---|---|---|"]
    for case in CASES:
        mine, peer = (records.get(f"{library}/{case}", {}) for library in ("credo", "torch"))
        for what in ("fit", "predict"):
            if what not in mine:
                table.append(f"| {case} | {what} | {mine.get('failed', 'not run')} | | | | |")
                continue
            unit = (lambda s: f"{s:.3f} s") if what == "fit" else (lambda s: f"{1 / s:,.0f} rows/s")
            ratio = peer[what] / mine[what] if what in peer else None
            bar = BARS.get((case, what))
            limit = LIMITS.get((case, what))
            met = (bar is None or ratio is None or ratio >= bar) and (limit is None or mine[what] <= limit)
            goal = f"≥ {bar}× " if bar else f"≤ {limit} s " if limit else ""
            measurable = limit is not None or ratio is not None
            verdict = goal + ("" if not goal or not measurable else "met" if met else "MISSED")
            other = unit(peer[what]) if what in peer else peer.get("failed", "not run")
            shown = "" if ratio is None else f"{ratio:,.1f}×"
            compiling = f"{mine[f'compile_{what}']:.1f} s"
            table.append(f"| {case} | {what} | {unit(mine[what])} | {other} | {shown} | {verdict} | {compiling} |")
        if any(record.get("contended") for record in (mine, peer)):
            cores = max(record.get("other_cores", 0.0) for record in (mine, peer))
            table.append(f"| {case} | CONTENDED: others took {cores:.1f} cores | | | | | |")
        if "memory" in mine:
            verdict = "met" if mine["memory"] <= MEMORY else "MISSED"
            other = f"{peer['memory']:.0f} MB" if "memory" in peer else ""
            table.append(
                f"| {case} | peak memory | {mine['memory']:.0f} MB | {other} | | ≤ {MEMORY:.0f} MB {verdict} | |"
            )
        both = [folder / f"{library}_{case}.npy" for library in ("credo", "torch")]
        if all(path.exists() for path in both):
            a, b = (np.load(path) for path in both)
            count = min(len(a), len(b))
            table.append(
                f"| {case} | largest difference of probabilities | {np.abs(a[:count] - b[:count]).max():.1e} | | | | |"
            )
    return table


def main() -> int:
    """Run the cases and print the table; 1 when one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="interpreter that has laplace-torch")
    parser.add_argument("--data-dir", help="folder with MNIST; made-up digits without it")
    parser.add_argument("--only", default=",".join(CASES), help="cases, such as kfac,diagonal")
    parser.add_argument("--json", type=Path, help="write the records here")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.only, args.folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="laplace-") as name:
        folder, records = Path(name), {}
        x, y = digits(args.data_dir)
        np.savez(folder / "data.npz", x=x, y=y, **trained(x[:ROWS], y[:ROWS]))
        for case in args.only.split(","):
            records[f"credo/{case}"] = run("credo", case, sys.executable, folder)
            if args.peers:
                records[f"torch/{case}"] = run("torch", case, os.path.abspath(args.peers), folder)
        print("\n".join(lines(records, folder)))
        if args.json:
            args.json.write_text(json.dumps(records, indent=1) + "\n")
    return int(any("failed" in record for record in records.values()))


if __name__ == "__main__":
    sys.exit(main())
