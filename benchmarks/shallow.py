"""Sweeps per second of `gibbs` against the same sweep in careful NumPy (the oracle of its tests).

    python -m benchmarks.shallow [--rows 100] [--inputs 2] [--nodes 10] [--chains 4] [--json FILE]

Both sides run the same sweep: every node once by Metropolis with the coefficients integrated out, then coefficients,
hyper-parameters and noise. NumPy's random numbers are drawn in bulk before its clock starts, credo's are part of its
time. The NumPy chains run one after another with one thread of BLAS, and again in as many processes as there are cores;
the better of the two counts. Compilation is reported apart.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.methods.shallow.gibbs import Gibbs
from credo.priors.node_hierarchy import unpack

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
import numpy_gibbs

PHASE = Phase("chain", 1, "full", keeps_draws=True)


def data(rows: int, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of standard normal inputs with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, inputs))
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, -1] + 0.2 * rng.normal(size=rows)
    return x.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)


def model(nodes: int) -> credo.Model:
    noise = credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(2.0, 0.1))
    return credo.Model(credo.networks.shallow(nodes), credo.priors.node_hierarchy(), noise)


def ours(options: argparse.Namespace, sweeps: int) -> dict[str, float]:
    """credo: sweeps of all chains per second, after a run that compiles."""
    method = Gibbs(warmup=100, chains=options.chains, passes=1)
    x, y = data(options.rows, options.inputs)
    timings = []
    for seed in (0, 1):
        fit = credo.fit(
            jax.random.key(seed), model(options.nodes), (x, y), method, steps=sweeps, thin=10, progress=False
        )
        timings.append(fit.timing)
    rate = options.chains * (sweeps + 100) / timings[1]["seconds_run"]
    return {"sweeps_per_second": rate, "seconds_compile": timings[0]["seconds_compile"]}


def start(options: argparse.Namespace, sweeps: int) -> tuple[Any, ...]:
    """Inputs, targets, a state and variates of many sweeps for NumPy."""
    x, y = data(options.rows, options.inputs)
    method, problem = Gibbs(warmup=100, passes=1), model(options.nodes)
    batch = Batch(x, y[:, None], np.ones(len(y), np.float32), np.float32(len(y)))
    with jax.enable_x64(True):
        state = method.init(jax.random.key(0), problem, problem.init(jax.random.key(1), batch), batch)
        draw = jax.jit(jax.vmap(lambda k: method.noise(k, problem, PHASE, state)))
        variates = draw(jax.random.split(jax.random.key(2), sweeps))
        root = np.asarray(unpack(jnp.asarray(state.hyper["hidden"]["root"]), options.inputs + 1))
        walk, hyper = state.walk, state.hyper
        oracle = numpy_gibbs.State(
            np.array(state.gamma), np.array(state.coefs[0]), float(hyper["output"]["mean"]),
            float(np.exp(hyper["output"]["log_scale"])), np.array(hyper["hidden"]["mean"]), root,
            float(np.exp(state.noise["log_scale"][0])), np.array(walk.log_scale), np.array(walk.root),
            np.array(walk.mean), np.array(walk.covariance),
        )  # fmt: skip
    plain = {name: np.asarray(v) for name, v in variates.items() if name != "key"}
    inputs = np.column_stack([np.ones(len(x)), x]).astype(np.float64)
    return inputs, y.astype(np.float64), oracle, plain


def chain(task: tuple[Any, ...]) -> float:
    """Seconds of one NumPy chain."""
    inputs, targets, state, variates = task
    sweeps = len(variates["log_u"])
    each = [{name: v[i] for name, v in variates.items()} for i in range(sweeps)]
    hyper = numpy_gibbs.Hyper()
    began = time.perf_counter()
    for v in each:
        state = numpy_gibbs.sweep(v, inputs, targets, state, hyper, passes=1, fresh=0.1, warmup=100)
    return time.perf_counter() - began


def theirs(options: argparse.Namespace, sweeps: int) -> float:
    """NumPy: sweeps of all chains per second, one after another or in processes, whichever is faster."""
    task = start(options, sweeps)
    alone = options.chains * sweeps / sum(chain(task) for _ in range(options.chains))
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.map(chain, [task] * options.chains)  # imports and first calls
        began = time.perf_counter()
        pool.map(chain, [task] * options.chains)
        together = options.chains * sweeps / (time.perf_counter() - began)
    return max(alone, together)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 100), ("inputs", 2), ("nodes", 10), ("chains", 4), ("passes", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for _ in range(options.passes):
        slow, fast = theirs(options, 300), ours(options, 20_000)
        rows.append({"numpy": slow, **fast, "ratio": fast["sweeps_per_second"] / slow})
        print(
            f"gibbs {fast['sweeps_per_second']:,.0f} sweeps/s, NumPy {slow:,.0f}: {rows[-1]['ratio']:.1f}× "
            f"({options.rows} rows, {options.inputs} inputs, {options.nodes} nodes, {options.chains} chains; "
            f"compiling {fast['seconds_compile']:.1f} s)",
            flush=True,
        )
    print(f"median ratio {np.median([r['ratio'] for r in rows]):.1f}×")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
