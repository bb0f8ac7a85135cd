"""The leaderboard of the UCI study: our records and baselines beside published rows, and on how many sets we lead."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import published
from benchmarks.markdown import bold, decimals, mean_and_error, seconds, with_error
from benchmarks.uci import MODELS
from benchmarks.uci_data import SETS
from credo.report.markdown import table
from credo.tables.auto import AUTO

SCORES = {"log_likelihood": 1, "rmse": -1}  # and whether larger is better


class Cell(NamedTuple):
    """A model on a set: scores by split, and what they cost."""

    rows: dict[int, dict[str, Any]]
    seconds: float  # of the whole study
    side_by_side: bool
    machines: tuple[str, ...]
    num_data: int
    why: str | None
    refused: str | None
    alone: dict[str, float] | None
    others: int  # studies with other settings, which are left out

    def values(self, score: str) -> np.ndarray:
        """A score of every split, in their order."""
        return np.array([self.rows[split][score] for split in sorted(self.rows)])

    def each(self) -> float | None:
        """Seconds of a fit: on its own, or the study's share of it."""
        if not self.rows:
            return None
        if self.side_by_side:
            return self.seconds / len(self.rows)
        return float(np.median([row["seconds"] for row in self.rows.values()]))


Board = dict[tuple[str, str], Cell]


def gather(entries: Iterable[dict[str, Any]]) -> Board:
    """Cells by set and model. Of several settings of a model that which has most splits is taken, then the newest."""
    groups: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for record in entries:
        studies_of = groups.setdefault((record["set"], record["model"]), {})
        studies_of.setdefault(record["fingerprint"], []).append(record)
    board = {}
    for key, studies in groups.items():
        cells = [_cell(parts, len(studies) - 1) for parts in sorted(studies.values(), key=_newest)]
        board[key] = max(reversed(cells), key=lambda cell: len(cell.rows))
    return {key: board[key] for key in sorted(board, key=lambda key: (_rank(SETS, key[0]), _rank(MODELS, key[1])))}


def _newest(parts: list[dict[str, Any]]) -> str:
    return max(record.get("written", "") for record in parts)


