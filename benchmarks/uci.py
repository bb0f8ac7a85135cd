"""UCI regression in the published protocol: test log-likelihood and RMSE over the standard splits.

    python benchmarks/uci.py --data-dir DIR [--sets yacht,energy] [--methods map,deep_ensemble] [--splits 20]

DIR has `uci_regression/NAME.npz` with X, y, train_idx and test_idx. Inputs and targets are standardised on the training
rows of a split and scores are on the original scale; the network has one hidden layer of 50 ReLU units
(Hernández-Lobato and Adams, 2015), but for `ensemble_chains`: three hidden layers of 32 tanh units. One rule for all
sets: each method has a list of settings; the one with the best log-likelihood in five-fold cross-validation of the
training rows is fitted again to all training rows. Test rows are looked at once, at the end. All splits and folds run
side by side as one program, so the seconds are those of a study, not of one fit. With --choose-only the cross-validated
scores are printed and no test row is read.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core import mixture
from credo.core.batch import Batch
from credo.registry import build_method
from credo.training.many import fit_many

FILES = {
    "boston": "bostonHousing", "power": "power-plant", "protein": "protein-tertiary-structure",
    "naval": "naval-propulsion-plant", "wine": "wine-quality-red",
}  # fmt: skip
SETS = ("yacht", "energy", "concrete", "boston")
FOLDS = 5
# Test log-likelihoods with one hidden layer: Graves' VI as run by Hernández-Lobato and Adams (2015); MC-dropout trained
# to convergence by Mukhoti, Stenetorp and Gal (2018); deep ensembles by Lakshminarayanan, Pritzel and Blundell (2017).
PUBLISHED = {
    "bayes_by_backprop": {"yacht": -3.43, "energy": -2.39, "concrete": -3.39, "boston": -2.90},
    "mc_dropout": {"yacht": -1.25, "energy": -1.21, "concrete": -2.94, "boston": -2.40},
    "deep_ensemble": {"yacht": -1.18, "energy": -1.38, "concrete": -3.06, "boston": -2.41},
    # The best of all rows for neural networks that were found, whatever the method.
    "ensemble_chains": {
        "yacht": -1.03, "energy": -0.75, "concrete": -2.94, "boston": -2.35, "kin8nm": 1.28, "naval": 6.33,
        "power": -2.78, "protein": -2.63, "wine": -0.89,
    },
}  # fmt: skip


class Choice(NamedTuple):
    """One setting of a method: its own settings, the model's, and how long it runs."""

    settings: tuple[tuple[str, Any], ...] = ()
    scale: float = 2.0  # of the fan-in prior
    likelihood: str = "gaussian"
    noise: float | str = "learned"
    steps: int | None = None
    batch_size: int | None = None
    mode: str | None = None
    widths: tuple[int, ...] = (50,)
    activation: str = "relu"
    floor: float = 1e-3  # of heteroscedastic noise, in standard deviations of the target


GRID: dict[str, list[Choice]] = {
    "map": [Choice(scale=s) for s in (0.5, 1.0, 2.0, 4.0)],
    "bayes_by_backprop": [Choice(scale=s, steps=n) for s in (1.0, 2.0, 4.0) for n in (20_000, 60_000)],
    "deep_ensemble": [
        *(
            Choice((("adversarial", 0.01),), likelihood="heteroscedastic", steps=n, batch_size=b)
            for b, n in ((32, 400), (32, 800), (32, 1500), (None, 1500), (None, 5000))
        ),
        *(
            Choice(likelihood="heteroscedastic", steps=n, batch_size=b)
            for b, n in ((32, 1500), (32, 5000), (None, 400))
        ),
        *(Choice(scale=s, steps=5000) for s in (0.5, 1.0, 2.0)),
    ],
    "mc_dropout": [
        *(Choice((("rate", r),), 16.0, steps=60_000) for r in (0.005, 0.02, 0.05)),
        *(Choice((("rate", r),), 4.0, "student_t", steps=20_000) for r in (0.05, 0.1, 0.2)),
    ],
    "laplace": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "last_layer": [Choice(scale=s) for s in (0.25, 0.5, 1.0, 2.0)],
    "swag": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "ivon": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    # One configuration for all sets, that of `credo.recipes`: nothing is chosen. Some targets lie on a grid, which
    # invites spikes: no noise below a hundredth of the target's standard deviation.
    "ensemble_chains": [
        Choice(
            scale=3.0, likelihood="heteroscedastic", batch_size=128, widths=(32, 32, 32), activation="tanh", floor=0.01
        )
    ],
}


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / "uci_regression" / f"{FILES.get(name, name)}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in ("X", "y", "train_idx", "test_idx")}


class Task(NamedTuple):
    """Rows to fit and rows to score, standardised on the former; `spread` is the standard deviation of their y."""

    x: np.ndarray
    y: np.ndarray
    new_x: np.ndarray
    new_y: np.ndarray
    spread: np.ndarray


def task(data: dict[str, np.ndarray], rows: np.ndarray, new: np.ndarray) -> Task:
    x, y = data["X"], data["y"]
    centre, width = x[rows].mean(0), x[rows].std(0)
    width = np.where(width > 0, width, 1.0)
    shift, spread = y[rows].mean(), y[rows].std()
    x, y = ((x - centre) / width).astype(np.float32), ((y - shift) / spread).astype(np.float32)[:, None]
    return Task(x[rows], y[rows], x[new], y[new], np.float32(spread))


