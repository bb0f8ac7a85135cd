"""Bayesian optimisation: regret against evaluations, by surrogate, beside random search and BoTorch.

    python -m benchmarks.optimisation --folder runs/optimisation [--problems branin,hartmann6] [--seeds 10]
        [--surrogates random,gp,deep_ensemble] [--peers .venv-peers/bin/python] [--jobs 14] [--plot regret.png]

Problems: Branin (2 settings), Hartmann-6, Ackley-10 with its minimum at a point that the seed chooses, and "svr": four
settings of a support vector machine, scored by five-fold cross-validation on the bundled diabetes table (regret: to the
best value that any run found). All begin with the same points, which fill the space. With --peers, BoTorch
(SingleTaskGP, LogExpectedImprovement) runs in its own environment. Records go to --folder, one for each run: what was
stopped goes on. --jobs processes have one core each. The table has the mean ± standard error of log10 of the final
regret and its median, seconds for each `ask`, and seconds of a core for each run.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from optimisation_problems import PROBLEMS, objective

from credo.applications.optimise import Optimizer
from credo.storage.atomic_write import write_file

LEAST = 1e-9  # regret: below it there is nothing to tell apart
CLOSE = 1e-3  # likewise, where the smallest value is only the best that was found
SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# The longest runs first, so that no core is left with one at the end.
LONGEST = ("ackley10", "hartmann6", "svr", "branin")
Cell = tuple[str, str, int]


def record_path(cell: Cell, options: argparse.Namespace) -> Path:
    """The record of a run."""
    problem, surrogate, seed = cell
    label = surrogate if surrogate in ("random", "botorch") else f"{surrogate}-{options.acquisition}"
    return options.folder / f"{problem}-{label}-{seed}.json"


def read(cell: Cell, options: argparse.Namespace) -> dict[str, Any] | None:
    """What a run found, if it is there whole."""
    if not record_path(cell, options).exists():
        return None
    record = json.loads(record_path(cell, options).read_text(encoding="utf-8"))
    return record if len(record["values"]) >= (options.evaluations or PROBLEMS[cell[0]].evaluations) else None


def run(cell: Cell, options: argparse.Namespace) -> None:
    """Make the record of one search."""
    problem, surrogate, seed = cell
    evaluations = options.evaluations or PROBLEMS[problem].evaluations
    began = core_seconds()
    if surrogate == "botorch":
        record = peer(options.peers, problem, seed, evaluations)
    else:
        function = objective(problem, seed)
        search = Optimizer(PROBLEMS[problem].space, surrogate, options.acquisition, seed=seed)
        seconds = []
        while len(search.history) < evaluations:
            start = time.perf_counter()
            points = search.ask()
            if len(search.history) >= search.initial:
                seconds.append(time.perf_counter() - start)
            search.tell(points, [function(p) for p in points])
        record = {"values": [e.value for e in search.history], "seconds": seconds}
    record["cpu"] = core_seconds() - began
    write_file(record_path(cell, options), json.dumps(record) + "\n")
    print(f"{problem} {surrogate} seed {seed}: best {min(record['values']):.6g}", file=sys.stderr, flush=True)


def core_seconds() -> float:
    """Seconds of a core that this process and the peers it waited for have used."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def peer(python: str, problem: str, seed: int, evaluations: int) -> dict[str, Any]:
    """BoTorch in a process of its own; it asks for values line by line, so that both evaluate the same function."""
    function, space = objective(problem, seed), PROBLEMS[problem].space
    script = Path(__file__).with_name("optimisation_peer.py")
    search = Optimizer(space, "random", seed=seed)
    first = space.code(search.ask(search.initial)).tolist()
    process = subprocess.Popen([python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"first": first, "evaluations": evaluations, "seed": seed}) + "\n")
    values, seconds = [], []
    for _ in range(evaluations):
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{python} ended without an answer: is BoTorch installed there?")
        message = json.loads(line)
        values.append(function(space.decode(np.array([message["row"]]))[0]))
        if message["seconds"]:
            seconds.append(message["seconds"])
        process.stdin.write(f"{values[-1]}\n")
    process.stdin.close()
    process.wait()
    return {"values": values, "seconds": seconds}


def work(cells: Any, options: argparse.Namespace) -> None:
    """Runs until none is left."""
    while (cell := cells.get()) is not None:
        try:
            run(cell, options)
        except Exception as error:  # the other runs go on; the table says what is missing
            print(f"{cell} failed: {error!r}", file=sys.stderr, flush=True)


