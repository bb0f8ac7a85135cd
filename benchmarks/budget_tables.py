"""Tables on which short budgets are hard: many more columns than rows, mixed types, a rare class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.tables import Example, small


def genes(seed: int = 0, rows: int = 170) -> Example:
    """Two thousand columns for 170 rows; a sum of ten of them, of which none matters much, and as much noise."""
    import pandas as pd

    rng = np.random.default_rng([seed, 1])
    x = rng.normal(size=(rows, 2000))
    effects = rng.choice([-1.0, 1.0], 10) * rng.uniform(0.5, 1.0, 10)
    signal = x[:, :10] @ effects
    y = signal + np.sqrt(np.square(effects).sum()) * rng.normal(size=rows)
    order = rng.permutation(2000)
    frame = pd.DataFrame(x[:, order], columns=[f"g{i}" for i in range(2000)])
    return Example(frame.assign(level=y), "level", "regression")


def mixed(seed: int = 0, rows: int = 1300) -> Example:
    """Houses: areas, years, dates of sale, towns, kinds and yes or no; prices whose spread grows with their size."""
    import pandas as pd

    rng = np.random.default_rng([seed, 2])
    area, year = rng.gamma(8.0, 15.0, rows), rng.integers(1900, 2024, rows)
    town = rng.choice(["Bath", "York", "Leeds", "Hull", "Ely", "Ripon"], rows, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    kind = rng.choice(["flat", "house", "cottage"], rows, p=[0.5, 0.4, 0.1])
    garden, day = rng.random(rows) < 0.4, rng.integers(0, 1500, rows)
    level = {"Bath": 0.5, "York": 0.3, "Leeds": 0.0, "Hull": -0.4, "Ely": 0.1, "Ripon": -0.1}
    log_price = 8.0 + 0.8 * np.log(area) + np.vectorize(level.get)(town) + 0.0001 * day
    log_price += 0.15 * (kind == "cottage") * (year < 1950) + 0.1 * garden * (kind != "flat")
    log_price += 0.0015 * (year - 1960) * (kind == "flat") + rng.normal(0, 0.12 + 0.1 * (kind == "cottage"), rows)
    frame = pd.DataFrame({
        "area": area.round(1), "built": year, "town": town, "kind": kind, "garden": garden,
        "sold": pd.Timestamp("2019-01-01") + pd.to_timedelta(day, "D"),
    })  # fmt: skip
    return Example(frame.assign(price=np.exp(log_price).round(-2)), "price", "regression")


def churn(seed: int = 0, rows: int = 2000) -> Example:
    """Customers of whom a fifth leaves, for reasons that the columns tell in part."""
    import pandas as pd

    rng = np.random.default_rng([seed, 3])
    months, bill = rng.gamma(2.0, 12.0, rows), rng.normal(60, 20, rows)
    calls, contract = rng.poisson(1.2, rows), rng.choice(["month", "year", "two years"], rows, p=[0.55, 0.25, 0.2])
    paperless, age = rng.random(rows) < 0.6, rng.integers(18, 85, rows)
    logit = -1.75 - 0.04 * (months - 24) + 0.012 * (bill - 60) + 0.35 * (calls - 1.2)
    logit += np.where(contract == "month", 0.6, -0.6) + 0.3 * paperless * (age < 35)
    left = np.where(rng.random(rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    frame = pd.DataFrame({
        "months": months.round(1), "bill": bill.round(2), "calls": calls, "contract": contract,
        "paperless": paperless, "age": age, "noise_1": rng.normal(size=rows), "noise_2": rng.normal(size=rows),
    })  # fmt: skip
    return Example(frame.assign(left=left), "left", "classification")


TABLES: dict[str, Callable[..., Example]] = {"diabetes": small, "genes": genes, "mixed": mixed, "churn": churn}
