"""Active learning on images: how many labels each way of choosing rows needs for the same accuracy.

    python -m benchmarks.active_learning --data-dir DIR [--data fashion_mnist] [--acquisitions random,bald] [--seeds 5]

LeNet-5 under any method with a spread (a deep ensemble unless told) starts from rows at random, then labels a batch of
the pool's rows in each round until the budget is spent. Every fit starts afresh. Scores are those of the test rows, or,
with `--validation`, of the last 10,000 training rows, which is how settings are chosen. The table says at how many
labels each acquisition reaches an accuracy (∞: not within the budget), as the mean over seeds, and the share of
random's labels with an interval by the bootstrap over seeds. DIR holds DATA/DATA.npz. Records go to --folder: a run
that was stopped goes on.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo
from credo.applications import active

HELD = 10_000


def images(folder: str, name: str, validation: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pool and rows to score on: images [n, 28, 28, 1] with pixels in [0, 1], and labels."""
    path = Path(folder) / name / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"There is no {path}.")
    data = np.load(path, allow_pickle=False)
    scaled = lambda x: (x.astype(np.float32) / 255)[..., None]  # noqa: E731
    x, y = scaled(data["x_train"]), data["y_train"].astype(int)
    if validation:
        return x[:-HELD], y[:-HELD], x[-HELD:], y[-HELD:]
    return x[:-HELD], y[:-HELD], scaled(data["x_test"]), data["y_test"].astype(int)


def method_of(options: argparse.Namespace) -> Any:
    """The method by its name here."""
    rate = options.learning_rate
    makers = {
        "deep_ensemble": lambda: credo.methods.DeepEnsemble(size=options.members, learning_rate=rate),
        "mc_dropout": lambda: credo.methods.MCDropout(learning_rate=rate),
        "bayes_by_backprop": lambda: credo.methods.BayesByBackprop(learning_rate=rate, estimator="flipout"),
        "map": lambda: credo.methods.MAP(learning_rate=rate),
    }
    if options.method not in makers:
        raise SystemExit(f"Unknown method {options.method}; choose of {', '.join(makers)}.")
    return makers[options.method]()


def run(
    acquisition: str, seed: int, data: tuple[np.ndarray, ...], options: argparse.Namespace
) -> active.ActiveLearning:
    """One acquisition from one start."""
    x, y, test_x, test_y = data
    network = credo.networks.lenet(dropout=0.5 if options.method == "mc_dropout" else 0.0)
    model = credo.Model(network, credo.priors.normal(options.prior), credo.likelihoods.categorical(10))
    began = time.perf_counter()
    result = active.learn(
        jax.random.key(seed), model, x, y, method_of(options), acquisition=acquisition, start=options.start,
        batch=options.batch, budget=options.budget, test=(test_x, test_y), candidates=options.candidates,
        num_samples=options.draws, steps=options.steps, batch_size=options.batch_size,
        folder=options.folder / f"{acquisition}-{seed}" if options.folder else None,
    )  # fmt: skip
    last = result.scores["accuracy"][-1]
    print(f"{acquisition}, seed {seed}: {100 * last:.2f} % with {result.sizes[-1]} labels, "
          f"{time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip
    return result


def share(labels: np.ndarray, random: np.ndarray) -> str:
    """Labels of an acquisition by those of random, with a bootstrap interval over seeds."""
    if not np.isfinite([*labels, *random]).all():
        return "–"
    rng = np.random.default_rng(0)
    means = [values[rng.integers(len(values), size=(4000, len(values)))].mean(1) for values in (labels, random)]
    low, high = np.quantile(means[0] / means[1], (0.025, 0.975))
    return f"{100 * labels.mean() / random.mean():.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def table(runs: dict[str, list[active.ActiveLearning]], levels: list[float]) -> list[str]:
    """Labels needed for each accuracy, and the share of random's."""
    names = list(runs)
    lines = ["| accuracy | " + " | ".join(names) + " |" + "".join(f" {n} / random |" for n in names if n != "random")]
    lines.append("|" + "---|" * (lines[0].count("|") - 1))
    for level in levels:
        needed = {name: active.labels_needed(group, level) for name, group in runs.items()}
        cells = [f"{np.mean(needed[name]):.0f}" if np.isfinite(needed[name]).all() else "∞" for name in names]
        if "random" in runs:
            cells += [share(needed[name], needed["random"]) for name in names if name != "random"]
        lines.append(f"| {100 * level:.1f} % | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    """Run, print the table, draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--data", default="fashion_mnist")
    parser.add_argument("--acquisitions", default="random,bald")
    parser.add_argument("--method", default="deep_ensemble")
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--prior", type=float, default=1.0, help="standard deviation of every weight")
    parser.add_argument("--seeds", default="5", help="how many, or which: 3,4")
    parser.add_argument("--start", type=int, default=100)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--draws", type=int, default=50, help="of the weights, where the posterior can be drawn from")
    parser.add_argument("--levels", default="0.80,0.82,0.84,0.85,0.86,0.87,0.88,0.89,0.90")
    parser.add_argument("--validation", action="store_true", help="score on held-out training rows")
    parser.add_argument("--folder", type=Path, help="where records are kept")
    parser.add_argument("--plot", type=Path, help="write the figure here")
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    data = images(options.data_dir, options.data, options.validation)
    seeds = [int(s) for s in options.seeds.split(",") if s] if "," in options.seeds else list(range(int(options.seeds)))
    runs: dict[str, list[active.ActiveLearning]] = {}
    for name in options.acquisitions.split(","):
        runs[name] = [run(name, seed, data, options) for seed in seeds]
    print("\n".join(table(runs, [float(level) for level in options.levels.split(",")])))
    if options.plot:
        first, *rest = [result for group in runs.values() for result in group]
        first.plot(*rest).savefig(options.plot, dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main())
