"""What a comparison found: scores, and whether the first is better than the others by more than chance."""

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import norm

from credo.core.short import fields_in_short

RESAMPLES = 2000
OVERRUN = 1.5  # times the budget, compilation aside, beyond which a fit is marked


@dataclasses.dataclass
class Comparison:
    """The result of `credo.compare`.

    Attributes:
        table: one row for each model, best mean log-likelihood first: scores over all rows, each held out once, with
            "behind" (nats by which it trails the first, with the ends of the paired interval "behind_low" and
            "behind_high"), "loo" and "evidence" (nats for each training row, where they are defined), "seconds" of a
            fold, "seconds_fit" of them for pilot and fit, "failed" (folds whose fit failed or has an alarm), "alarms"
            (a word → the sentence of the first such fold) and "over" (folds that took far more than the budget).
        refused: model → why it could not be run.
        level: of the intervals.
        task, target, folds: what was compared on.
        rows: how many were scored; those that `missing="drop"` leaves out were not.
        notes: sentences about the table.
        rowwise: model → score → values of every row [n].
        split_by: the column whose groups were held out whole, and over which the intervals are.
        budget: seconds that each fit was given.
    """

    table: list[dict[str, Any]]
    refused: dict[str, str]
    level: float
    task: str
    target: Any
    rows: int
    folds: int
    notes: list[str]
    rowwise: dict[str, dict[str, np.ndarray]] = dataclasses.field(repr=False)
    split_by: str | None = None
    budget: float | None = None

    __repr__ = fields_in_short

    @property
    def best(self) -> str:
        """The model with the largest log-likelihood."""
        return self.table[0]["model"]

    def to_pandas(self) -> Any:
        """The table as a data frame; alarms by their words alone."""
        import pandas as pd

        return pd.DataFrame([row | {"alarms": ", ".join(row["alarms"])} for row in self.table]).set_index("model")

    def sentences(self) -> list[str]:
        """Who leads, who is level with it, who is behind, who has no score, who was refused."""
        if not self.table:
            return ["No model could be run.", *(f"{name}: {why}" for name, why in self.refused.items())]
        sound = [row for row in self.table if np.isfinite(row["log_likelihood"])]
        level = [row["model"] for row in sound[1:] if row["behind_low"] <= 0]
        behind = [row["model"] for row in sound[1:] if row["behind_low"] > 0]
        unknown = [row["model"] for row in sound[1:] if np.isnan(row["behind_low"])]
        lost = [row["model"] for row in self.table if not np.isfinite(row["log_likelihood"])]
        lines = [f"{self.best} has the largest log-likelihood on rows that were not seen."] if sound else []
        if level:
            lines.append(f"By no more than chance could explain it leads {', '.join(level)}.")
        if behind:
            lines.append(f"Clearly behind: {', '.join(behind)}.")
        if unknown:
            lines.append(f"Whether chance could explain its lead cannot be told: {', '.join(unknown)}.")
        if lost:
            lines.append(
                "Without a finite log-likelihood, because some predictions are no numbers or leave what happened no "
                f"probability: {', '.join(lost)}."
            )
        return [*lines, *(f"{name} was not run: {why}" for name, why in self.refused.items())]

    def warnings(self) -> list[str]:
        """What the marks of the table mean: the alarms of each model with a star, and who took too long."""
        lines = []
        for row in (row for row in self.table if row["alarms"]):
            where = "" if self.folds == 1 else f" in {row['failed']} of {self.folds} folds"
            lines.append(f"* {row['model']} has an alarm{where}: {' '.join(row['alarms'].values())}")
        late = [f"{row['model']} ({row['seconds_fit']:.1f} s)" for row in self.table if row["over"]]
        if late and self.budget is not None:
            lines.append(
                f"† took more than {OVERRUN:g} times the budget of {self.budget:g} s, compilation aside, and so had "
                f"more time than others: {', '.join(late)}."
            )
        return lines

    def plot(self) -> Any:
        """How far each model is behind the first, with intervals, and seconds beside."""
        from credo.report.comparison import figure

        return figure(self)

    def __str__(self) -> str:
        return "\n".join([self.to_pandas().to_string() if self.table else "", *self.sentences(), *self.warnings()])


