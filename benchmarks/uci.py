"""UCI regression in the published protocol: test log-likelihood and RMSE over the standard splits.

    python benchmarks/uci.py --data-dir DIR [--sets yacht,energy] [--methods map,deep_ensemble] [--splits 20]

DIR has `uci_regression/NAME.npz` with X, y, train_idx and test_idx. Inputs and targets are standardised on the training
rows of a split and scores are on the original scale; the network has one hidden layer of 50 ReLU units
(Hernández-Lobato and Adams, 2015). One rule for all sets: each method has a short list of settings; the one with the
best log-likelihood on a fifth of the training rows is fitted again to all training rows. Test rows are looked at once,
at the end.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import credo
from credo.registry import build_method

FILES = {"boston": "bostonHousing"}
SETS = ("yacht", "energy", "concrete", "boston")
# Test log-likelihoods with one hidden layer: Graves' VI as run by Hernández-Lobato and Adams (2015); MC-dropout trained
# to convergence by Mukhoti, Stenetorp and Gal (2018); deep ensembles by Lakshminarayanan, Pritzel and Blundell (2017).
PUBLISHED = {
    "bayes_by_backprop": {"yacht": -3.43, "energy": -2.39, "concrete": -3.39, "boston": -2.90},
    "mc_dropout": {"yacht": -1.25, "energy": -1.21, "concrete": -2.94, "boston": -2.40},
    "deep_ensemble": {"yacht": -1.18, "energy": -1.38, "concrete": -3.06, "boston": -2.41},
}


class Choice(NamedTuple):
    """One setting of a method: its own settings, the model's, and how long it runs."""

    settings: tuple[tuple[str, Any], ...] = ()
    scale: float = 2.0  # of the fan-in prior
    likelihood: str = "gaussian"
    steps: int | None = None
    batch_size: int | None = None
    mode: str | None = None


GRID: dict[str, list[Choice]] = {
    "map": [Choice(scale=s) for s in (0.5, 1.0, 2.0, 4.0)],
    "bayes_by_backprop": [Choice(scale=s, steps=n) for s in (1.0, 2.0, 4.0) for n in (20_000, 60_000)],
    "deep_ensemble": [
        *(Choice(scale=s, likelihood="heteroscedastic", steps=n) for s in (0.5, 1.0, 2.0) for n in (600, 1500, 5000)),
        *(Choice(scale=s) for s in (0.5, 1.0)),
    ],
    "mc_dropout": [Choice((("rate", r),), steps=n) for r in (0.005, 0.02, 0.05, 0.1) for n in (20_000, 60_000)],
    "laplace": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "last_layer": [Choice(scale=s) for s in (0.25, 0.5, 1.0, 2.0)],
    "swag": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "ivon": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
}


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / "uci_regression" / f"{FILES.get(name, name)}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in ("X", "y", "train_idx", "test_idx")}


def score(method: str, choice: Choice, seed: int, x: np.ndarray, y: np.ndarray, new_x: Any, new_y: Any) -> Any:
    """Fit to (x, y) and score at new rows: log-likelihood, RMSE, seconds without compilation."""
    centre, spread = x.mean(0), x.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    shift, scale = y.mean(), y.std()
    likelihood = getattr(credo.likelihoods, choice.likelihood)()
    model = credo.Model(credo.networks.mlp([50]), credo.priors.fan_in_normal(choice.scale), likelihood)
    built = build_method(method, **dict(choice.settings))
    key_fit, key_predict = jax.random.split(jax.random.key(seed))
    data = ((x - centre) / spread, (y - shift) / scale)
    began = time.perf_counter()
    fit = credo.fit(key_fit, model, data, built, steps=choice.steps, batch_size=choice.batch_size, progress=False)
    predictive = credo.predict(key_predict, fit, (new_x - centre) / spread, mode=choice.mode).rescaled(shift, scale)
    found = credo.metrics.log_likelihood(predictive, new_y), credo.metrics.rmse(predictive, new_y)
    return *found, time.perf_counter() - began - fit.timing["seconds_compile"]


def one_split(method: str, data: dict[str, np.ndarray], split: int) -> dict[str, Any]:
    """Choose on training rows, fit again, score on test rows."""
    rows, test = data["train_idx"][split], data["test_idx"][split]
    x, y = data["X"][rows], data["y"][rows]
    order = np.random.default_rng(split).permutation(len(rows))
    held, kept = order[: len(rows) // 5], order[len(rows) // 5 :]
    grid = GRID[method]
    tried = [score(method, c, split, x[kept], y[kept], x[held], y[held])[0] for c in grid] if len(grid) > 1 else [0.0]
    best = int(np.argmax(tried))
    value, error, seconds = score(method, grid[best], split, x, y, data["X"][test], data["y"][test])
    return {"split": split, "choice": best, "log_likelihood": value, "rmse": error, "seconds": seconds, "tried": tried}


def summary(method: str, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"method": method, "set": name, "splits": len(rows)}
    for key in ("log_likelihood", "rmse", "seconds"):
        values = np.array([row[key] for row in rows])
        found[key] = float(values.mean())
        found[f"{key}_error"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return found | {"published": PUBLISHED.get(method, {}).get(name), "choices": [row["choice"] for row in rows]}


def line(row: dict[str, Any]) -> str:
    error = "" if row["log_likelihood_error"] is None else f" ± {row['log_likelihood_error']:.2f}"
    beside = "" if row["published"] is None else f"  (published {row['published']:.2f})"
    return (
        f"{row['set']:<10}{row['method']:<20}LL {row['log_likelihood']:.2f}{error}{beside}  RMSE {row['rmse']:.2f}  "
        f"{row['seconds']:.1f} s a fit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="bayes_by_backprop,deep_ensemble")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first split, to share the work between processes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for name in options.sets.split(","):
        data = load(options.data_dir, name)
        for method in options.methods.split(","):
            last = min(options.first + options.splits, len(data["train_idx"]))
            rows = [one_split(method, data, split) for split in range(options.first, last)]
            found.append(summary(method, name, rows))
            print(line(found[-1]), found[-1]["choices"], flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
