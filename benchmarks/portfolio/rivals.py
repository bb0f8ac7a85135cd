"""Who takes part: rivals with what they can take, and credo's `auto` with what it is told."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.portfolio.sets import DataSet
from benchmarks.records import fingerprint
from benchmarks.rules import rules

BOTH = ("regression", "classification")


class Rival(NamedTuple):
    """A model of the peers' environment: its function in `benchmarks.portfolio.peers`, and limits of a training set."""

    module: str
    words: str
    tasks: tuple[str, ...] = BOTH
    most_rows: int | None = None
    most_columns: int | None = None
    most_classes: int | None = None
    revision: int = 1  # another number makes its records anew


RIVALS = {
    "lightgbm": Rival("boosting", "LightGBM, 2,000 trees at most, early stopping, normal noise of held-out residuals"),
    "catboost": Rival(
        "boosting", "CatBoost, its 1,000 trees at most, early stopping; for numbers RMSEWithUncertainty or normal "
        "noise of held-out residuals, whichever held-out rows find likelier",
    ),
    "gp": Rival("classic", "a Gaussian process of scikit-learn, Matérn-5/2, a scale for each column",
                ("regression",), most_rows=2000),
    "forest": Rival("classic", "a random forest of scikit-learn, its 100 trees, normal noise of out-of-bag residuals"),
    "ngboost": Rival("boosting", "NGBoost, 2,000 trees at most, early stopping, its normal density"),
    "xgboost": Rival("boosting", "XGBoost, 2,000 trees at most, early stopping, normal noise of held-out residuals"),
    "tabpfn": Rival("networks", "TabPFN 0.1, its first version, 32 configurations", ("classification",), 1000, 100, 10),
    "realmlp": Rival("networks", "RealMLP-TD of pytabkit, normal noise of validation residuals"),
    "tabm": Rival("networks", "TabM of pytabkit, normal noise of validation residuals"),
}  # fmt: skip
# credo's own: what `credo.tables.fit` is told beyond the table, by the name in the records.
CREDO: dict[str, dict[str, Any]] = {"auto": {}, "auto_quick": {"effort": "quick"}, "auto_best": {"effort": "best"}}
MODELS = (*CREDO, *RIVALS)


def credo_options(model: str) -> dict[str, Any]:
    """All that a fit of credo is told beside the table and its target: nothing is held out to be scored.

    Example:
        >>> credo_options("auto")
        {'holdout': 0.0}
    """
    return {"holdout": 0.0} | CREDO[model]


def refusal(model: str, data: DataSet, rows: int) -> str | None:
    """Why a rival takes no part on a set, or None."""
    if model in CREDO:
        return None
    rival = RIVALS[model]
    columns, classes = data.frame.shape[1] - 1, data.frame[data.target].nunique()
    limits: Iterable[tuple[bool, str]] = (
        (data.task not in rival.tasks, f"{model} is not run on {data.task}"),
        (_above(rows, rival.most_rows), f"{model} takes {rival.most_rows} rows at most, got {rows}"),
        (_above(columns, rival.most_columns), f"{model} takes {rival.most_columns} columns at most, got {columns}"),
        (
            data.task == "classification" and _above(classes, rival.most_classes),
            f"{model} takes {rival.most_classes} classes at most, got {classes}",
        ),
    )
    return next((sentence for wrong, sentence in limits if wrong), None)


def _above(number: int, most: int | None) -> bool:
    return most is not None and number > most


def mark(model: str, data: DataSet, split: int) -> str:
    """The fingerprint of a piece of work: with other rules of `auto`, or another split, it is another one."""
    train, new = (np.asarray(part, np.int64) for part in data.splits[split])
    details = (
        [sorted(CREDO[model].items()), *rules(data.task)] if model in CREDO else [RIVALS[model]._replace(words="")]
    )
    return fingerprint(model, data.name, train, new, *details)
