"""Bayesian optimisation: regret against evaluations, by surrogate, beside random search and BoTorch.

    python benchmarks/optimisation.py --folder runs/optimisation [--problems branin,hartmann6] [--seeds 10]
        [--surrogates random,gp,deep_ensemble] [--peers .venv-peers/bin/python] [--plot regret.png]

Problems: Branin (2 settings), Hartmann-6, Ackley-10, and "svr": four settings of a support vector machine, scored by
five-fold cross-validation on the bundled diabetes table (regret: to the best value that any run found). All begin with
the same number of points that fill the space. With --peers, BoTorch (SingleTaskGP, LogExpectedImprovement) runs in its
own environment. Records go to --folder, one for each run: what was stopped goes on. The table has the mean ± standard
error of log10 of the final regret, and seconds for each `ask`.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import credo
from credo.applications.optimise import Float, Int, Optimizer, Space

LEAST = 1e-9  # regret: below it there is nothing to tell apart
CLOSE = 1e-3  # likewise, where the smallest value is only the best that was found
A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(point: dict[str, Any]) -> float:
    x, y = point["x0"], point["x1"]
    bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(point: dict[str, Any]) -> float:
    x = np.array([point[f"x{i}"] for i in range(6)])
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(A * (x - P) ** 2).sum(1)))


def ackley10(point: dict[str, Any]) -> float:
    x = np.array([point[f"x{i}"] for i in range(10)])
    bowl = -20 * math.exp(-0.2 * math.sqrt((x**2).mean()))
    return bowl - math.exp(np.cos(2 * math.pi * x).mean()) + 20 + math.e


def svr(point: dict[str, Any]) -> float:
    """Root mean squared error by cross-validation of a support vector machine on the diabetes table."""
    import pandas as pd
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from sklearn.svm import SVR

    table = pd.read_csv(Path(credo.__file__).parent / "data" / "bundled" / "diabetes.csv")
    y = table.pop("progression") if "progression" in table else table.pop(table.columns[-1])
    machine = SVR(C=point["C"], epsilon=point["epsilon"], gamma=point["gamma"])
    model = make_pipeline(PolynomialFeatures(point["degree"]), StandardScaler(), machine)
    folds = KFold(5, shuffle=True, random_state=0)
    x = pd.get_dummies(table).to_numpy(float)
    return float(-cross_val_score(model, x, y, cv=folds, scoring="neg_root_mean_squared_error").mean())


def cube(num: int, low: float, high: float) -> Space:
    return Space({f"x{i}": Float(low, high) for i in range(num)})


PROBLEMS: dict[str, tuple[Callable[[dict[str, Any]], float], Space, float | None, int]] = {
    "branin": (branin, Space({"x0": Float(-5, 10), "x1": Float(0, 15)}), 0.39788735773, 40),
    "hartmann6": (hartmann6, cube(6, 0, 1), -3.32236801, 60),
    "ackley10": (ackley10, cube(10, -32.768, 32.768), 0.0, 100),
    "svr": (
        svr,
        Space(
            {
                "C": Float(1e-2, 1e4, log=True),
                "epsilon": Float(1e-2, 1e2, log=True),
                "gamma": Float(1e-5, 1, log=True),
                "degree": Int(1, 2),
            }
        ),
        None,
        40,
    ),
}


def run(name: str, surrogate: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The record of one search, made or read."""
    function, space, _, evaluations = PROBLEMS[name]
    evaluations = options.evaluations or evaluations
    label = surrogate if surrogate in ("random", "botorch") else f"{surrogate}-{options.acquisition}"
    place = options.folder / f"{name}-{label}-{seed}.json"
    if place.exists():
        found = json.loads(place.read_text(encoding="utf-8"))
        if len(found["values"]) >= evaluations:
            return found
    if surrogate == "botorch":
        found = peer(options.peers, name, seed, evaluations)
    else:
        search = Optimizer(space, surrogate, options.acquisition, seed=seed)
        seconds = []
        while len(search.history) < evaluations:
            began = time.perf_counter()
            points = search.ask()
            if len(search.history) >= search.initial:
                seconds.append(time.perf_counter() - began)
            search.tell(points, [function(p) for p in points])
        found = {"values": [e.value for e in search.history], "seconds": seconds}
    options.folder.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(f"{name} {label} seed {seed}: best {min(found['values']):.6g}", file=sys.stderr, flush=True)
    return found


def peer(python: str, name: str, seed: int, evaluations: int) -> dict[str, Any]:
    """BoTorch in a process of its own; it asks for values line by line, so that both evaluate the same function."""
    function, space, _, _ = PROBLEMS[name]
    script = Path(__file__).with_name("optimisation_peer.py")
    count = max(5, 2 * (len(space.dimensions) + 1))
    first = space.sample(count, seed).tolist()
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
        asked = json.loads(line)
        values.append(function(space.decode(np.array([asked["row"]]))[0]))
        if asked["seconds"]:
            seconds.append(asked["seconds"])
        process.stdin.write(f"{values[-1]}\n")
    process.stdin.close()
    process.wait()
    return {"values": values, "seconds": seconds}


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

    made = Figure(figsize=(4.4 * len(curves), 3.9), dpi=110, layout="constrained")
    for area, (problem, groups) in zip(made.subplots(1, len(curves), squeeze=False)[0], curves.items()):
        dress(area, problem, "evaluations", "log10 regret")
        for i, (name, values) in enumerate(groups.items()):
            count, mean = np.arange(1, values.shape[1] + 1), values.mean(0)
            colour = MUTED if name == "random" else CYCLE[i % len(CYCLE)]
            label = name if problem == next(iter(curves)) else None
            area.plot(count, mean, color=colour, lw=1.8, label=label)
            if len(values) > 1:
                error = values.std(0, ddof=1) / len(values) ** 0.5
                area.fill_between(count, mean - error, mean + error, color=colour, alpha=0.18, lw=0)
    legend(made, 6)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where records are kept")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--surrogates", default="random,gp,deep_ensemble,infinite_width,hmc,laplace,bayes_by_backprop")
    parser.add_argument("--acquisition", default="log_ei")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, help="instead of each problem's own number")
    parser.add_argument("--peers", help="Python of an environment with BoTorch")
    parser.add_argument("--plot", type=Path, help="write the curves here")
    options = parser.parse_args()
    names = options.surrogates.split(",") + (["botorch"] if options.peers else [])
    curves, lines = {}, []
    for problem in options.problems.split(","):
        runs = {name: [run(problem, name, seed, options) for seed in range(options.seeds)] for name in names}
        shortest = min(len(r["values"]) for group in runs.values() for r in group)
        runs = {n: [r | {"values": r["values"][:shortest]} for r in group] for n, group in runs.items()}
        curves[problem] = regrets(runs, PROBLEMS[problem][2])
        for name, values in curves[problem].items():
            last, error = values[:, -1], float("nan")
            if len(last) > 1:
                error = last.std(ddof=1) / len(last) ** 0.5
            spent = [s for r in runs[name] for s in r["seconds"]]
            ask = f"{np.median(spent):8.2f}" if spent else f"{'':>8}"
            lines.append(f"{problem:<12}{name:<22}{last.mean():8.2f} ± {error:4.2f}{ask}")
    print(f"{'problem':<12}{'surrogate':<22}{'log10 regret':>15}{'s / ask':>8}")
    print("\n".join(lines))
    if options.plot:
        figure(curves).savefig(options.plot, dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
