"""What a comparison found: scores, and whether the first is better than the others by more than chance."""

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import norm

RESAMPLES = 2000


@dataclasses.dataclass
class Comparison:
    """The result of `credo.compare`.

    Attributes:
        table: one row for each model, best mean log-likelihood first: scores over all rows, each held out once, with
            "behind" (nats by which it trails the first, with the ends of the paired interval "behind_low" and
            "behind_high"), "loo" and "evidence" (nats for each training row, where they are defined), "seconds" of a
            fold, and "failed" (folds whose fit has an alarm).
        refused: model → why it could not be run.
        level: of the intervals.
        task, target, rows, folds: what was compared on.
        notes: sentences about the table.
        rowwise: model → score → values of every row [n].
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

    @property
    def best(self) -> str:
        """The model with the largest log-likelihood."""
        return self.table[0]["model"]

    def to_pandas(self) -> Any:
        """The table as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.table).set_index("model")

    def sentences(self) -> list[str]:
        """Who leads, who is level with it, who is behind, who was refused."""
        if not self.table:
            return ["No model could be run.", *(f"{name}: {why}" for name, why in self.refused.items())]
        level = [row["model"] for row in self.table[1:] if row["behind_low"] <= 0]
        behind = [row["model"] for row in self.table[1:] if row["behind_low"] > 0]
        said = [f"{self.best} has the largest log-likelihood on rows that were not seen."]
        if level:
            said.append(f"By no more than chance could explain it leads {', '.join(level)}.")
        if behind:
            said.append(f"Clearly behind: {', '.join(behind)}.")
        return [*said, *(f"{name} was not run: {why}" for name, why in self.refused.items())]

    def plot(self) -> Any:
        """How far each model is behind the first, with intervals, and seconds beside."""
        from credo.report.comparison import figure

        return figure(self)

    def __str__(self) -> str:
        return "\n".join([self.to_pandas().to_string() if self.table else "", *self.sentences()])


def summarised(cells: dict[str, list[dict[str, Any]]], level: float, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Rows of the table, best first, and the scores of every row by model; models whose every fold was run."""
    rowwise: dict[str, dict[str, np.ndarray]] = {}
    for model, found in cells.items():
        joined = {k: np.concatenate([cell["rows"][k] for cell in found]) for k in found[0]["rows"]}
        places = np.argsort(joined.pop("place"), kind="stable")
        rowwise[model] = {name: values[places] for name, values in joined.items()}
    if not rowwise:
        return [], {}
    means = {model: float(rows["log_likelihood"].mean()) for model, rows in rowwise.items()}
    order = sorted(means, key=lambda model: -means[model] if np.isfinite(means[model]) else np.inf)
    table = []
    for model in order:
        rows = rowwise[model]
        gap = rowwise[order[0]]["log_likelihood"] - rows["log_likelihood"]
        low, high = (0.0, 0.0) if model == order[0] else _interval(gap, level, seed)
        line: dict[str, Any] = {"model": model, "log_likelihood": means[model]}
        line |= {"behind": float(gap.mean()), "behind_low": low, "behind_high": high}
        for name, values in rows.items():
            if name == "squared_error":
                line["rmse"] = float(np.sqrt(values.mean()))
            elif name != "log_likelihood":
                line[name] = float(values.mean())
        for name in ("loo", "evidence"):
            known = [cell[name] for cell in cells[model] if cell.get(name) is not None]
            line[name] = float(np.mean(known)) if len(known) == len(cells[model]) else None
        line["seconds"] = float(np.mean([cell["seconds"] for cell in cells[model]]))
        line["failed"] = sum(not cell["ok"] for cell in cells[model])
        table.append(line)
    return table, rowwise


def _interval(values: np.ndarray, level: float, seed: int) -> tuple[float, float]:
    """Ends of the bootstrap interval of the mean, over rows."""
    if len(values) > 20_000:  # the mean of so many is normal
        half = norm.ppf(0.5 + level / 2) * values.std(ddof=1) / len(values) ** 0.5
        return float(values.mean() - half), float(values.mean() + half)
    rng, group = np.random.default_rng(seed), max(1, 10**6 // len(values))
    counts = [min(group, RESAMPLES - i) for i in range(0, RESAMPLES, group)]
    means = np.concatenate([values[rng.integers(len(values), size=(n, len(values)))].mean(1) for n in counts])
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)
