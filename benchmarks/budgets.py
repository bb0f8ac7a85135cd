"""`credo fit TABLE --target y --budget TIME`: are short budgets honest, and are they kept?

Every table of `benchmarks.budget_tables` is cut into five folds, as often as it takes to score 500 rows; "auto"
is fitted to all folds but one with each budget and scored on that one. Other repeats have other folds and, where a
generator makes the table, other rows. One fit without a budget tells how long "about a minute" is.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks import records
from benchmarks.budget_tables import TABLES
from benchmarks.markdown import first_paragraph, number
from benchmarks.rules import rules
from credo.evaluation.comparison.cell import run_cell
from credo.evaluation.comparison.folds import find_folds
from credo.report.markdown import table
from credo.tables.auto import AUTO
from credo.training.clock import COMPILING

NAME = "budgets"
FOLDS, SCORED = 5, 500
LEVEL, WITHIN, MOST_ECE, LATE, ALLOWED = 0.9, 0.06, 0.06, 1.5, 1.2
BINS = 10


def study(
    names: Iterable[str], budgets: Iterable[float | None], seed: int, done: records.Records, say: Callable[[str], Any]
) -> None:
    """Run what is not on record."""
    for name in names:
        for budget in budgets:
            for repeat, fold in cells(name, budget):
                example = TABLES[name](seed + repeat)
                mark = records.fingerprint(seed, repeat, fold, budget, *rules(example.task))
                key = f"{NAME}-{name}-{shown(budget)}-{repeat}-{fold}-{mark}"
                if done.read(key) is None:
                    parts = find_folds(example.frame, example.target, example.task, FOLDS, seed + repeat, None)[fold]
                    scores = cell(example, parts, budget, seed + repeat)
                    facts = {"table": name, "budget": budget, "repeat": repeat, "fold": fold, "fingerprint": mark}
                    done.write(key, facts | {"seed": seed, "machine": records.machine()} | scores)
                    say(f"{name} {shown(budget)} repeat {repeat} fold {fold}: {scores['work']:.1f} s of work")


def cells(name: str, budget: float | None) -> list[tuple[int, int]]:
    """(repeat, fold) until enough rows are scored; one alone without a budget."""
    if budget is None:
        return [(0, 0)]
    rows = len(TABLES[name](0).frame)
    count = -(-SCORED * FOLDS // rows)
    return [divmod(i, FOLDS) for i in range(max(count, 2))]


def shown(budget: float | None) -> str:
    """A budget in words.

    Example:
        >>> shown(3.0), shown(None)
        ('3 s', 'default')
    """
    return "default" if budget is None else f"{budget:g} s"


def cell(example: Any, parts: tuple[np.ndarray, np.ndarray], budget: float | None, seed: int) -> dict[str, Any]:
    """Scores of every held-out row, seconds that were announced and taken, and what the fit said of itself."""
    announced: list[float] = []
    how: dict[str, Any] = {
        "target": example.target, "task": example.task, "missing": "error", "network": None, "settings": {},
        "steps": None, "budget": budget, "seed": seed, "loo": False, "announce": announced.append,
    }  # fmt: skip
    began, compiled = time.perf_counter(), COMPILING.seconds
    outcome = run_cell(AUTO, example.frame, parts, how)
    wall, compiling = time.perf_counter() - began, COMPILING.seconds - compiled
    if outcome["refused"]:
        return {"refused": outcome["refused"], "wall": wall, "work": wall - compiling}
    rows = outcome["rows"]
    scores = {key: rows[key].tolist() for key in ("log_likelihood", "coverage_90") if key in rows}
    if "coverage_90" not in scores:
        scores |= _of_classes(example, parts, rows)
    return {
        "rows": scores, "wall": wall, "work": wall - compiling, "why": outcome["why"], "status": outcome["status"],
        "announced": announced[-1] if announced else budget, "refused": None,
    }  # fmt: skip


def _of_classes(example: Any, parts: tuple[np.ndarray, np.ndarray], rows: dict[str, np.ndarray]) -> dict[str, Any]:
    """log p of the classes' frequencies at the held-out rows, and how sure and how right the most probable class is."""
    labels = example.frame[example.target].to_numpy()
    values, codes = np.unique(labels[parts[0]], return_inverse=True)
    log_shares = np.log(np.bincount(codes) / len(codes))
    true = np.searchsorted(values, labels[rows["place"]])
    right, named = rows["accuracy"], np.exp(rows["log_likelihood"])
    return {
        "frequencies": log_shares[true].tolist(), "right": right.tolist(),
        "sure": np.where(right > 0, named, 1 - named).tolist(),
    }  # fmt: skip