def rank_models(
    cells: dict[str, list[dict[str, Any]]],
    level: float,
    seed: int,
    groups: np.ndarray | None = None,
    intervals: bool = True,
) -> tuple[list[Any], dict[str, Any]]:
    """Rows of the table, best first, and the scores of every row by model; models whose every fold was run.

    Args:
        cells: model → what `run_cell` found in each fold.
        level, seed: of the intervals.
        groups: a number for the group of each row of the table, where groups were held out whole.
        intervals: False where the rows allow none; their ends are NaN.
    """
    rowwise: dict[str, dict[str, np.ndarray]] = {}
    strata = None  # the group of each row, which the bootstrap draws
    for model, folds in cells.items():
        joined = {k: np.concatenate([cell["rows"][k] for cell in folds]) for k in folds[0]["rows"]}
        numbers = joined.pop("place")
        row_order = np.argsort(numbers, kind="stable")
        rowwise[model] = {name: values[row_order] for name, values in joined.items()}
        strata = None if groups is None else groups[numbers[row_order]]
    if not rowwise:
        return [], {}
    means = {model: float(rows["log_likelihood"].mean()) for model, rows in rowwise.items()}
    order = sorted(means, key=lambda model: -means[model] if np.isfinite(means[model]) else np.inf)
    table = []
    for model in order:
        rows = rowwise[model]
        line: dict[str, Any] = {"model": model, "log_likelihood": means[model]}
        line |= _gap(
            rowwise[order[0]]["log_likelihood"], rows["log_likelihood"], level if intervals else None, seed, strata
        )
        for name, values in rows.items():
            if name == "squared_error":
                line["rmse"] = float(np.sqrt(values.mean()))
            elif name != "log_likelihood":
                line[name] = float(values.mean())
        for name in ("loo", "evidence"):
            by_fold = [cell[name] for cell in cells[model] if cell.get(name) is not None]
            line[name] = float(np.mean(by_fold)) if len(by_fold) == len(cells[model]) else None
        line["seconds"] = float(np.mean([cell["seconds"] for cell in cells[model]]))
        line["seconds_fit"] = float(np.mean([cell.get("seconds_fit", np.nan) for cell in cells[model]]))
        line["failed"] = sum(not cell["ok"] for cell in cells[model])
        # Later folds first, so that a word keeps the sentence of the first fold that has it.
        line["alarms"] = {word: text for cell in cells[model][::-1] for word, text in cell.get("alarms", {}).items()}
        line["over"] = sum(cell.get("over", False) for cell in cells[model])
        table.append(line)
    return table, rowwise


def _gap(
    first: np.ndarray, scores: np.ndarray, level: float | None, seed: int, groups: np.ndarray | None
) -> dict[str, float]:
    """How far a model is behind the first, with the ends of the interval; NaN where a score is not finite, or where no
    interval is asked for."""
    if not (np.isfinite(first).all() and np.isfinite(scores).all()):
        return {"behind": np.nan, "behind_low": np.nan, "behind_high": np.nan}
    if scores is first:
        return {"behind": 0.0, "behind_low": 0.0, "behind_high": 0.0}
    low, high = (np.nan, np.nan) if level is None else _interval(first - scores, level, seed, groups)
    return {"behind": float((first - scores).mean()), "behind_low": low, "behind_high": high}


def _interval(values: np.ndarray, level: float, seed: int, groups: np.ndarray | None) -> tuple[float, float]:
    """Ends of the bootstrap interval of the mean, over rows, or over whole groups of them: rows of one group are alike,
    so that many of them say little more than one. Field and Welsh (2007), Bootstrapping clustered data."""
    if groups is None:
        sums, sizes = values, np.ones(len(values))
    else:
        _, group_index = np.unique(groups, return_inverse=True)
        sums, sizes = np.bincount(group_index, values), np.bincount(group_index).astype(float)
    mean, count = values.mean(), len(sums)
    if count > 20_000:  # the mean of so many is normal
        half = norm.ppf(0.5 + level / 2) * (sums - mean * sizes).std(ddof=1) * count**0.5 / len(values)
        return float(mean - half), float(mean + half)
    rng, batch = np.random.default_rng(seed), max(1, 10**6 // count)
    means = []
    for start in range(0, RESAMPLES, batch):
        resample = rng.integers(count, size=(min(batch, RESAMPLES - start), count))
        means.append(sums[resample].sum(1) / sizes[resample].sum(1))
    low, high = np.quantile(np.concatenate(means), [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
