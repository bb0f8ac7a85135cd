"""What the records say: means over splits, ranks, and whether differences are larger than chance."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from benchmarks.portfolio.rivals import CREDO, MODELS
from benchmarks.portfolio.sets import SETS
from benchmarks.records import latest

LEVEL, ALPHA, CORE = 0.9, 0.05, 0.9
Record = dict[str, Any]
Board = dict[str, dict[str, dict[int, Record]]]  # set → model → split → record
SCORES = {"regression": ("log_likelihood", "crps", "rmse"), "classification": ("log_likelihood", "brier", "accuracy")}
LARGER = {"log_likelihood", "accuracy"}  # is better
NEAR, SURE = 0.02, 2.6  # of coverage: points that are allowed, and standard errors


def gather(records: Iterable[Record], task: str) -> Board:
    """The newest record of every set, model and split of a task that could be run."""
    newest = latest(records, lambda record: f"{record['set']} {record['model']} {record['split']}")
    board: Board = {}
    for repeats in newest.values():
        record = max(repeats, key=lambda repeat: repeat.get("written", ""))
        if record["task"] == task and not record["refused"]:
            board.setdefault(record["set"], {}).setdefault(record["model"], {})[record["split"]] = record
    return {name: board[name] for name in SETS if name in board}


def models(board: Board) -> list[str]:
    """Those that ran anywhere, credo's first."""
    return [model for model in MODELS if any(model in by_model for by_model in board.values())]


def values(by_model: dict[str, dict[int, Record]], score: str) -> dict[str, np.ndarray]:
    """The score of each model on the splits that all models of a set have."""
    shared = set.intersection(*(set(splits) for splits in by_model.values()))
    if not shared:
        return {}
    return {model: np.array([splits[s][score] for s in sorted(shared)]) for model, splits in by_model.items()}


def ranks(board: Board, score: str) -> dict[str, dict[str, float]]:
    """The rank of every model among those that ran on a set, by the mean over splits; 1 is best."""
    by_set: dict[str, dict[str, float]] = {}
    for name, by_model in board.items():
        means = {model: float(v.mean()) for model, v in values(by_model, score).items()}
        if len(means) > 1:
            order = scipy.stats.rankdata([-m if score in LARGER else m for m in means.values()])
            by_set[name] = dict(zip(means, map(float, order)))
    return by_set


class Comparison(NamedTuple):
    """Models that ran on nearly all sets, their mean ranks there, Friedman's p-value and Nemenyi's distance."""

    ranks: dict[str, float]
    sets: int
    p_value: float
    critical: float


def compared(board: Board, score: str) -> Comparison | None:
    """Friedman's test over sets on which all of the models ran that ran on nine tenths of them (Demšar, 2006).

    Mean ranks that are farther apart than Nemenyi's distance q √(k (k + 1) / 6N) differ at the level of 5 %.
    """
    core = [m for m in models(board) if sum(m in by_model for by_model in board.values()) >= CORE * len(board)]
    complete = {
        name: {m: by_model[m] for m in core} for name, by_model in board.items() if all(m in by_model for m in core)
    }
    by_set = ranks(complete, score)
    if len(core) < 3 or len(by_set) < 3:
        return None
    table = np.array([[by_set[name][model] for model in core] for name in by_set])
    sets, number = table.shape
    p_value = float(scipy.stats.friedmanchisquare(*table.T).pvalue)
    q = float(scipy.stats.studentized_range.ppf(1 - ALPHA, number, np.inf)) / 2**0.5
    critical = q * (number * (number + 1) / (6 * sets)) ** 0.5
    return Comparison(dict(zip(core, map(float, table.mean(0)))), sets, p_value, critical)


class Gap(NamedTuple):
    """How far a model of credo is ahead of the best rival of a set, in nats for each row, with its 95 % interval."""

    rival: str
    mean: float
    half: float | None
    splits: int


def gaps(board: Board, model: str) -> dict[str, Gap]:
    """Paired over splits; the best rival is the one with the highest mean on these very splits."""
    by_set = {}
    for name, by_model in board.items():
        scores = values({m: s for m, s in by_model.items() if m == model or m not in CREDO}, "log_likelihood")
        rivals = {m: v for m, v in scores.items() if m != model}
        if model not in scores or not rivals:
            continue
        best = max(rivals, key=lambda m: float(rivals[m].mean()))
        paired = scores[model] - rivals[best]
        by_set[name] = Gap(best, float(paired.mean()), interval(paired), len(paired))
    return by_set


def interval(paired: np.ndarray) -> float | None:
    """Half of the 95 % interval of a mean by Student's t; None for one number.

    Example:
        >>> import numpy as np
        >>> round(interval(np.array([1.0, 2.0, 3.0])), 2)
        2.48
    """
    if len(paired) < 2:
        return None
    return float(scipy.stats.t.ppf(0.975, len(paired) - 1) * paired.std(ddof=1) / len(paired) ** 0.5)


class Coverage(NamedTuple):
    """How often 90 % intervals hold the truth, over all rows of all splits, and how far from 0.9 chance may take it."""

    share: float
    rows: int

    @property
    def bound(self) -> float:
        """0.02 + 2.6 √(0.9 · 0.1 / rows)."""
        return NEAR + SURE * (LEVEL * (1 - LEVEL) / self.rows) ** 0.5

    @property
    def within_bound(self) -> bool:
        """Is it within the bound?"""
        return abs(self.share - LEVEL) <= self.bound


def coverage(board: Board, model: str) -> dict[str, Coverage]:
    """By set, rows of all splits pooled."""
    by_set = {}
    for name, by_model in board.items():
        splits = list(by_model.get(model, {}).values())
        rows = sum(record["test_rows"] for record in splits)
        if rows and "coverage_90" in splits[0]:
            covered = sum(record["coverage_90"] * record["test_rows"] for record in splits)
            by_set[name] = Coverage(covered / rows, rows)
    return by_set


SIZES = ((0, 500), (500, 2_000), (2_000, 10_000), (10_000, 10**9))


def seconds(boards: Iterable[Board], beside: str = "catboost") -> dict[str, list[tuple[float, float] | None]]:
    """By model and class of sizes: the median of the seconds of a process, and of their ratios to another model's."""
    cells = [(model, by_model) for board in boards for by_model in board.values() for model in by_model]
    lines: dict[str, list[tuple[float, float] | None]] = {}
    for model in [m for m in MODELS if any(m == name for name, _ in cells)]:
        for low, high in SIZES:
            pairs = [
                (record["seconds"], record["seconds"] / other["seconds"] if other else np.nan)
                for name, by_model in cells
                if name == model
                for split, record in by_model[model].items()
                if low <= record["rows"] < high
                for other in [by_model.get(beside, {}).get(split)]
            ]
            line = (float(np.median([p[0] for p in pairs])), _median([p[1] for p in pairs])) if pairs else None
            lines.setdefault(model, []).append(line)
    return lines


def _median(numbers: list[float]) -> float:
    finite = [number for number in numbers if np.isfinite(number)]
    return float(np.median(finite)) if finite else float("nan")
