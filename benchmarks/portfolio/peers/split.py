"""A split as a rival sees it: training rows with their targets, rows to predict, and encodings that rivals share."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

HELD_OUT = 10  # one row of so many stops boosting early and tells the noise
MOST_INDICATORS = 30  # levels of a column that become columns of their own


class Split(NamedTuple):
    """Columns of numbers and of text; targets are numbers, or codes of classes."""

    x: pd.DataFrame
    y: np.ndarray
    new: pd.DataFrame
    task: str
    seed: int

    @property
    def regression(self) -> bool:
        return self.task == "regression"

    @property
    def texts(self) -> list[str]:
        """The columns of categories."""
        return [name for name in self.x if not pd.api.types.is_numeric_dtype(self.x[name])]


def read(folder: Path) -> Split:
    """What the benchmark wrote for this process. A date becomes its day, its month and its day of the week."""
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    x, new = (_plain(pd.read_parquet(folder / f"{name}.parquet")) for name in ("train", "new"))
    y = np.load(folder / "targets.npy", allow_pickle=False)
    return Split(x, y, new, facts["task"], facts["seed"])


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name, values in frame.items():
        if pd.api.types.is_datetime64_any_dtype(values):
            columns[f"{name} day"] = (values - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            columns[f"{name} month"] = values.dt.month
            columns[f"{name} weekday"] = values.dt.weekday
        elif pd.api.types.is_numeric_dtype(values):
            columns[str(name)] = values.astype(float)
        else:
            columns[str(name)] = values.astype(object).where(values.notna(), "no value").astype(str)
    return pd.DataFrame(columns)


def halves(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to hold out: every tenth at random, of each class as many as it has tenths."""
    order = np.random.default_rng(split.seed).permutation(len(split.y))
    if split.regression:
        return order[len(order) // HELD_OUT :], order[: len(order) // HELD_OUT]
    order = order[np.argsort(split.y[order], kind="stable")]
    held = np.arange(len(order)) % HELD_OUT == HELD_OUT // 2
    alone = np.bincount(split.y.astype(int))[split.y[order].astype(int)] < 2
    return order[~held | alone], order[held & ~alone]


def with_levels(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns of text as pandas categories, for rivals that know them: a level that is new is a missing cell."""
    x, new = split.x.copy(), split.new.copy()
    for name in split.texts:
        levels = pd.CategoricalDtype(sorted(x[name].unique()))
        column = new[name].where(new[name].isin(levels.categories))
        x[name], new[name] = x[name].astype(levels), column.astype(levels)
    return x, new


def numbers(split: Split, codes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Columns of numbers alone: medians for missing cells with a mark beside them, indicators for few levels.

    Columns of many levels become the means of the targets at each (scikit-learn's `TargetEncoder`, cross-fitted);
    with `codes`, levels are numbered instead.
    """
    parts: list[np.ndarray] = []
    new_parts: list[np.ndarray] = []
    for name in split.x:
        for part, new in _columns(split, name, codes):
            parts.append(part)
            new_parts.append(new)
    return np.column_stack(parts), np.column_stack(new_parts)


def _columns(split: Split, name: str, codes: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    x, new = split.x[name], split.new[name]
    if name not in split.texts:
        middle = x.median()
        filled = [(x.fillna(middle).to_numpy(), new.fillna(middle).to_numpy())]
        return [*filled, (x.isna().to_numpy(float), new.isna().to_numpy(float))] if x.isna().any() else filled
    levels = sorted(x.unique())
    if codes:
        positions = {level: float(i) for i, level in enumerate(levels)}
        return [(x.map(positions).to_numpy(float), new.map(positions).fillna(-1.0).to_numpy(float))]
    if len(levels) <= MOST_INDICATORS:
        return [((x == level).to_numpy(float), (new == level).to_numpy(float)) for level in levels]
    from sklearn.preprocessing import TargetEncoder

    kind = "continuous" if split.regression else "auto"
    encoder = TargetEncoder(target_type=kind, random_state=split.seed)
    encoded = encoder.fit_transform(x.to_frame(), split.y)
    return list(zip(encoded.T, encoder.transform(new.to_frame()).T))