def _rank(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _cell(parts: list[dict[str, Any]], others: int) -> Cell:
    fits = [record for record in parts if "alone" not in record]

    def first(name: str, otherwise: Any = None) -> Any:
        return next((record[name] for record in fits if record[name]), otherwise)

    return Cell(
        rows={row["split"]: row for record in fits for row in record["rows"]},
        seconds=sum(record["seconds"] for record in fits),
        side_by_side=bool(first("side_by_side", False)),
        machines=tuple(dict.fromkeys(record["machine"] for record in parts)),
        num_data=first("num_data", 0),
        why=first("why"),
        refused=first("refused"),
        alone=next((record["alone"] for record in parts if "alone" in record), None),
        others=others,
    )


def names(board: Board) -> tuple[list[str], list[str]]:
    """Sets and models that have a place in the board, in the usual order."""
    sets, models = ({key[i]: None for key in board} for i in (0, 1))
    return sorted(sets, key=lambda s: _rank(SETS, s)), sorted(models, key=lambda m: _rank(MODELS, m))


def ahead_of_published(board: Board, model: str = AUTO) -> dict[str, tuple[float, float | None]]:
    """Set → how far a model is above the best published row, and its standard error. Ours is rounded as that is."""
    gaps = {}
    for name in names(board)[0]:
        cell, best = board.get((name, model)), published.best(name)
        if cell is not None and cell.rows and best is not None:
            mean, error = mean_and_error(cell.values("log_likelihood"))
            gaps[name] = (round(mean, published.printed_decimals(best[1])) - float(best[1]), error)
    return gaps


def ahead_of(board: Board, other: str, model: str = AUTO) -> dict[str, tuple[float, float | None]]:
    """Set → how far a model is above another on the splits that both have, and the standard error of that gap."""
    leads = {}
    for name in names(board)[0]:
        one, two = board.get((name, model)), board.get((name, other))
        common = sorted(set(one.rows) & set(two.rows)) if one and two else []
        if one and two and common:
            gaps = [one.rows[s]["log_likelihood"] - two.rows[s]["log_likelihood"] for s in common]
            leads[name] = mean_and_error(gaps)
    return leads


def counted(gaps: dict[str, tuple[float, float | None]], over: str) -> str:
    """On how many sets the gap is positive, and on how many by more than two standard errors."""
    better = [name for name, (gap, _) in gaps.items() if gap > 1e-9]
    clear = [name for name in better if gaps[name][1] is not None and gaps[name][0] > 2 * (gaps[name][1] or 0.0)]
    rest = [name for name in gaps if name not in better]
    sentence = f"`auto` is better than {over} on {len(better)} of {len(gaps)} sets"
    sentence += f", on {len(clear)} of them by more than two standard errors" if better else ""
    return f"{sentence}." if not rest or not better else f"{sentence}; not on {', '.join(rest)}."


def score_table(board: Board, score: str) -> str:
    """One line for each set: every model's mean ± standard error, published rows beside it, the best in bold."""
    sets, models = names(board)
    beside = [row for row in published.WHOLE if any(name in getattr(row, score) for name in sets)]
    extra = [row for row in published.BEST if any(name in getattr(row, score) for name in sets)]
    head = ["set", "rows", *(f"`{m}`" for m in models), *(row.name for row in beside), *(["other"] if extra else [])]
    lines = []
    for name in sets:
        means = {m: mean_and_error(board[name, m].values(score)) for m in models if _has(board, name, m)}
        digits = 2 if score == "log_likelihood" else max((decimals(mean) for mean, _ in means.values()), default=2)
        printed = {row.name: getattr(row, score).get(name) for row in (*beside, *extra)}
        first = leaders({m: mean for m, (mean, _) in means.items()}, printed, SCORES[score])
        cells = [_mark(with_error(*means[m], digits), m in first) if m in means else "–" for m in models]
        cells += [_mark(_printed(printed[row.name]), row.name in first) for row in beside]
        if extra:
            more = [_mark(f"{_printed(printed[r.name])} ({r.name})", r.name in first) for r in extra if printed[r.name]]
            cells.append(", ".join(more) or "–")
        size = max((board[name, m].num_data for m in models if (name, m) in board), default=0)
        lines.append([name, f"{size:,}", *cells])
    return table(head, lines)


def _has(board: Board, name: str, model: str) -> bool:
    return (name, model) in board and bool(board[name, model].rows)


def _printed(text: str | None) -> str:
    return "–" if text is None else text.replace("-", "−")


def _mark(text: str, first: bool) -> str:
    return bold(text) if first else text


def leaders(ours: dict[str, float], printed: dict[str, str | None], sign: int) -> set[str]:
    """Those whom nobody beats; numbers are compared in the decimals of the one that has fewer, so that there are ties.

    Example:
        >>> sorted(leaders({"auto": -0.749, "map": -0.751}, {"refined VI": "-0.75", "VI": "-2.39"}, 1))
        ['auto', 'refined VI']
    """
    values = {name: (mean, 12) for name, mean in ours.items() if np.isfinite(mean)}
    values |= {name: (float(t), published.printed_decimals(t)) for name, t in printed.items() if t is not None}

    def beats(one: tuple[float, int], other: tuple[float, int]) -> bool:
        digits = min(one[1], other[1])
        return sign * round(one[0], digits) > sign * round(other[0], digits)

    return {name for name, value in values.items() if not any(beats(other, value) for other in values.values())}


def seconds_table(board: Board) -> str:
    """Seconds of a fit on every set, by model."""
    sets, models = names(board)
    lines = []
    for name in sets:
        cells = []
        for model in models:
            cell = board.get((name, model))
            shown = seconds(cell.each()) if cell else "–"
            cells.append(f"{shown} ({seconds(cell.alone['seconds'])})" if cell and cell.alone else shown)
        lines.append([name, *cells])
    return table(["set", *(f"`{m}`" for m in models)], lines)


def describe_splits(board: Board) -> str:
    """How many splits the means are over."""
    counts = {key: len(cell.rows) for key, cell in board.items() if cell.rows}
    usual = max(set(counts.values()), key=list(counts.values()).count, default=0)
    other = []
    for name in names(board)[0]:
        by_model = {model: count for (s, model), count in counts.items() if s == name}
        if len(set(by_model.values())) == 1 and usual not in by_model.values():
            other.append(f"{name}: {next(iter(by_model.values()))}")
        else:
            other += [f"{name}, `{model}`: {count}" for model, count in by_model.items() if count != usual]
    return f"{usual} splits" + (f" ({'; '.join(other)})" if other else "")
