"""Six tables as people bring them, and counts: small, wide, large, with categories, with heavy tails, with classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import credo

if TYPE_CHECKING:
    import pandas as pd

BUNDLED = Path(str(credo.__file__)).parent / "tables" / "bundled"


class Example(NamedTuple):
    """A table, its target and the task that it is."""

    frame: pd.DataFrame
    target: str
    task: str


def small(seed: int = 0, rows: int | None = None) -> Example:
    """The bundled table of 442 patients: how far diabetes went on in a year (Efron et al., 2004)."""
    import pandas as pd

    frame = pd.read_csv(BUNDLED / "diabetes.csv")
    return Example(frame if rows is None else frame.head(rows), "progression", "regression")


def wide(seed: int = 0, rows: int = 400) -> Example:
    """Sixty inputs of which five matter: y = x₀ + x₁x₂ + sin 2x₃ − |x₄| + 0.3 ε."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 60))
    y = x[:, 0] + x[:, 1] * x[:, 2] + np.sin(2 * x[:, 3]) - np.abs(x[:, 4]) + 0.3 * rng.normal(size=rows)
    return Example(_frame(x, y), "y", "regression")


def large(seed: int = 0, rows: int = 1_000_000) -> Example:
    """A million rows, eight inputs, Friedman's function (1991), noise that grows along one input."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(rows, 8))
    y = friedman(x) + (0.5 + 1.5 * x[:, 5]) * rng.normal(size=rows)
    return Example(_frame(x, y), "y", "regression")


def categorical(seed: int = 0, rows: int = 3000) -> Example:
    """Four columns of categories with effects of their own and of pairs, three of numbers."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    levels = (3, 5, 8, 12)
    codes = [rng.choice(n, rows, p=rng.dirichlet(np.full(n, 2.0))) for n in levels]
    x = rng.normal(size=(rows, 3))
    y = sum(rng.normal(size=n)[c] for n, c in zip(levels, codes)) + np.sin(2 * x[:, 0])
    y = y + rng.normal(size=(3, 5))[codes[0], codes[1]] * x[:, 1] + 0.5 * rng.normal(size=rows)
    frame = pd.DataFrame({f"x{i}": x[:, i] for i in range(3)})
    for i, code in enumerate(codes):
        frame[f"kind{i}"] = [f"level {c}" for c in code]
    return Example(frame.assign(y=y), "y", "regression")


def heavy_tailed(seed: int = 0, rows: int = 2000) -> Example:
    """Friedman's function with noise of Student's t with two degrees of freedom."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(rows, 6))
    return Example(_frame(x, friedman(x) + rng.standard_t(2, size=rows)), "y", "regression")


def classes(seed: int = 0, rows: int = 2000) -> Example:
    """Three classes by the distance from a centre and the sign of a product, a tenth of the labels at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 6))
    ring = (x[:, :2] ** 2).sum(1) > 1.5
    label = np.where(ring, 2, (x[:, 2] * x[:, 3] > 0).astype(int))
    label = np.where(rng.random(rows) < 0.1, rng.integers(3, size=rows), label)
    return Example(_frame(x, np.array(["a", "b", "c"])[label]), "y", "classification")


def counts(seed: int = 0, rows: int = 1500) -> Example:
    """Counts with variance μ + μ²/3."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 5))
    mean = _count_mean(x)
    return Example(_frame(x, rng.poisson(mean * rng.gamma(3.0, 1 / 3.0, size=rows))), "y", "count")


def _count_mean(x: np.ndarray) -> np.ndarray:
    return np.exp(1 + 0.6 * x[:, 0] + 0.4 * np.sin(2 * x[:, 1]) + 0.3 * x[:, 2] * x[:, 3])


def attainable(name: str, level: float, seed: int = 0) -> float:
    """How often the interval between quantiles of the true distribution holds: the level for numbers, more for counts,
    whose intervals end at whole numbers.

    Example:
        >>> attainable("small", 0.9), round(attainable("counts", 0.9), 2)
        (0.9, 0.96)
    """
    if name != "counts":
        return level
    from scipy.stats import nbinom

    x = counts(seed).frame[[f"x{i}" for i in range(5)]].to_numpy()
    truth = nbinom(3, 3 / (3 + _count_mean(x)))
    low, high = truth.ppf(0.5 - level / 2), truth.ppf(0.5 + level / 2)
    return float((truth.cdf(high) - truth.cdf(low - 1)).mean())


def friedman(x: np.ndarray) -> np.ndarray:
    """10 sin(π x₀x₁) + 20 (x₂ − ½)² + 10 x₃ + 5 x₄."""
    return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]


def _frame(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({f"x{i}": x[:, i] for i in range(x.shape[1])} | {"y": y})


TABLES: dict[str, Callable[..., Example]] = {
    "small": small,
    "wide": wide,
    "large": large,
    "categorical": categorical,
    "heavy_tailed": heavy_tailed,
    "classes": classes,
    "counts": counts,
}
