"""The picture of the README: what one network says about data with a gap, and what a posterior says.

Run it from anywhere: `python examples/readme_picture.py [FILE]` writes docs/images/uncertainty.png.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import credo

OUT = Path(__file__).resolve().parents[1] / "docs" / "images" / "uncertainty.png"
INK, NOISE, UNKNOWN = "#1b1f27", "#f3d08a", "#7fb2de"


def make_data(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A noisy wave, seen on both sides of a gap."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(-2.1, -0.5, 45), rng.uniform(0.9, 2.1, 35)])
    return x, np.sin(2.2 * x) + 0.3 * x + 0.15 * rng.normal(size=x.size)


def draw(area: Axes, title: str, grid: np.ndarray, pred: credo.Predictive, x: np.ndarray, y: np.ndarray) -> None:
    """The mean, what is not known about it, and the noise around that."""
    bands = (
        (pred.std, NOISE, "noise added: 90 % of observations"),
        (np.sqrt(pred.epistemic), UNKNOWN, "not known: the mean, 90 %"),
    )
    for std, colour, label in bands:
        area.fill_between(grid, pred.mean - 1.645 * std, pred.mean + 1.645 * std, color=colour, lw=0, label=label)
    area.plot(grid, pred.mean, color=INK, lw=1.8, label="mean")
    area.scatter(x, y, s=12, color=INK, lw=0, zorder=3, label="observed")
    area.set_title(title, fontsize=12, fontweight="bold", loc="left", color=INK)
    area.set_xlabel("input x", fontsize=11)
    area.spines[["top", "right"]].set_visible(False)


def main(out: Path = OUT) -> None:
    x, y = make_data()
    grid = np.linspace(-3, 3, 300)
    model = credo.Model(
        network=credo.networks.mlp([8], activation="tanh"),
        prior=credo.priors.normal(1.0),
        likelihood=credo.likelihoods.gaussian(noise="learned"),
    )
    runs = {
        "One network (map)": (credo.methods.MAP(learning_rate=0.02), 3000),
        "Its posterior (hmc)": (credo.methods.HMC(num_steps=60, warmup=1000, target_acceptance=0.95), 3000),
    }
    figure = Figure(figsize=(10, 4), dpi=110, layout="constrained", facecolor="white")
    areas = figure.subplots(1, 2, sharex=True, sharey=True)
    for area, (title, (method, steps)) in zip(areas, runs.items()):
        fit = credo.fit(jax.random.key(0), model, (x[:, None], y), method, steps=steps)
        print(title, "·", fit.status)
        draw(area, title, grid, credo.predict(jax.random.key(1), fit, grid[:, None]), x, y)
    areas[0].set_ylabel("target y", fontsize=11)
    areas[0].set(xlim=(-3, 3), ylim=(-2.4, 2.6))
    handles, labels = areas[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=11)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    print(out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
