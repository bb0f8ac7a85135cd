"""The UCI regression sets with their published splits: DIR/uci_regression/NAME.npz with X, y, train_idx, test_idx."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from credo.errors import InputError

FILES = {
    "boston": "bostonHousing", "power": "power-plant", "protein": "protein-tertiary-structure",
    "naval": "naval-propulsion-plant", "wine": "wine-quality-red",
}  # fmt: skip
SETS = ("yacht", "boston", "energy", "concrete", "wine", "kin8nm", "power", "naval", "protein")
FOLDS = 5

Arrays = dict[str, np.ndarray]


def load(folder: Path, name: str) -> Arrays:
    """Inputs, targets, and the rows of each split to learn from and to test on."""
    path = folder / "uci_regression" / f"{FILES.get(name, name)}.npz"
    if not path.is_file():
        raise InputError(f"There is no {path}: --data-dir names the folder that holds uci_regression/.")
    with np.load(path, allow_pickle=False) as file:
        missing = {"X", "y", "train_idx", "test_idx"} - set(file.files)
        if missing:
            raise InputError(f"{path} has no {', '.join(sorted(missing))}.")
        return {key: file[key] for key in ("X", "y", "train_idx", "test_idx")}


class Task(NamedTuple):
    """Rows to fit and rows to score, standardised on the former; `spread` is the standard deviation of their y."""

    x: np.ndarray
    y: np.ndarray
    new_x: np.ndarray
    new_y: np.ndarray
    spread: np.ndarray | np.floating


def task(data: Arrays, rows: np.ndarray, new: np.ndarray) -> Task:
    """Learn from some rows, score others."""
    x, y = data["X"], data["y"]
    centre, width = x[rows].mean(0), x[rows].std(0)
    width = np.where(width > 0, width, 1.0)
    shift, spread = y[rows].mean(), y[rows].std()
    x, y = ((x - centre) / width).astype(np.float32), ((y - shift) / spread).astype(np.float32)[:, None]
    return Task(x[rows], y[rows], x[new], y[new], np.float32(spread))


def outside(data: Arrays, split: int) -> Task:
    """A published split: all its training rows, scored on its test rows."""
    return task(data, data["train_idx"][split], data["test_idx"][split])


def folds(data: Arrays, split: int) -> list[Task]:
    """Tasks of equal size within the training rows of a split: a few rows may be in no fold's test part."""
    rows = data["train_idx"][split]
    order = np.random.default_rng(split).permutation(rows)
    parts = order[: len(rows) // FOLDS * FOLDS].reshape(FOLDS, -1)
    return [task(data, np.setdiff1d(order, part), part) for part in parts]
