"""Active learning on the small digits of scikit-learn: what labels chosen by a posterior are worth.

    python examples/active_learning/active_learning.py --out active [--seeds 5] [--acquisitions random,bald]

Writes curves.png (accuracy by number of labels, mean and interval over seeds), asked.png (the first digits that were
asked for) and active_learning.md (labels needed).
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import credo
from credo.applications import active

LEVELS = (0.8, 0.85, 0.9, 0.92, 0.94)


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """1,297 rows to label, 500 to score on."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = (data.data[order] / 16).astype(np.float32), data.target[order]
    return x[500:], y[500:], x[:500], y[:500]


def asked(run: active.ActiveLearning, pool: np.ndarray, labels: np.ndarray, start: int, count: int = 24) -> Figure:
    """The first digits that were asked for after the random start."""
    figure = Figure(figsize=(8.8, 2.6), dpi=110, layout="constrained")
    figure.suptitle(f"The first {count} digits that {run.acquisition.replace('_', ' ')} asked for", fontsize=11.5)
    rows = run.rows[start : start + count]
    for area, row in zip(figure.subplots(2, count // 2).flat, rows):
        area.imshow(1 - pool[row].reshape(8, 8), cmap="gray", vmin=0, vmax=1)
        area.set_title(str(labels[row]), fontsize=9, pad=2)
        area.set_axis_off()
    return figure


def table(runs: dict[str, list[active.ActiveLearning]], words: str) -> str:
    """Labels needed for each accuracy, mean over seeds."""
    lines = [
        f"Made by `{words}`. Labels needed, mean over seeds (∞: some seed did not get there):",
        "",
    ]
    lines += ["| accuracy | " + " | ".join(runs) + " |", "|---|" + "---|" * len(runs)]
    for level in LEVELS:
        needed = [np.mean(active.labels_needed(found, level)) for found in runs.values()]
        lines.append(
            f"| {100 * level:.0f} % | " + " | ".join(f"{x:.0f}" if np.isfinite(x) else "∞" for x in needed) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all acquisitions from the same starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--acquisitions", default="random,entropy,bald,batch_bald,epig")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--start", type=int, default=20)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    x, y, test_x, test_y = digits()
    model = credo.Model(credo.networks.mlp([50]), credo.priors.normal(3.0), credo.likelihoods.categorical(10))
    method: Any = credo.methods.DeepEnsemble(size=8, learning_rate=0.01)
    options.out.mkdir(parents=True, exist_ok=True)
    runs = {}
    for name in options.acquisitions.split(","):
        runs[name] = [
            active.learn(
                jax.random.key(seed), model, x, y, method, acquisition=name, start=options.start, batch=options.batch,
                budget=options.budget, steps=options.steps, test=(test_x, test_y),
                folder=options.out / "records" / f"{name}-{seed}",
            )
            for seed in range(options.seeds)
        ]  # fmt: skip
        print(name, f"{np.mean([r.scores['accuracy'][-1] for r in runs[name]]):.4f}", flush=True)
    every = [run for group in runs.values() for run in group]
    every[0].plot(*every[1:]).savefig(options.out / "curves.png", facecolor="white")
    best = runs.get("batch_bald", every)[0]
    asked(best, x, y, options.start).savefig(options.out / "asked.png", facecolor="white")
    text = table(runs, "python examples/active_learning/active_learning.py --out active")
    (options.out / "active_learning.md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
