"""Sunspots ten years ahead: a line, a windowed network and a recurrent one, with the coverage of their intervals.

    python examples/forecasting/forecasting.py --data-dir DIR --out forecasting

DIR has classics/sunspot.year.csv.gz, as R's `write.csv` writes it. Each model is fitted once, to the years before 1921,
and then forecasts from the end of every year after that. Writes forecast.png, coverage.png and forecasting.md.
"""

import argparse
import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

import credo
from credo.applications import Autoregression, Backtest, autoregression
from credo.report.style import CYCLE, INK, dress, legend

YEARS = 221  # 1700–1920
HORIZON = 10
LAGS = 9
MODELS: dict[str, Callable[[np.ndarray], Autoregression]] = {
    "line": lambda y: autoregression(y, LAGS, method="gibbs", nodes=0),
    "windowed": lambda y: autoregression(
        y, LAGS, method=credo.methods.NUTS(warmup=500), network=credo.networks.mlp([8], "tanh"), steps=500
    ),
    "recurrent": lambda y: autoregression(
        y, LAGS, method=credo.methods.BayesByBackprop(learning_rate=0.01, initial_std=0.02),
        network=credo.networks.gru(8), steps=6000,
    ),
}  # fmt: skip


def sunspots(folder: str) -> np.ndarray:
    """Square roots of the yearly numbers: their noise is then about the same everywhere."""
    with gzip.open(Path(folder) / "classics" / "sunspot.year.csv.gz", "rt") as lines:
        values = [float(line.rsplit(",", 1)[1]) for line in list(lines)[1:]]
    return np.sqrt(np.array(values))


def coverage_figure(found: dict[str, Backtest]) -> Figure:
    """Coverage of 90 % intervals and CRPS, by the years ahead."""
    figure = Figure(figsize=(9.6, 4.0), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    years = np.arange(1, HORIZON + 1)
    dress(left, "How often 90 % intervals held", "years ahead", "values inside (%)")
    dress(right, "CRPS (less is better)", "years ahead", "√ sunspots")
    left.axhline(90, color=INK, lw=1, ls=":", label="promised")
    for (name, test), colour in zip(found.items(), CYCLE):
        left.plot(years, 100 * test.coverage(0.9), color=colour, lw=1.8, marker="o", ms=4, label=name)
        right.plot(years, test.crps, color=colour, lw=1.8, marker="o", ms=4)
    left.set_ylim(0, 103)
    right.set_ylim(bottom=0)
    legend(figure, 4)
    return figure


def forecast_figure(series: np.ndarray, made: dict[str, Any]) -> Figure:
    """The first forecast of every model beside what came."""
    figure = Figure(figsize=(9.6, 3.6), dpi=110, layout="constrained")
    figure.suptitle("Median and 90 % interval of ten years ahead; dots: what came", fontsize=10)
    years = np.arange(1700, 1700 + len(series))
    for area, (name, forecast), colour in zip(figure.subplots(1, len(made), sharey=True), made.items(), CYCLE):
        dress(area, name, "year", "√ sunspots")
        shown = slice(YEARS - 25, YEARS + HORIZON)
        low, high = forecast.interval(0.9)
        ahead = years[YEARS : YEARS + HORIZON]
        area.fill_between(ahead, low, high, color=colour, alpha=0.25, lw=0, label="_")
        area.plot(ahead, forecast.quantile(0.5), color=colour, lw=1.8)
        area.plot(years[shown], series[shown], color=INK, lw=1, marker=".", ms=4)
    return figure


def main() -> int:
    """Fit, forecast, hold against what came."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    series = sunspots(options.data_dir)
    options.out.mkdir(parents=True, exist_ok=True)
    tests: dict[str, Backtest] = {}
    made: dict[str, Any] = {}
    command = "python examples/forecasting/forecasting.py --data-dir DIR --out forecasting"
    lines = [f"Made by `{command}`. Square roots of yearly sunspots, fitted to 1700–1920, "
             "forecast from the end of each year from 1920 on.", "",
             "| model | RMSE 1 year | RMSE 10 years | CRPS 1 | CRPS 10 | in 90 % intervals, all years | seconds |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name in options.models.split(","):
        began = time.perf_counter()
        model = MODELS[name](series[:YEARS])
        tests[name] = model.backtest(jax.random.key(1), series[YEARS:], HORIZON)
        made[name] = model.forecast(jax.random.key(2), HORIZON)
        rmse, crps, held = tests[name].rmse, tests[name].crps, tests[name].coverage(0.9)
        lines.append(
            f"| {name} | {rmse[0]:.3f} | {rmse[-1]:.3f} | {crps[0]:.3f} | {crps[-1]:.3f} | {100 * held.mean():.0f} % | "
            f"{time.perf_counter() - began:.0f} |"
        )
        print(lines[-1], flush=True)
    coverage_figure(tests).savefig(options.out / "coverage.png", facecolor="white")
    forecast_figure(series, made).savefig(options.out / "forecast.png", facecolor="white")
    (options.out / "forecasting.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
