"""`credo fit TABLE --target y` and nothing else, on tables of six kinds and on counts, beside baselines.

Every table of `benchmarks.tables` is cut into folds; "auto" is fitted to all folds but one and scored on that
one, exactly as the command would fit it. So are the baselines; which of them is the best single one is decided in each
fold on a fifth of its training rows, before a held-out row is looked at. Large tables have one fold of held-out rows.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks import records
from benchmarks.markdown import bold, first_paragraph, mean_and_error, number, seconds, with_error
from benchmarks.rules import baseline_rules, rules
from benchmarks.tables import TABLES, Example, attainable
from credo.errors import Refusal
from credo.evaluation.baselines import BASELINES
from credo.evaluation.comparison.cell import run_cell
from credo.evaluation.comparison.plan import find_folds
from credo.report.markdown import table
from credo.tables.auto import AUTO

NAME = "tables"
FOLDS, LARGE, HELD = 5, 20_000, 20_000  # tables of more rows than LARGE have HELD rows to score on
WANTED, WITHIN = 0.9, 0.04  # coverage


def study(names: Iterable[str], seed: int, rows: int | None, store: records.Records, say: Callable[[str], Any]) -> None:
    """Run what is not on record."""
    for name in names:
        example = TABLES[name](seed) if rows is None else TABLES[name](seed, rows)
        for fold, parts in enumerate(folds(example, seed)):
            for model in (AUTO, *BASELINES):
                fingerprint = mark(model, example.task, fold, seed, rows)
                key = f"{NAME}-{name}-{model}-{fold}-{fingerprint}"
                if store.read(key) is None:
                    scores = cell(model, example, parts, seed)
                    facts = {"table": name, "model": model, "fold": fold, "seed": seed, "fingerprint": fingerprint}
                    store.write(key, facts | {"machine": records.machine()} | scores)
                    say(f"{name} {model} fold {fold}: done")


def mark(model: str, task: str, fold: int, seed: int, rows: int | None) -> str:
    """The fingerprint of a cell."""
    constants = rules(task) if model == AUTO else baseline_rules(model, task)
    return records.fingerprint(seed, rows, fold, *constants)


def current(entries: Iterable[dict[str, Any]], seed: int, rows: int | None) -> list[dict[str, Any]]:
    """The records that a study with this seed and so many rows makes: a folder may hold others."""
    tasks = {name: make(0, 20).task for name, make in TABLES.items()}
    fingerprints = {
        (name, model, fold): mark(model, task, fold, seed, rows)
        for name, task in tasks.items()
        for model in (AUTO, *BASELINES)
        for fold in range(FOLDS)
    }
    return [r for r in entries if fingerprints.get((r["table"], r["model"], r["fold"])) == r["fingerprint"]]


def folds(example: Example, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows."""
    if len(example.frame) <= LARGE:
        return find_folds(example.frame, example.target, example.task, FOLDS, seed, None)
    order = np.random.default_rng(seed).permutation(len(example.frame))
    return [(order[HELD:], order[:HELD])]


