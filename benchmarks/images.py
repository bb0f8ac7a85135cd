"""LeNet-5 on MNIST and Fashion-MNIST: accuracy and negative log-likelihood beside the best published rows.

    python benchmarks/images.py --data-dir DIR [--data mnist,fashion_mnist] [--methods mfvi,deep_ensemble] [--seeds 1]

Mean-field variational inference (flipout, N(0, 0.5²) on every weight, no tempering, no augmentation) and an ensemble of
ten networks (N(0, 0.3²); images shifted by up to two places, those of clothes by one and mirrored). Networks train on
all 60,000 rows and are scored on the test rows; with `--validation` on 50,000 and the last 10,000 training rows, which
is how the settings were chosen. DIR holds mnist/mnist.npz and fashion_mnist/fashion_mnist.npz.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo

HELD = 10_000
PUBLISHED = {
    ("mnist", "mfvi"): "99.0 / 0.034",
    ("mnist", "deep_ensemble"): "99.4 / 0.016",
    ("fashion_mnist", "mfvi"): "90.6 / 0.259",
    ("fashion_mnist", "deep_ensemble"): "93.2 / 0.200",
}


def images(folder: str, name: str, validation: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and scored rows: images [n, 28, 28, 1] with pixels in [0, 1], and labels."""
    path = Path(folder) / name / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"There is no {path}.")
    with np.load(path, allow_pickle=False) as data:
        x, test = ((data[f"x_{part}"].astype(np.float32) / 255)[..., None] for part in ("train", "test"))
        y, test_y = (data[f"y_{part}"].astype(int) for part in ("train", "test"))
    return (x[:-HELD], y[:-HELD], x[-HELD:], y[-HELD:]) if validation else (x, y, test, test_y)


def setting(method: str, name: str) -> tuple[Any, Any, Any, float]:
    """Network, prior, method and epochs."""
    network = credo.networks.lenet()
    if method == "mfvi":
        vi = credo.methods.BayesByBackprop(learning_rate=0.002, estimator="flipout", initial_std=0.01)
        return network, credo.priors.normal(0.5), vi, 120
    clothes = name == "fashion_mnist"
    network = credo.networks.augmented(network, flip=clothes, shift=1 if clothes else 2)
    return network, credo.priors.normal(0.3), credo.methods.DeepEnsemble(size=10, learning_rate=0.002), 80


def run(name: str, method: str, seed: int, data: tuple[np.ndarray, ...], options: argparse.Namespace) -> np.ndarray:
    """Accuracy in percent, negative log-likelihood, seconds of compilation and of the run."""
    x, y, test, test_y = data
    network, prior, how, epochs = setting(method, name)
    model = credo.Model(network, prior, credo.likelihoods.categorical(10))
    steps = round((options.epochs or epochs) * len(x) / options.batch_size)
    found = credo.fit(
        jax.random.key(seed), model, (x, y), how, steps=steps, batch_size=options.batch_size, progress=False
    )
    predictive = credo.predict(jax.random.key(seed), found, test, num_samples=options.samples)
    scores = credo.metrics.summarise(predictive, test_y)
    spent = found.timing["seconds_compile"], found.timing["seconds_run"]
    row = np.array([100 * scores["accuracy"], -scores["log_likelihood"], *spent])
    print(f"{name} {method} seed {seed}: {row[0]:.2f} % {row[1]:.4f}, {row[3]:.0f} s", file=sys.stderr, flush=True)
    return row


def main() -> int:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--data", default="mnist,fashion_mnist")
    parser.add_argument("--methods", default="mfvi,deep_ensemble")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=float, help="instead of each method's own")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--samples", type=int, default=100, help="draws of the weights under mfvi")
    parser.add_argument("--validation", action="store_true", help="score on held-out training rows")
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}", flush=True)
    lines = ["| data | method | accuracy (%) | NLL | published | compile (s) | run (s) |", "|---" * 7 + "|"]
    for name in options.data.split(","):
        data = images(options.data_dir, name, options.validation)
        for method in options.methods.split(","):
            rows = np.array([run(name, method, seed, data, options) for seed in range(options.seeds)])
            error = rows.std(0, ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else np.full(4, np.nan)
            cells = [f"{m:.{d}f}" + (f" ± {e:.{d}f}" if e == e else "") for m, e, d in zip(rows.mean(0), error, (2, 4))]
            spent = f"{rows[:, 2].max():.0f} | {rows[:, 3].mean():.0f}"
            lines.append(f"| {name} | {method} | {' | '.join(cells)} | {PUBLISHED[name, method]} | {spent} |")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
