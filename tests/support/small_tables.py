"""Small tables, and options with which a fit on them is quick."""

import numpy as np
import pandas as pd

QUICK = ("--method", "map", "--network", "mlp:3", "--steps", "20")


def regression_frame(rows=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(50, 10, rows), "rooms": rng.integers(1, 6, rows)})
    frame["town"] = rng.choice(["Bath", "York", "Leeds"], rows)
    frame["garden"] = rng.choice([True, False], rows)
    frame["sold"] = pd.date_range("2020-01-01", periods=rows).strftime("%Y-%m-%d")
    frame["weight"] = rng.uniform(0.5, 2, rows)
    frame["price"] = 1000 + 40 * frame["size"] + 100 * frame["rooms"] + rng.normal(0, 60, rows)
    return frame


def class_frame(rows=60):
    frame = regression_frame(rows)
    frame["price"] = np.where(frame["price"] > 3500, "dear", np.where(frame["price"] > 3000, "fair", "cheap"))
    return frame
