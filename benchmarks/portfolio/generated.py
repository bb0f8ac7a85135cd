"""Generated tables on which a portfolio of models differs: many categories, and cells that are missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.tables import Example, friedman

NOISE = 0.5  # standard deviation: no model can have an RMSE below it on tables of categories


def categories(levels: int, rows: int, seed: int = 0) -> Example:
    """One column of many levels, of which few are frequent, and four of numbers.

    y = a_level + sin 2x₀ + x₁x₂ / 2 + 0.5 ε with a ~ N(0, 1), and the fourth number does not matter.
    """
    import pandas as pd

    rng = np.random.default_rng([seed, 11, levels])
    share = 1 / (np.arange(levels) + 10.0)
    code, effect = rng.choice(levels, rows, p=share / share.sum()), rng.normal(size=levels)
    x = rng.normal(size=(rows, 4))
    y = effect[code] + np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + NOISE * rng.normal(size=rows)
    frame = pd.DataFrame({f"x{i}": x[:, i] for i in range(4)})
    return Example(frame.assign(shop=[f"shop {c}" for c in rng.permutation(levels)[code]], y=y), "y", "regression")


def missing(at_random: bool, rows: int = 2000, seed: int = 0) -> Example:
    """Friedman's function (1991) of numbers, an effect of a category, noise of 1; a fifth of the cells is missing.

    At random all cells are as likely to be missing. Not at random large numbers and some levels are: whether a cell
    is there tells what it was.
    """
    import pandas as pd

    rng = np.random.default_rng([seed, 12, at_random])
    x, code = rng.uniform(size=(rows, 8)), rng.choice(6, rows)
    y = friedman(x) + 2.0 * rng.normal(size=6)[code] + rng.normal(size=rows)
    chance = np.full(x.shape, 0.2) if at_random else 0.4 * x
    chance_of_level = np.full(rows, 0.2) if at_random else 0.08 * code
    cells = np.where(rng.random(x.shape) < chance, np.nan, x)
    kind = np.where(rng.random(rows) < chance_of_level, None, np.array([f"kind {c}" for c in range(6)], object)[code])
    frame = pd.DataFrame({f"x{i}": cells[:, i] for i in range(8)})
    return Example(frame.assign(kind=kind, y=y), "y", "regression")


TABLES: dict[str, Callable[..., Example]] = {
    "categories_300": partial(categories, 300, 5_000),
    "categories_10000": partial(categories, 10_000, 20_000),
    "missing_random": partial(missing, True),
    "missing_told": partial(missing, False),
}