def folds(data: dict[str, np.ndarray], split: int) -> list[Task]:
    """Tasks of equal size within the training rows of a split: a few rows may be in no fold's test part."""
    rows = data["train_idx"][split]
    order = np.random.default_rng(split).permutation(rows)
    parts = order[: len(rows) // FOLDS * FOLDS].reshape(FOLDS, -1)
    return [task(data, np.setdiff1d(order, part), part) for part in parts]


def _scores(key: jax.Array, model: Any, posterior: Any, new: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    """Log-likelihood and squared error on the original scale, averaged over the rows."""
    draws = mixture.flatten(posterior.outputs(key, model, new[0], None))
    log_prob = mixture.log_prob(model.likelihood, draws, new[1]) - jnp.log(new[2])
    error = (mixture.moments(model.likelihood, draws)["mean"] - new[1]) * new[2]
    return jnp.stack([log_prob.mean(), (error**2).mean()])


def scores(method: str, choice: Choice, seed: int, tasks: list[Task]) -> np.ndarray:
    """[log-likelihood, mean squared error] of every task."""
    kind = getattr(credo.likelihoods, choice.likelihood)
    if choice.likelihood == "gaussian":
        likelihood = kind(choice.noise)
    else:
        likelihood = kind(floor=choice.floor) if choice.likelihood == "heteroscedastic" else kind()
    network = credo.networks.mlp(choice.widths, choice.activation)
    model = credo.Model(network, credo.priors.fan_in_normal(choice.scale), likelihood)
    built = build_method(method, **dict(choice.settings))
    key = jax.random.key(seed)
    if built.precision == "float64":
        return np.array([_alone(k, built, choice, model, t) for k, t in zip(jax.random.split(key, len(tasks)), tasks)])
    whole = Task(*(np.stack(x) for x in zip(*tasks)))
    rows = np.full(len(tasks), whole.y.shape[1], np.float32)
    data = Batch(whole.x, whole.y, np.ones(whole.y.shape[:2], np.float32), rows)
    return fit_many(
        key, built, model, data, _scores, extra=(whole.new_x, whole.new_y, whole.spread), steps=choice.steps,
        batch_size=choice.batch_size, group=128,
    )  # fmt: skip


def _alone(key: jax.Array, built: Any, choice: Choice, model: Any, one: Task) -> list[float]:
    """The same scores by `credo.fit` and `credo.predict`, for methods that compute in double precision."""
    data = (one.x, one.y[:, 0])
    fit = credo.fit(key, model, data, built, steps=choice.steps, batch_size=choice.batch_size, progress=False)
    predictive = credo.predict(key, fit, one.new_x, mode=choice.mode).rescaled(0.0, float(one.spread))
    targets = one.new_y[:, 0] * float(one.spread)
    return [credo.metrics.log_likelihood(predictive, targets), credo.metrics.rmse(predictive, targets) ** 2]


def study(method: str, data: dict[str, np.ndarray], splits: range, test: bool) -> list[dict[str, Any]]:
    """Choose on training rows, fit again, score on test rows; one row for each split."""
    grid = GRID[method]
    inside = [one for split in splits for one in folds(data, split)]
    tried = np.zeros((len(splits), len(grid)))
    for i, choice in enumerate(grid if len(grid) > 1 else []):
        found = scores(method, choice, splits[0], inside)
        tried[:, i] = np.where(np.isfinite(found[:, 0]), found[:, 0], -np.inf).reshape(len(splits), FOLDS).mean(1)
        print(f"  {tried[:, i].mean():8.3f}  {choice}", flush=True)
    best = tried.argmax(1)
    final = np.full((len(splits), 2), np.nan)
    outside = [task(data, data["train_idx"][s], data["test_idx"][s]) for s in splits]
    for i in np.unique(best) if test else []:  # all splits run, so that one program serves every choice
        chosen = best == i
        final[chosen] = scores(method, grid[i], splits[0], outside)[chosen]
    return [
        {"split": s, "choice": int(b), "cross_validated": float(t[b]), "log_likelihood": float(f[0]),
         "rmse": float(np.sqrt(f[1]))}
        for s, b, t, f in zip(splits, best, tried, final)
    ]  # fmt: skip


def summary(method: str, name: str, rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {"method": method, "set": name, "splits": len(rows), "seconds": seconds}
    for key in ("log_likelihood", "rmse", "cross_validated"):
        values = np.array([row[key] for row in rows])
        found[key] = float(values.mean())
        found[f"{key}_error"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return found | {"published": PUBLISHED.get(method, {}).get(name), "choices": [row["choice"] for row in rows]}


def line(row: dict[str, Any]) -> str:
    error = "" if row["log_likelihood_error"] is None else f" ± {row['log_likelihood_error']:.2f}"
    beside = "" if row["published"] is None else f"  (published {row['published']:.2f})"
    return (
        f"{row['set']:<10}{row['method']:<20}LL {row['log_likelihood']:.2f}{error}{beside}  RMSE {row['rmse']:.2f}  "
        f"cross-validated LL {row['cross_validated']:.2f}  {row['seconds']:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="bayes_by_backprop,deep_ensemble,mc_dropout")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first split, to share the work between processes")
    parser.add_argument("--choose-only", action="store_true", help="cross-validate; read no test row")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for name in options.sets.split(","):
        data = load(options.data_dir, name)
        splits = range(options.first, min(options.first + options.splits, len(data["train_idx"])))
        for method in options.methods.split(","):
            began = time.perf_counter()
            rows = study(method, data, splits, not options.choose_only)
            found.append(summary(method, name, rows, time.perf_counter() - began))
            print(line(found[-1]), found[-1]["choices"], flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
