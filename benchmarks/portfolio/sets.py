"""The portfolio's sets: small and large, of numbers and of classes, with splits that everybody can make again.

Sets with published splits keep the first five of them. All others are cut five times into 80 % and 20 % by
`numpy.random.default_rng(s).permutation(rows)`, s = 0 … 4: the first part is for training. Sets of more than 10,000
rows have two splits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks import budget_tables, tables, uci_data
from benchmarks.portfolio import generated
from credo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SPLITS, SPLITS_OF_LARGE, LARGE, TRAINING = 5, 2, 10_000, 0.8
Parts = list[tuple[np.ndarray, np.ndarray]]


class DataSet(NamedTuple):
    """A table, its target, the task that it is, and the rows to learn from and to score of each split."""

    name: str
    task: str
    frame: pd.DataFrame
    target: str
    splits: Parts


def load(name: str, folder: Path | None) -> DataSet:
    """A set by its name; `folder` is needed where the set is no table that is made here."""
    task, frame, target, parts = SETS[name](folder)
    parts = random_splits(len(frame)) if parts is None else parts
    most = SPLITS_OF_LARGE if len(frame) > LARGE else SPLITS
    return DataSet(name, task, frame, target, parts[:most])


def random_splits(rows: int) -> Parts:
    """Five times 80 % and 20 %.

    Example:
        >>> [(len(train), len(new)) for train, new in random_splits(10)]
        [(8, 2), (8, 2), (8, 2), (8, 2), (8, 2)]
    """
    cut = int(TRAINING * rows)
    orders = [np.random.default_rng(seed).permutation(rows) for seed in range(SPLITS)]
    return [(order[:cut], order[cut:]) for order in orders]


Loaded = tuple[str, "pd.DataFrame", str, Parts | None]


def _frame(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({f"x{i}": x[:, i].astype(np.float64) for i in range(x.shape[1])} | {"y": y})


def _arrays(folder: Path | None, path: str) -> dict[str, np.ndarray]:
    if folder is None or not (folder / path).is_file():
        raise InputError(f"There is no {path} in {folder}: --data-dir names the folder with the public sets.")
    with np.load(folder / path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _uci(name: str, folder: Path | None) -> Loaded:
    arrays = _arrays(folder, f"uci_regression/{uci_data.FILES.get(name, name)}.npz")
    parts = list(zip(arrays["train_idx"][:SPLITS], arrays["test_idx"][:SPLITS]))
    return "regression", _frame(arrays["X"], arrays["y"]), "y", parts


def _uci_more(name: str, folder: Path | None) -> Loaded:
    arrays = _arrays(folder, f"uci_more/{name}.npz")
    masks = arrays["test_mask"].T[:SPLITS]
    parts = [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
    return "regression", _frame(arrays["X"], arrays["y"]), "y", parts


def _airfoil(folder: Path | None) -> Loaded:
    data = _arrays(folder, "airfoil/airfoil.npz")["data"]
    return "regression", _frame(data[:, :-1], data[:, -1]), "y", None


def _classes(name: str, folder: Path | None) -> Loaded:
    arrays = _arrays(folder, f"classification/{name}.npz")
    return "classification", _frame(arrays["X"], arrays["y"].astype(int)), "y", None


def _neal(name: str, training: int, folder: Path | None) -> Loaded:
    data = _arrays(folder, "neal_fbm/fbm_examples.npz")[name]
    parts = [(np.arange(training), np.arange(training, len(data)))]
    return "classification", _frame(data[:, :-1], data[:, -1].astype(int)), "y", parts


def _scikit_learn(name: str, folder: Path | None) -> Loaded:
    import sklearn.datasets

    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return "classification", _frame(x, y), "y", None


def _generated(make: Callable[..., tables.Example], folder: Path | None) -> Loaded:
    example = make(seed=0)
    return example.task, example.frame, example.target, None


MORE = (
    "autompg", "autos", "concreteslump", "elevators", "forest", "keggdirected", "kin40k", "machine", "parkinsons",
    "pol", "servo", "skillcraft", "sml", "solar",
)  # fmt: skip
CLASSES = ("australian", "glass", "heart", "ionosphere", "sonar", "wine_white")
GENERATED: dict[str, Callable[..., tables.Example]] = {
    "diabetes": tables.small,
    "wide": tables.wide,
    "large": partial(tables.large, rows=50_000),
    "categorical": tables.categorical,
    "heavy_tailed": tables.heavy_tailed,
    "classes": tables.classes,
    "genes": budget_tables.genes,
    "mixed": budget_tables.mixed,
    "churn": budget_tables.churn,
    **generated.TABLES,
}
SETS: dict[str, Callable[[Path | None], Loaded]] = {
    **{name: partial(_uci, name) for name in uci_data.SETS},
    "airfoil": _airfoil,
    **{name: partial(_uci_more, name) for name in MORE},
    **{name: partial(_classes, name) for name in CLASSES},
    "iris": partial(_scikit_learn, "iris"),
    "breast_cancer": partial(_scikit_learn, "breast_cancer"),
    "cultivars": partial(_scikit_learn, "wine"),
    "digits": partial(_scikit_learn, "digits"),
    "neal_b": partial(_neal, "bdata", 300),
    "neal_c": partial(_neal, "cdata", 400),
    **{name: partial(_generated, make) for name, make in GENERATED.items()},
}