def cell(model: str, example: Example, parts: tuple[np.ndarray, np.ndarray], seed: int) -> dict[str, Any]:
    """Sums of the scores of the held-out rows, and seconds of pilot, fit and predictions; of a baseline also its
    log-likelihood on validation rows."""
    train, held = parts
    try:
        if model == AUTO:
            return fitted(model, example, train, held, seed)
        order = np.random.default_rng(seed).permutation(train)
        inner = fitted(model, example, order[len(order) // 5 :], order[: len(order) // 5], seed)
        return fitted(model, example, train, held, seed) | {"validation": inner["log_likelihood"] / inner["rows"]}
    except Refusal as error:
        return {"refused": str(error)}


def fitted(model: str, example: Example, train: np.ndarray, held: np.ndarray, seed: int) -> dict[str, Any]:
    """Fit to some rows, score others: as a cell of `credo compare` does."""
    how: dict[str, Any] = {"target": example.target, "task": example.task, "missing": "error", "network": None}
    how |= {"settings": {}, "steps": None, "budget": None, "seed": seed, "loo": False}
    outcome = run_cell(model, example.frame, (train, held), how)
    if outcome["refused"]:
        raise Refusal(outcome["refused"])
    scores = {name: float(values.sum()) for name, values in outcome["rows"].items() if name != "place"}
    facts = {name: outcome[name] for name in ("seconds", "ok", "why") if name in outcome}
    return {"rows": len(outcome["rows"]["place"])} | facts | scores


def summary(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each table whose folds are all on record, if `auto` could be fitted to all."""
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in entries:
        cells.setdefault(record["table"], {}).setdefault(record["model"], []).append(record)
    lines = []
    for name in (n for n in TABLES if n in cells):
        by = {model: sorted(group, key=lambda r: r["fold"]) for model, group in cells[name].items()}
        if AUTO not in by or any(len(group) != len(by[AUTO]) for group in by.values()):
            continue
        if any("refused" in r for r in by[AUTO]):
            continue
        usable = {m: group for m, group in by.items() if m != AUTO and not any("refused" in r for r in group)}
        validated = [{m: group[f]["validation"] for m, group in usable.items()} for f in range(len(by[AUTO]))]
        chosen = [max(scores, key=scores.__getitem__) for scores in validated]
        rows = sum(r["rows"] for r in by[AUTO])
        best = sum(usable[m][f]["log_likelihood"] for f, m in enumerate(chosen)) / rows
        gaps = [(r["log_likelihood"] - usable[m][f]["log_likelihood"]) / r["rows"]
                for f, (m, r) in enumerate(zip(chosen, by[AUTO]))]  # fmt: skip
        line = {
            "table": name, "rows": rows, "auto": _mean(by[AUTO], "log_likelihood"), "best": best,
            "error": mean_and_error(gaps)[1],
            "taken": sorted(set(chosen)), "why": by[AUTO][0]["why"], "machine": by[AUTO][0]["machine"],
            "seconds": float(np.mean([r["seconds"] for r in by[AUTO]])),
            "others": {m: _mean(group, "log_likelihood") for m, group in usable.items()},
            "coverage": _mean(by[AUTO], "coverage_90") if "coverage_90" in by[AUTO][0] else None,
            "attainable": attainable(name, WANTED, by[AUTO][0]["seed"]),
        }  # fmt: skip
        lines.append(line)
    return lines


def _covered(line: dict[str, Any]) -> str:
    if line["coverage"] is None:
        return "–"
    truth = "" if line["attainable"] == WANTED else f" (truth {100 * line['attainable']:.1f} %)"
    return f"{100 * line['coverage']:.1f} %{truth}"


def _mean(group: list[dict[str, Any]], score: str) -> float:
    return sum(r[score] for r in group) / sum(r["rows"] for r in group)


def markdown(lines: list[dict[str, Any]], command: str) -> str:
    """The page."""
    head = ["table", "rows scored", "auto", "chosen baseline", "auto is ahead by"]
    head += [*BASELINES, "90 % intervals cover", "seconds"]
    rows = []
    for line in lines:
        ours = number(line["auto"], 3)
        rows.append([
            line["table"], f"{line['rows']:,}", bold(ours) if line["auto"] >= line["best"] else ours,
            f"{number(line['best'], 3)} ({', '.join(line['taken'])})",
            with_error(line["auto"] - line["best"], line["error"], 3),
            *(number(line["others"].get(m), 3) for m in BASELINES),
            _covered(line), seconds(line["seconds"]),
        ])  # fmt: skip
    ahead = sum(line["auto"] >= line["best"] for line in lines)
    of_all = sum(line["auto"] >= max([line["best"], *line["others"].values()]) for line in lines)
    numeric = [line for line in lines if line["coverage"] is not None]
    far = [line["table"] for line in numeric if abs(line["coverage"] - line["attainable"]) > WITHIN]
    off = f"{100 * WITHIN:.0f} points of what the true distribution's cover"
    cover = f"not within {off}: {', '.join(far)}" if far else f"all within {off} (90 %; of whole numbers more)"
    where = ", ".join(sorted({line["machine"] for line in lines}))
    return "\n".join([
        "# Tables of six kinds, and counts", "",
        f"`{command}`, on {where}. Mean log-likelihood of held-out rows (nats), on the scale of the table, in {FOLDS} "
        "folds (large tables: one). The chosen baseline is, in each fold, the one with the best log-likelihood on a "
        "fifth of that fold's training rows; in brackets all that were chosen. Gaps have their standard errors over "
        "folds.", "",
        table(head, rows), "",
        f"`auto` is at least as good as the chosen baseline on {ahead} of {len(lines)} tables, and as every single one "
        f"of them, were the best known beforehand, on {of_all}. 90 % intervals: {cover}.",
        "", *(f"- {line['table']}: {first_paragraph(TABLES[line['table']])} {line['why']}" for line in lines), "",
    ])  # fmt: skip
