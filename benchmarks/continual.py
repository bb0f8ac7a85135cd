"""Continual learning on MNIST: how much of the first tasks is left after the last.

    python -m benchmarks.continual --data-dir DIR --problem split [--coreset 40] [--methods vcl,ewc] [--epochs 20]

Protocols of Nguyen et al. (2018), Variational continual learning. split: five tasks of two digits each, two hidden
layers of 256 ReLU units and a head for each task. permuted: ten tasks, the pixels of each in another order, two hidden
layers of 100 ReLU units and one head. The score is the mean test accuracy over all tasks after the last; bars are
97.0 % (98.4 % with 40 rows kept of each task) and 90 % (93 % with 200). Test rows are scored, never used for a choice.
DIR holds mnist/mnist.npz or mnist.npz. Rows are shuffled by the seed; `--rows` takes fewer, for trials, and
`--validation` scores on the last 10,000 training rows instead, which is how settings are chosen.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo

BARS = {("split", False): 0.97, ("split", True): 0.984, ("permuted", False): 0.90, ("permuted", True): 0.93}
WIDTHS = {"split": [256, 256], "permuted": [100, 100]}
SETTINGS = {  # chosen with --validation
    "split": {"epochs": 10.0, "learning_rate": 0.004, "initial_std": 0.01, "first": False, "start_std": 0.01},
    "permuted": {"epochs": 5.0, "learning_rate": 0.004, "initial_std": 0.01, "first": False, "start_std": 0.01},
}
PERMUTED_TASKS = 10
HELD = 10_000


def digits(folder: str, validation: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pixels in [0, 1] and labels, to learn from and to be judged by."""
    for name in ("mnist/mnist.npz", "mnist.npz"):
        path = Path(folder) / name
        if path.exists():
            data = np.load(path, allow_pickle=False)
            x, y = data["x_train"].reshape(-1, 784).astype(np.float32) / 255, data["y_train"].astype(int)
            if validation:
                return x[:-HELD], y[:-HELD], x[-HELD:], y[-HELD:]
            return x, y, data["x_test"].reshape(-1, 784).astype(np.float32) / 255, data["y_test"].astype(int)
    raise SystemExit(f"There is no mnist.npz in {folder}.")


def tasks_of(problem: str, data: tuple[np.ndarray, ...], rows: int | None, count: int, seed: int) -> list[Any]:
    """(inputs, targets, test inputs, test targets) of every task."""
    rng = np.random.default_rng(seed)
    x, y, test_x, test_y = data
    tasks = []
    for t in range(count):
        if problem == "split":
            mask, test = (np.isin(labels, (2 * t, 2 * t + 1)) for labels in (y, test_y))
            part = (x[mask], y[mask] - 2 * t, test_x[test], test_y[test] - 2 * t)
        else:
            order = rng.permutation(784)
            part = (x[:, order], y, test_x[:, order], test_y)
        rows_taken = rng.permutation(len(part[0]))[:rows]
        tasks.append((part[0][rows_taken], part[1][rows_taken], part[2], part[3]))
    return tasks


def method_of(name: str, options: argparse.Namespace) -> Any:
    """A method by its name here."""
    methods = credo.methods
    makers = {
        "vcl": lambda: methods.BayesByBackprop(
            learning_rate=options.learning_rate, initial_std=options.initial_std, estimator="local"
        ),
        "vcl_ivon": lambda: methods.IVON(),
        "ewc": lambda: methods.Laplace(structure="diagonal", learning_rate=options.learning_rate),
        "kfac": lambda: methods.Laplace(structure="kfac", learning_rate=options.learning_rate),
    }
    if name not in makers:
        raise SystemExit(f"Unknown method {name}; choose of {', '.join(makers)}.")
    return makers[name]()


