"""The portfolio as a page: sentences, ranks, tables by set, coverage and seconds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.markdown import bold, decimals, number
from benchmarks.markdown import seconds as shown_seconds
from benchmarks.portfolio import board as boards
from benchmarks.portfolio.board import Board
from benchmarks.portfolio.rivals import CREDO, RIVALS
from credo.report.markdown import table

TASKS = {"regression": "Numbers", "classification": "Classes"}
WORDS = {
    "log_likelihood": "log-likelihood (larger is better)", "crps": "CRPS (smaller is better)",
    "brier": "Brier score (smaller is better)", "rmse": "RMSE (smaller is better)",
    "accuracy": "accuracy (larger is better)",
}  # fmt: skip
RULE = (
    "`auto` beside models that people use on tables: one process for each set, split and model, and nothing else of "
    "this study at the same time. Every model sees the same training rows and keeps its library's defaults; what stops "
    "early does so on a tenth of the training rows. Published splits where there are any (the first five), else five "
    "random ones of 80 % and 20 %; two for sets of more than 10,000 rows. Scores are on the scale of the table, means "
    "over the splits that all models of a line have; a model ranks only where it ran. Probabilities of classes are "
    "those that a model gives, none taken below 10⁻¹⁵."
)


def markdown(records: list[dict[str, Any]], command: str) -> str:
    """The page."""
    by_task = {task: boards.gather(records, task) for task in TASKS}
    parts = ["# A portfolio of tables", f"`{command}`, on {_machines(records)}. {RULE}"]
    parts.append("\n".join(f"- `{name}`: {rival.words}" for name, rival in RIVALS.items() if _ran(by_task, name)))
    parts.append("![Mean ranks by log-likelihood, with Nemenyi's distance](portfolio.png)")
    for task, board in by_task.items():
        if board:
            parts += [f"## {TASKS[task]}", *_task(task, board)]
    parts += ["## Seconds", _seconds(by_task.values())]
    parts += _left_out(records)
    return "\n\n".join(part for part in parts if part) + "\n"


def _task(task: str, board: Board) -> list[str]:
    parts = [_ranks(task, board)]
    for model in (m for m in boards.models(board) if m in CREDO):
        parts.append(_gaps(board, model))
    score = boards.SCORES[task]
    parts += [f"### {_upper(WORDS[name])}\n\n{_scores(board, name)}" for name in (score[0], score[2])]
    return [*parts, _coverage(board)] if task == "regression" else parts


def _ranks(task: str, board: Board) -> str:
    scores = boards.SCORES[task]
    by_score = {score: boards.ranks(board, score) for score in scores}
    model_ranks = {
        model: [[ranks[model] for ranks in by_score[score].values() if model in ranks] for score in scores]
        for model in boards.models(board)
    }
    ordered = sorted(
        (model for model in model_ranks if model_ranks[model][0]),
        key=lambda model: float(np.mean(model_ranks[model][0])),
    )
    rows = [
        [f"`{m}`", str(len(model_ranks[m][0])), *(number(float(np.mean(values))) for values in model_ranks[m])]
        for m in ordered
    ]
    head = ["model", "sets", *(f"mean rank by {WORDS[score].split(' (')[0]}" for score in scores)]
    return table(head, rows) + "\n\n" + "\n".join(_tests(board, scores))


def _tests(board: Board, scores: Iterable[str]) -> list[str]:
    lines = []
    for score in scores:
        test = boards.compared(board, score)
        if test is not None:
            ordered = sorted(test.ranks, key=lambda model: test.ranks[model])
            shown = ", ".join(f"`{m}` {number(test.ranks[m])}" for m in ordered)
            lines.append(
                f"- {_upper(WORDS[score].split(' (')[0])}, the {test.sets} sets on which all of these ran: {shown}. "
                f"Friedman's p = {test.p_value:.2g}; ranks farther apart than {number(test.critical)} differ at 5 % "
                "(Nemenyi)."
            )
    return lines


def _gaps(board: Board, model: str) -> str:
    gaps = boards.gaps(board, model)
    if not gaps:
        return ""
    rows = []
    for name, gap in gaps.items():
        half = "" if gap.half is None else f" ± {number(gap.half, 3)}"
        rows.append([name, f"`{gap.rival}`", f"{number(gap.mean, 3)}{half}", str(gap.splits)])
    ahead = sum(gap.mean > 0 for gap in gaps.values())
    sure = sum(gap.half is not None and gap.mean > gap.half for gap in gaps.values())
    behind = sum(gap.half is not None and gap.mean < -gap.half for gap in gaps.values())
    sentence = (
        f"`{model}` is ahead of the best rival of a set, chosen afterwards, on {ahead} of {len(gaps)} sets: on {sure} "
        f"by more than the 95 % interval of the splits, and behind by as much on {behind}."
    )
    head = ["set", "best rival", "nats for each row ahead of it (95 %)", "splits"]
    return f"### `{model}` against the best rival\n\n{sentence}\n\n{table(head, rows)}"


def _scores(board: Board, score: str) -> str:
    columns, rows = boards.models(board), []
    for name, by_model in board.items():
        means = {model: float(v.mean()) for model, v in boards.values(by_model, score).items()}
        if not means:
            continue
        best = (max if score in boards.LARGER else min)(means.values())
        places = decimals(best) if score == "rmse" else 3
        shown = {m: number(v, places) for m, v in means.items()}
        cells = [bold(shown[m]) if m in means and means[m] == best else shown.get(m, "–") for m in columns]
        record = next(iter(next(iter(by_model.values())).values()))
        rows.append([name, f"{record['rows']:,}", str(record["columns"]), *cells])
    return table(["set", "rows", "columns", *(f"`{m}`" for m in columns)], rows)


def _coverage(board: Board) -> str:
    columns = boards.models(board)
    coverages = {model: boards.coverage(board, model) for model in columns}
    rows = []
    for name in board:
        entries = [coverages[model].get(name) for model in columns]
        cells = [
            "–" if entry is None else f"{100 * entry.share:.1f}{'' if entry.within_bound else ' ✗'}"
            for entry in entries
        ]
        rows.append([name, f"{max(entry.rows for entry in entries if entry is not None):,}", *cells])
    within = [
        f"`{m}` {sum(entry.within_bound for entry in by_set.values())} of {len(by_set)}"
        for m, by_set in coverages.items()
        if by_set
    ]
    return (
        "### Coverage of 90 % intervals, percent\n\nAll rows of all splits together; ✗ is farther from 90 % than "
        f"2 points and 2.6 standard errors √(0.09/n). Kept: {', '.join(within)}.\n\n"
        + table(["set", "rows", *(f"`{m}`" for m in columns)], rows)
    )


def _seconds(all_boards: Iterable[Board]) -> str:
    head = ["model", *(f"{low:,} to {high:,} rows" if high < 10**9 else f"{low:,} rows and more"
                       for low, high in boards.SIZES)]  # fmt: skip
    rows = []
    for model, pairs in boards.seconds(all_boards).items():
        cells = ["–" if pair is None else f"{shown_seconds(pair[0])} ({number(_or_none(pair[1]))})" for pair in pairs]
        rows.append([f"`{model}`", *cells])
    return (
        "From the start of a process to its predictions, medians; in brackets the median ratio to `catboost` on the "
        f"same splits. Rows are those of training.\n\n{table(head, rows)}"
    )


def _left_out(records: list[dict[str, Any]]) -> list[str]:
    sets_by_reason: dict[str, set[str]] = {}
    for record in records:
        if record["refused"] and "is not run on" not in record["refused"]:
            sets_by_reason.setdefault(record["refused"].split(", got")[0], set()).add(record["set"])
    lines = [f"- {sentence}: {', '.join(sorted(sets))}" for sentence, sets in sorted(sets_by_reason.items())]
    return ["## Left out", "\n".join(lines)] if lines else []


def _machines(records: list[dict[str, Any]]) -> str:
    return "; ".join(dict.fromkeys(record["machine"] for record in records))


def _ran(by_task: dict[str, Board], model: str) -> bool:
    return any(model in by_model for board in by_task.values() for by_model in board.values())


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