def spread(cells: list[Cell], options: argparse.Namespace) -> None:
    """Make records in several processes, each with one core and one thread."""
    context = multiprocessing.get_context("spawn")
    waiting = context.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    os.environ |= dict.fromkeys(SINGLE, "1")
    workers = []
    for number in range(options.jobs):
        worker = context.Process(target=work, args=(waiting, options))
        if cores:  # a process inherits its cores, and JAX takes as many threads as it has cores
            os.sched_setaffinity(0, {cores[number % len(cores)]})
        worker.start()
        workers.append(worker)
    if cores:
        os.sched_setaffinity(0, cores)
    for cell in [*sorted(cells, key=lambda c: LONGEST.index(c[0])), *[None] * options.jobs]:
        waiting.put(cell)
    for worker in workers:
        worker.join()


def regrets(runs: dict[str, list[dict[str, Any]]], best: float | None) -> dict[str, np.ndarray]:
    """log10 of the regret after each evaluation [seed, evaluation], by surrogate."""
    least = min(min(r["values"]) for group in runs.values() for r in group) if best is None else best
    floor = CLOSE if best is None else LEAST
    return {
        name: np.log10(np.maximum(np.minimum.accumulate([r["values"] for r in group], axis=1) - least, floor))
        for name, group in runs.items()
    }


def figure(curves: dict[str, dict[str, np.ndarray]]) -> Any:
    from matplotlib.figure import Figure

    from credo.report.style import CYCLE, MUTED, dress, legend

    across = min(2, len(curves))
    down = -(-len(curves) // across)
    picture = Figure(figsize=(5.0 * across, 3.4 * down + 0.8), dpi=120, layout="constrained")
    areas = picture.subplots(down, across, squeeze=False).ravel()
    for area in areas[len(curves) :]:
        area.set_axis_off()
    for area, (problem, groups) in zip(areas, curves.items()):
        dress(area, problem, "evaluations", "log10 regret")
        for i, (name, values) in enumerate(groups.items()):
            count, mean = np.arange(1, values.shape[1] + 1), values.mean(0)
            colour = MUTED if name == "random" else CYCLE[i % len(CYCLE)]
            label = name if problem == next(iter(curves)) else None
            area.plot(count, mean, color=colour, lw=1.8, label=label)
            if len(values) > 1:
                error = values.std(0, ddof=1) / len(values) ** 0.5
                area.fill_between(count, mean - error, mean + error, color=colour, alpha=0.18, lw=0)
    legend(picture, 4)
    return picture


def table(cells: list[Cell], options: argparse.Namespace) -> dict[str, dict[str, np.ndarray]]:
    """Print what was found, and give log10 of the regrets by problem and surrogate."""
    curves = {}
    print(f"{'problem':<10}{'surrogate':<20}{'runs':>5}{'log10 regret':>16}{'median':>10}{'s / ask':>9}{'cpu s':>8}")
    for problem in dict.fromkeys(c[0] for c in cells):
        runs: dict[str, list[dict[str, Any]]] = {}
        for cell in cells:
            if cell[0] == problem and (record := read(cell, options)):
                runs.setdefault(cell[1], []).append(record)
        if not runs:
            continue
        shortest = min(len(r["values"]) for group in runs.values() for r in group)
        runs = {n: [r | {"values": r["values"][:shortest]} for r in group] for n, group in runs.items()}
        curves[problem] = regrets(runs, PROBLEMS[problem].least)
        for name, values in curves[problem].items():
            last = values[:, -1]
            error = last.std(ddof=1) / len(last) ** 0.5 if len(last) > 1 else float("nan")
            spent = [s for r in runs[name] for s in r["seconds"]]
            ask = f"{np.median(spent):9.2f}" if spent else f"{'':>9}"
            cpu = np.mean([r.get("cpu", np.nan) for r in runs[name]])
            print(
                f"{problem:<10}{name:<20}{len(last):>5}{last.mean():9.2f} ± {error:4.2f}{10 ** np.median(last):10.2g}"
                f"{ask}{cpu:8.0f}"
            )
    return curves


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where records are kept")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--surrogates", default="random,gp,infinite_width,deep_ensemble,hmc,laplace,bayes_by_backprop")
    parser.add_argument("--acquisition", default="log_ei")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="100 and more are for choosing settings")
    parser.add_argument("--evaluations", type=int, help="instead of each problem's own number")
    parser.add_argument("--peers", help="Python of an environment with BoTorch")
    parser.add_argument("--jobs", type=int, default=1, help="processes; each has one core")
    parser.add_argument("--plot", type=Path, help="write the curves here")
    options = parser.parse_args()
    names = options.surrogates.split(",") + (["botorch"] if options.peers else [])
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    cells = [(problem, name, seed) for problem in options.problems.split(",") for name in names for seed in seeds]
    missing = [cell for cell in cells if read(cell, options) is None]
    if options.jobs > 1:
        spread(missing, options)
    else:
        for cell in missing:
            run(cell, options)
    curves = table(cells, options)
    if options.plot:
        figure(curves).savefig(options.plot, dpi=110)
    return int(any(read(cell, options) is None for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