def current(entries: Iterable[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """The records that a study with this seed and these rules makes: a folder may hold others."""
    tasks = {name: make(0).task for name, make in TABLES.items()}
    matching = []
    for record in entries:
        constants = rules(tasks[record["table"]])
        mark = records.fingerprint(seed, record["repeat"], record["fold"], record["budget"], *constants)
        matching += [record] if mark == record["fingerprint"] else []
    return matching


def summary(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each table and budget."""
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for record in entries:
        groups.setdefault((record["table"], record["budget"] or np.inf), []).append(record)
    order = {name: i for i, name in enumerate(TABLES)}
    return [_line(key, groups[key]) for key in sorted(groups, key=lambda key: (order[key[0]], key[1]))]


def _line(key: tuple[str, float], group: list[dict[str, Any]]) -> dict[str, Any]:
    scored = [record for record in group if not record["refused"]]
    rows = {name: np.concatenate([r["rows"][name] for r in scored]) for name in (scored[0]["rows"] if scored else {})}
    ratios = [r["work"] / r["announced"] for r in scored if r["announced"]]
    line: dict[str, Any] = {
        "table": key[0], "budget": None if key[1] == np.inf else key[1], "fits": len(group),
        "rows": len(rows.get("log_likelihood", ())), "refused": len(group) - len(scored),
        "log_likelihood": float(np.mean(rows["log_likelihood"])) if rows else None,
        "work": float(np.mean([r["work"] for r in group])), "wall": float(np.max([r["wall"] for r in group])),
        "announced": float(np.mean([r["announced"] for r in scored])) if ratios else None,
        "latest": max(ratios, default=None), "warnings": sum("Warning" in r["status"] for r in scored),
        "methods": sorted({r["why"].split(",")[0] for r in scored}), "machine": group[0]["machine"],
        "coverage": None, "frequencies": None, "ece": None,
    }  # fmt: skip
    if "coverage_90" in rows:
        line["coverage"] = float(np.mean(rows["coverage_90"]))
    elif rows:
        line["frequencies"] = float(np.mean(rows["frequencies"]))
        line["ece"] = ece(rows["sure"], rows["right"])
    return line


def ece(sure: np.ndarray, right: np.ndarray) -> float:
    """Mean |confidence − accuracy| over ten bins of equal width.

    Example:
        >>> round(ece(np.array([0.95, 0.95]), np.array([1.0, 0.0])), 3)
        0.45
    """
    bins = np.minimum((BINS * np.asarray(sure)).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, np.asarray(right) - sure, minlength=BINS)).sum() / len(bins))


def faults(line: dict[str, Any]) -> list[str]:
    """Which bars a line does not meet."""
    missed = []
    if line["refused"]:
        missed.append("refused")
    if line["coverage"] is not None and abs(line["coverage"] - LEVEL) > WITHIN:
        missed.append("coverage")
    if line["frequencies"] is not None and line["log_likelihood"] < line["frequencies"]:
        missed.append("log loss")
    if line["ece"] is not None and line["ece"] > MOST_ECE:
        missed.append("ECE")
    if line["latest"] is not None and line["latest"] > (LATE if line["budget"] is None else ALLOWED):
        missed.append("time")
    return missed


def markdown(lines: list[dict[str, Any]], command: str) -> str:
    """The page."""
    head = ["table", "budget", "rows scored", "log-likelihood", "90 % intervals hold", "log loss (frequencies')", "ECE"]
    head += ["seconds of work", "announced", "longest / announced", "longest with compiling", "warnings", "misses"]
    body = []
    for line in lines:
        classes = line["frequencies"] is not None
        body.append([
            line["table"], shown(line["budget"]), f"{line['rows']:,}", number(line["log_likelihood"], 3),
            "–" if line["coverage"] is None else f"{100 * line['coverage']:.1f} %",
            f"{-line['log_likelihood']:.3f} ({-line['frequencies']:.3f})" if classes else "–", number(line["ece"], 3),
            f"{line['work']:.1f}", number(line["announced"], 1), number(line["latest"], 2), f"{line['wall']:.0f}",
            f"{line['warnings']} of {line['fits']}", ", ".join(faults(line)) or "none",
        ])  # fmt: skip
    missed = sum(bool(faults(line)) for line in lines)
    where = ", ".join(sorted({line["machine"] for line in lines}))
    return "\n".join([
        "# Short budgets", "",
        f"`{command}`, on {where}. `auto` with little time, on held-out rows of {FOLDS} folds, repeated until {SCORED} "
        f"rows are scored. Bars: 90 % intervals hold {100 * (LEVEL - WITHIN):.0f} to {100 * (LEVEL + WITHIN):.0f} % of "
        f"the rows; log loss is no worse than that of the classes' frequencies, and ECE at most {MOST_ECE}; no fit "
        f"works, compiling aside, for more than {ALLOWED} times its budget or, without one, {LATE} times what it "
        "announces.", "",
        table(head, body, 2), "", f"{len(lines) - missed} of {len(lines)} lines meet every bar.", "",
        *(f"- {name}: {first_paragraph(make)}" for name, make in TABLES.items()), "",
    ])  # fmt: skip