def run(name: str, seed: int, data: tuple[np.ndarray, ...], options: argparse.Namespace) -> dict[str, Any]:
    """One method on one order of rows: its record."""
    problem = options.problem
    count = options.tasks or (5 if problem == "split" else PERMUTED_TASKS)
    tasks = tasks_of(problem, data, options.rows, count, seed)
    model = credo.Model(
        credo.networks.mlp(WIDTHS[problem]), credo.priors.normal(options.prior),
        credo.likelihoods.categorical(2 if problem == "split" else 10),
    )  # fmt: skip
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    began = time.perf_counter()
    result = credo.continual.learn(
        jax.random.key(seed), model, tasks, method_of(name, options), heads="multi" if problem == "split" else "single",
        coreset=options.coreset, coreset_kind=options.coreset_kind, coreset_steps=options.coreset_steps,
        first="maximum_likelihood" if options.first else None, start_std=options.start_std or None,
        epochs=options.epochs, batch_size=options.batch_size, num_samples=options.draws,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    print(f"{problem}, {name}, coreset {options.coreset}, seed {seed}: {seconds:.0f} s")
    print(result.summary())
    print("seconds of each task:", " ".join(f"{s:.1f}" for s in result.seconds), flush=True)
    if options.plot:
        result.plot().savefig(options.plot, dpi=110)
    return {
        "problem": problem, "method": name, "coreset": options.coreset, "seed": seed, "seconds": seconds,
        "settings": {key: getattr(options, key) for key in (*SETTINGS[problem], "prior", "batch_size")},
        "seconds_of_tasks": result.seconds, "accuracy": result.scores["accuracy"].tolist(),
        "average": result.average.tolist(), "forgetting": result.forgetting,
        "backward_transfer": result.backward_transfer,
    }  # fmt: skip


def table(records: list[dict[str, Any]]) -> list[str]:
    """Mean and spread over seeds of the last average accuracy, beside the bar."""
    lines = ["| problem | method | coreset | average accuracy | forgetting | seconds | bar |", "|---" * 7 + "|"]
    for name in dict.fromkeys(record["method"] for record in records):
        group = [record for record in records if record["method"] == name]
        last = np.array([record["average"][-1] for record in group])
        bar = BARS[group[0]["problem"], bool(group[0]["coreset"])]
        verdict = f"≥ {100 * bar:.1f} % {'met' if last.mean() >= bar else 'MISSED'}" if name == "vcl" else ""
        spread = f" ± {100 * last.std(ddof=1) / len(last) ** 0.5:.2f}" if len(last) > 1 else ""
        forgot = np.mean([record["forgetting"] for record in group])
        seconds = np.mean([record["seconds"] for record in group])
        lines.append(
            f"| {group[0]['problem']} | {name} | {group[0]['coreset']} | {100 * last.mean():.2f}{spread} % | "
            f"{100 * forgot:.2f} % | {seconds:.0f} | {verdict} |"
        )
    return lines


def main() -> int:
    """Run, print the table, write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True, help="folder with MNIST")
    parser.add_argument("--problem", choices=("split", "permuted"), default="split")
    parser.add_argument("--methods", default="vcl", help="vcl, vcl_ivon, ewc, kfac")
    parser.add_argument("--coreset", type=int, default=0, help="rows kept of each task")
    parser.add_argument("--coreset-kind", choices=("random", "k_centre"), default="random")
    parser.add_argument("--coreset-steps", type=int, default=1000)
    parser.add_argument("--epochs", type=float, help=f"of each task; without this and the next ones: {SETTINGS}")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--initial-std", type=float)
    parser.add_argument("--start-std", type=float, help="most at the start of later tasks; 0: no limit")
    parser.add_argument("--prior", type=float, default=1.0, help="standard deviation of every weight")
    parser.add_argument("--first", action=argparse.BooleanOptionalAction, help="start at maximum likelihood")
    parser.add_argument("--draws", type=int, default=100, help="of the weights, for every score")
    parser.add_argument("--rows", type=int, help="of each task, for trials")
    parser.add_argument("--tasks", type=int, help="fewer tasks, for trials")
    parser.add_argument("--validation", action="store_true", help="score on held-out training rows")
    parser.add_argument("--json", type=Path, help="write the records here")
    parser.add_argument("--plot", type=Path, help="write the figure of the last run here")
    options = parser.parse_args()
    for name, value in SETTINGS[options.problem].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    data = digits(options.data_dir, options.validation)
    records = []
    for name in options.methods.split(","):
        for seed in range(options.seeds):
            records.append(run(name, seed, data, options))
            if options.json:
                options.json.write_text(json.dumps(records, indent=1) + "\n")
    print("\n".join(table(records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
