"""`credo fit TABLE --target y` and nothing else, on tables of six kinds and on counts, beside baselines.

Every table of `credo.benchmarks.tables` is cut into folds; "auto" is fitted to all folds but one and scored on that
one, exactly as the command would fit it. So are the baselines; which of them is the best single one is decided in each
fold on a fifth of its training rows, before a held-out row is looked at. Large tables have one fold of held-out rows.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

import credo
from credo.auto import AUTO, chosen_for, settle
from credo.baselines import BASELINES, fit_baseline
from credo.benchmarks import records
from credo.benchmarks.markdown import bold, number, seconds, table
from credo.benchmarks.tables import TABLES, Example
from credo.comparison.cell import row_scores
from credo.comparison.plan import find_folds
from credo.data.encoder import TableEncoder
from credo.data.scale import on_scale, true_targets
from credo.errors import InputError, Refusal
from credo.recipes import build, table_model

NAME = "tables"
FOLDS, LARGE, HELD = 5, 20_000, 20_000  # tables of more rows than LARGE have HELD rows to score on
WANTED, WITHIN = 0.9, 0.04  # coverage


def study(names: Iterable[str], seed: int, rows: int | None, kept: records.Records, told: Callable[[str], Any]) -> None:
    """Run what is not on record."""
    for name in names:
        example = TABLES[name](seed) if rows is None else TABLES[name](seed, rows)
        for fold, parts in enumerate(folds(example, seed)):
            for model in (AUTO, *BASELINES):
                mark = records.fingerprint(seed, rows, fold)
                place = f"{NAME}-{name}-{model}-{fold}-{mark}"
                if kept.read(place) is None:
                    found = cell(model, example, parts, seed)
                    facts = {"table": name, "model": model, "fold": fold, "seed": seed, "fingerprint": mark}
                    kept.write(place, facts | {"machine": records.machine()} | found)
                    told(f"{name} {model} fold {fold}: done")


def folds(example: Example, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows."""
    if len(example.frame) <= LARGE:
        return find_folds(example.frame, example.target, example.task, FOLDS, seed, None)
    order = np.random.default_rng(seed).permutation(len(example.frame))
    return [(order[HELD:], order[:HELD])]


def cell(model: str, example: Example, parts: tuple[np.ndarray, np.ndarray], seed: int) -> dict[str, Any]:
    """Sums of the scores of the held-out rows; of a baseline also its log-likelihood on validation rows."""
    train, held = parts
    try:
        if model == AUTO:
            return fitted(model, example, train, held, seed)
        order = np.random.default_rng(seed).permutation(train)
        inner = fitted(model, example, order[len(order) // 5 :], order[: len(order) // 5], seed)
        return fitted(model, example, train, held, seed) | {"validation": inner["log_likelihood"] / inner["rows"]}
    except (Refusal, InputError) as error:
        return {"refused": str(error)}


def fitted(model: str, example: Example, train: np.ndarray, held: np.ndarray, seed: int) -> dict[str, Any]:
    """Fit to some rows, score others."""
    rows, others = example.frame.iloc[train], example.frame.iloc[held]
    encoder = TableEncoder.learn(rows, example.target, example.task, "error")
    given, scored = encoder.arrays(rows), encoder.arrays(others, unseen="zeros")
    began = time.perf_counter()
    facts: dict[str, Any] = {}
    if model == AUTO:
        choice = chosen_for(encoder, given[:3], None, {}, None, seed)
        said = settle(choice, None, {}, None, None, None)
        method, options = build(said["method"], said["settings"])
        fit = credo.fit(
            jax.random.key(seed), table_model(encoder, said["network"], options, said["method"]), given[:3], method,
            steps=said["steps"], batch_size=said["batch_size"], progress=False,
        )  # fmt: skip
        facts = {"why": choice.why, "ok": fit.status.ok}
        spent = time.perf_counter() - began
        predictive = credo.predict(jax.random.key(seed + 1), fit, scored.inputs)
    else:
        made = fit_baseline(
            model, encoder.task, given.inputs, given.targets, num_classes=len(encoder.classes or ()), seed=seed
        )
        spent = time.perf_counter() - began
        predictive = made.predict(scored.inputs)
    scores = row_scores(on_scale(predictive, encoder), true_targets(encoder, scored.targets))
    return {"rows": len(scored.rows), "seconds": spent} | facts | {k: float(v.sum()) for k, v in scores.items()}


def summary(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each table whose folds are all on record."""
    cells: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for record in found:
        cells.setdefault(record["table"], {}).setdefault(record["model"], []).append(record)
    lines = []
    for name in (n for n in TABLES if n in cells):
        by = {model: sorted(own, key=lambda r: r["fold"]) for model, own in cells[name].items()}
        if AUTO not in by or any(len(own) != len(by[AUTO]) for own in by.values()):
            continue
        known = {m: own for m, own in by.items() if m != AUTO and not any("refused" in r for r in own)}
        validated = [{m: own[f]["validation"] for m, own in known.items()} for f in range(len(by[AUTO]))]
        taken = [max(scores, key=scores.__getitem__) for scores in validated]
        rows = sum(r["rows"] for r in by[AUTO])
        best = sum(known[m][f]["log_likelihood"] for f, m in enumerate(taken)) / rows
        line = {
            "table": name, "rows": rows, "auto": _mean(by[AUTO], "log_likelihood"), "best": best,
            "taken": sorted(set(taken)), "why": by[AUTO][0]["why"], "machine": by[AUTO][0]["machine"],
            "seconds": float(np.mean([r["seconds"] for r in by[AUTO]])),
            "others": {m: _mean(own, "log_likelihood") for m, own in known.items()},
            "coverage": _mean(by[AUTO], "coverage_90") if "coverage_90" in by[AUTO][0] else None,
        }  # fmt: skip
        lines.append(line)
    return lines


def _mean(own: list[dict[str, Any]], score: str) -> float:
    return sum(r[score] for r in own) / sum(r["rows"] for r in own)


def markdown(lines: list[dict[str, Any]], command: str) -> str:
    """The page."""
    head = ["table", "rows scored", "auto", "best baseline", *BASELINES, "90 % intervals cover", "seconds of a fit"]
    rows = []
    for line in lines:
        ours = number(line["auto"], 3)
        rows.append([
            line["table"], f"{line['rows']:,}", bold(ours) if line["auto"] >= line["best"] else ours,
            f"{number(line['best'], 3)} ({', '.join(line['taken'])})",
            *(number(line["others"].get(m), 3) for m in BASELINES),
            "–" if line["coverage"] is None else f"{100 * line['coverage']:.1f} %", seconds(line["seconds"]),
        ])  # fmt: skip
    ahead = sum(line["auto"] >= line["best"] for line in lines)
    far = [line["table"] for line in lines if line["coverage"] is not None and abs(line["coverage"] - WANTED) > WITHIN]
    cover = f"further than {100 * WITHIN:.0f} points off: {', '.join(far)}" if far else "all within 4 points of 90 %"
    where = ", ".join(sorted({line["machine"] for line in lines}))
    return "\n".join([
        "# Tables of six kinds, and counts", "",
        f"`{command}`, on {where}. Mean log-likelihood of held-out rows (nats), on the scale of the table; the best "
        "single baseline is the one with the best log-likelihood on a fifth of the training rows.", "",
        table(head, rows), "",
        f"`auto` is at least as good as the best baseline on {ahead} of {len(lines)} tables; 90 % intervals: {cover}.",
        "", *(f"- {line['table']}: {line['why']}" for line in lines), "",
    ])  # fmt: skip
