"""The five problems, as arrays on the scale that they are judged on."""

import csv
import dataclasses
import gzip
from pathlib import Path

import numpy as np

FOLDS = 5
BINS, FIRST, LAST = 24, 9.0, 35.0  # of the galaxies' velocities, in 1,000 km/s


@dataclasses.dataclass(frozen=True)
class Curve:
    """A target against one input, with test rows or, where there are none, cross-validation.

    Attributes:
        name, title, labels: what to call it, and its axes.
        note: what a reader must know, for the table of scores.
        inputs, targets: training rows [n].
        test: inputs and targets of test rows; None for cross-validation.
        folds: which fold each training row is in [n], for cross-validation.
        truth: the true function and the standard deviation of the noise, where both are known.
    """

    name: str
    title: str
    labels: tuple[str, str]
    note: str
    inputs: np.ndarray
    targets: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None = None
    folds: np.ndarray | None = None
    truth: tuple[object, float] | None = None


@dataclasses.dataclass(frozen=True)
class Series:
    """A series that goes on after its training part.

    Attributes:
        name, title, labels, note: as in `Curve`.
        times, values: of all values [n].
        num_train: how many are learned from.
        lags: how many steps back the inputs lie.
        shown: how many of the training values the figure shows.
    """

    name: str
    title: str
    labels: tuple[str, str]
    note: str
    times: np.ndarray
    values: np.ndarray
    num_train: int
    lags: tuple[int, ...]
    shown: int


def rdata(folder: Path) -> Curve:
    """Neal's example: 100 rows to learn from and 1,000 to be judged by."""
    with np.load(folder / "neal_fbm" / "fbm_examples.npz", allow_pickle=False) as arrays:
        x, y = arrays["rdata"].T
    off = float(np.std(y - neal_function(x)))
    note = (
        "Neal's example for Bayesian Learning for Neural Networks (1996), 100 training and 1,000 test rows, from the "
        "documentation of his software (FBM), whose generator has y = 0.3 + 0.4x + 0.5 sin(2.7x) + 1.1/(1 + x²) + ε "
        f"with σ = 0.1; over all {len(x):,} rows the standard deviation of y around that function is {off:.4f}."
    )
    test = (x[100:], y[100:])
    truth = (neal_function, 0.1)
    return Curve("rdata", "Neal's rdata", ("input x", "target y"), note, x[:100], y[:100], test, truth=truth)


def neal_function(x: np.ndarray) -> np.ndarray:
    """The function that made `rdata`."""
    return 0.3 + 0.4 * x + 0.5 * np.sin(2.7 * x) + 1.1 / (1 + x**2)


def lynx(folder: Path) -> Series:
    """Lynx trapped in the Mackenzie River district, 1821–1934."""
    times, values = columns(folder, "lynx")
    note = (
        "Canadian lynx trapped each year, 1821–1934, as log10, nonlinear autoregression on lags 1 and 2. Learned from "
        "the first 100 values and judged one step ahead on the last 14, on the log10 scale."
    )
    labels = ("year", "lynx trapped, log10")
    return Series("lynx", "Canadian lynx", labels, note, times, np.log10(values), 100, (1, 2), 40)


def sunspots(folder: Path) -> Series:
    """Yearly sunspot numbers, 1700–1979."""
    times, values = (column[:280] for column in columns(folder, "sunspot.year"))
    num_train = int((times <= 1920).sum())
    note = (
        "Yearly sunspot numbers as square roots, nonlinear autoregression on lags 1, 2 and 9. Learned from 1700–1920 "
        f"and judged one step ahead on 1921–{times[-1]:.0f}, on the scale of square roots."
    )
    labels = ("year", "square root of the sunspot number")
    return Series("sunspots", "Sunspots", labels, note, times, np.sqrt(values), num_train, (1, 2, 9), 40)


def mcycle(folder: Path) -> Curve:
    """Acceleration of a head in a simulated motorcycle accident."""
    x, y = columns(folder, "mcycle")
    note = (
        f"Head acceleration (g) after a simulated motorcycle accident, {len(x)} rows, {FOLDS}-fold cross-validation. "
        "The noise is heteroscedastic (almost none in the first 14 ms, much in the middle) and all four models have "
        "noise of one size: bands are too wide on the left, and scores are those of models that are wrong in this."
    )
    labels = ("time after impact, ms", "acceleration, g")
    folds = np.random.default_rng(0).permutation(len(x)) % FOLDS
    return Curve("mcycle", "Motorcycle accident", labels, note, x, y, folds=folds)


def galaxies(folder: Path) -> Curve:
    """Velocities of 82 galaxies, as a histogram whose counts are transformed to noise of about one size.

    A density is not a regression, and this does not estimate one with a likelihood of its own: it regresses
    2√(count + 3/8) (Anscombe, 1948) on the middle of the bin. For Poisson counts that are not small its noise is about
    N(0, 1); empty bins, of which there are many, have less noise and cannot lie below 2√(3/8) = 1.22.
    """
    velocities = columns(folder, "galaxies")[-1] / 1000
    counts, edges = np.histogram(velocities, BINS, (FIRST, LAST))
    note = (
        f"Velocities of 82 galaxies in {BINS} equal bins between {FIRST:g} and {LAST:g} thousand km/s. A density is no "
        "regression: this regresses Anscombe's 2√(count + 3/8) on the middle of the bin, whose noise is about N(0, 1) "
        f"where counts are not small. {FOLDS}-fold cross-validation over bins (every fifth bin is left out). Rows are "
        "few; this shows where galaxies are many and how sure one can be of it, not a density. The marginal likelihood "
        "of the Gaussian process has its maximum at almost no noise in one of the folds, which costs it its score."
    )
    labels = ("velocity, 1,000 km/s", "2√(galaxies in the bin + 3/8)")
    middles = (edges[1:] + edges[:-1]) / 2
    folds = np.arange(BINS) % FOLDS
    return Curve("galaxies", "Galaxies", labels, note, middles, 2 * np.sqrt(counts + 0.375), folds=folds)


def columns(folder: Path, name: str) -> np.ndarray:
    """The columns of a classic, without the first one, which numbers the rows."""
    with gzip.open(folder / "classics" / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([[float(cell) for cell in row[1:]] for row in rows]).T


PROBLEMS = {"rdata": rdata, "lynx": lynx, "sunspots": sunspots, "mcycle": mcycle, "galaxies": galaxies}
