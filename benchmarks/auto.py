"""What `method="auto"` is chosen from: candidates on tables of six kinds and on counts, beside baselines.

    python -m benchmarks.auto --folder OUT [--tables small,wide] [--models chains_t,linear] [--folds 3] [--first 1]
        [--seed 100] [--page docs/measured/auto.md]

Every table of `benchmarks.tables` is made anew with the seed (that of patients is what it is, in other folds),
and every model is fitted to all folds but one and scored on that one. The settings of `auto` are chosen with seeds from
100 on; `python -m benchmarks tables` measures it with seed 0. Cells go to --folder, one file each: what was stopped
goes on. --page writes the table of the site, and its cells in one file beside it.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import credo
from benchmarks import front_door, records
from benchmarks.markdown import bold, number, seconds
from benchmarks.rules import baseline_rules
from benchmarks.tables import TABLES
from credo.evaluation.baselines import BASELINES, fit_baseline
from credo.evaluation.comparison.cell import row_scores
from credo.evaluation.comparison.plan import find_folds
from credo.report.markdown import table
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.scale import on_scale, true_targets
from credo.tables.model import build, table_model


class Candidate(NamedTuple):
    """A method with its settings and the model's."""

    method: str
    settings: tuple[tuple[str, Any], ...] = ()
    network: str | None = None
    steps: int | None = None
    batch_size: int | None = None


def chains(length: int, likelihood: str | None, network: str = "mlp:32,32,32:tanh", **more: Any) -> Candidate:
    """`ensemble_chains` with `length` warm-up steps and draws, and paths of at most so many steps."""
    words = {"warmup": length, "num_steps": length} | more | ({"likelihood": likelihood} if likelihood else {})
    return Candidate("ensemble_chains", tuple(words.items()), network, length, 128)


def ensemble(likelihood: str | None, network: str, steps: int, batch_size: int | None = 128, **more: Any) -> Candidate:
    """`deep_ensemble`."""
    words = more | ({"likelihood": likelihood} if likelihood else {})
    return Candidate("deep_ensemble", tuple(words.items()), network, steps, batch_size)


NORMAL, ROBUST = "heteroscedastic:0.01", "heteroscedastic_t:0.01"
REAL = {
    "chains_n": chains(50, NORMAL),
    "chains_t": chains(50, ROBUST),
    "chains_t_1": chains(50, ROBUST, prior="fan_in_normal:1.0"),
    "chains_t_16": chains(50, ROBUST, "mlp:16,16:tanh"),
    "chains_t_50": chains(50, ROBUST, "mlp:50:tanh"),
    "ensemble_t": ensemble(ROBUST, "mlp:50,50", 3000),
    "vi_t": Candidate("bayes_by_backprop", (("likelihood", ROBUST),), "mlp:50"),
}
SMALL, WRONG = "mlp:16,16:tanh", "mislabelled"
CLASSES = {
    "chains": chains(50, None),
    "chains_16": chains(50, None, SMALL),
    "chains_16_m": chains(50, WRONG, SMALL),
    "chains_50": chains(50, None, "mlp:50:tanh"),
    "ensemble": ensemble(None, "mlp:50,50", 3000),
    "ensemble_m": ensemble(WRONG, "mlp:50,50", 3000),
    "vi": Candidate("bayes_by_backprop"),
    "laplace": Candidate("laplace"),
}
COUNTS = {
    "chains": chains(50, None),
    "chains_2": chains(50, None, prior="fan_in_normal:2.0"),
    "chains_16": chains(50, None, SMALL),
    "chains_50": chains(50, None, "mlp:50:tanh"),
    "ensemble": ensemble(None, "mlp:50,50", 3000),
    "vi": Candidate("bayes_by_backprop"),
    "laplace": Candidate("laplace"),
}
# A million rows leave no time for chains. The first is what `auto` plans for a minute of two cores.
WIDE = "mlp:100,100,100"
MANY = {
    "ensemble_t": ensemble(ROBUST, WIDE, 9000, 512),
    "ensemble_t_900": ensemble(ROBUST, WIDE, 900, 512),
    "ensemble_t_50": ensemble(ROBUST, "mlp:50,50", 9000, 512),
    "ensemble_n": ensemble(NORMAL, WIDE, 9000, 512),
    "vi_t": Candidate("bayes_by_backprop", (("likelihood", ROBUST),), WIDE, 20_000, 512),
    "swag_t": Candidate("multi_swag", (("likelihood", ROBUST),), WIDE, 9000, 512),
}
GROUPS = (REAL, MANY, CLASSES, COUNTS)


def candidates(name_of: str, task: str) -> dict[str, Candidate]:
    """Candidates of a table, by name."""
    kinds = {"regression": REAL, "count": COUNTS}
    return MANY if name_of == "large" else kinds.get(task, CLASSES)


def fitted(one: Candidate, encoder: TableEncoder, train: Any, test: Any, seed: int) -> Any:
    """The predictive at the scored rows."""
    method, options = build(one.method, dict(one.settings))
    model = table_model(encoder, one.network, options, one.method)
    size = None if one.batch_size is None else min(one.batch_size, len(train.rows))
    fit = credo.fit(jax.random.key(seed), model, train[:3], method, steps=one.steps, batch_size=size, progress=False)
    return credo.predict(jax.random.key(seed + 1), fit, test.inputs)


def cell(
    name: str, one: Candidate | None, example: Any, rows: tuple[np.ndarray, np.ndarray], seed: int
) -> dict[str, Any]:
    """Of a candidate, or of a baseline by its name: sums of the scores of held-out rows, and seconds."""
    train, held = (example.frame.iloc[part] for part in rows)
    encoder = TableEncoder.learn(train, example.target, example.task, "error")
    learned, test = encoder.arrays(train), encoder.arrays(held, unseen="zeros")
    began = time.perf_counter()
    if one is None:
        classes = len(encoder.classes or ())
        fit = fit_baseline(name, encoder.task, learned.inputs, learned.targets, num_classes=classes, seed=seed)
        predictive = fit.predict(test.inputs)
    else:
        predictive = fitted(one, encoder, learned, test, seed)
    spent = time.perf_counter() - began
    scores = row_scores(on_scale(predictive, encoder), true_targets(encoder, test.targets))
    return {"rows": len(test.rows), "seconds": spent} | {k: float(v.sum()) for k, v in scores.items()}


def records_of(options: argparse.Namespace) -> records.Records:
    """The cells of --folder, and those beside the page."""
    return records.Records(options.folder, options.page and options.page.with_suffix(".json"))


def record_name(name_of: str, name: str, fold: int, one: Candidate | None, options: argparse.Namespace) -> str:
    """The name of a cell's record; other settings have another one."""
    settings = one or baseline_rules(name, TABLES[name_of](0, 20).task)
    mark = records.fingerprint(settings, options.folds, options.seed, options.rows)
    return f"candidates-{name_of}-{name}-{fold}-{mark}"


def described(one: Candidate) -> str:
    """A candidate in the words of `credo fit`."""
    words = [f"--method {one.method}"]
    words += [f"--network {one.network}"] if one.network else []
    words += [f"--steps {one.steps}"] if one.steps else []
    words += [f"--batch-size {one.batch_size}"] if one.batch_size else []
    return " ".join([*words, *(f"--set {key}={value}" for key, value in one.settings)])


def page(lines: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Log-likelihoods and seconds of all candidates and baselines, for each group of tables with the same ones."""
    some = options.tables if options.tables != ",".join(TABLES) else ""
    parts = ["# What `auto` was chosen from" + (f": {some}" if some else "")]
    command = f"python -m benchmarks.auto --folder runs/candidates --folds {options.folds} --seed {options.seed}"
    command += f" --first {options.first}" if options.first else ""
    command += f" --tables {some}" if some else ""
    where = ", ".join(dict.fromkeys(line["machine"] for line in lines))
    scored = f"{options.first} of {options.folds} folds" if options.first else f"{options.folds} folds"
    parts.append(
        f"`{command} --page docs/measured/{options.page.name}`, on {where}. Mean log-likelihood of held-out rows, in "
        f"nats, in {scored} (large: one part of {front_door.HELD:,} rows), in brackets the seconds of a fit with its "
        "compilation; the best of a column is bold. Tables are made with another seed than those on which `credo "
        "benchmark tables` measures `auto`, but for small, which is the same table in other folds."
    )
    for group in GROUPS:
        tables = list(dict.fromkeys(line["table"] for line in lines if candidates_of(line["table"]) is group))
        if not tables:
            continue
        by_cell = {(line["table"], line["model"]): line for line in lines}
        best = {t: max(line["log_likelihood"] for line in lines if line["table"] == t) for t in tables}

        def shown(t: str, model: str, by_cell: Any = by_cell, best: Any = best) -> str:
            line = by_cell.get((t, model))
            if line is None:
                return "–"
            text = number(line["log_likelihood"], 3)
            return f"{bold(text) if line['log_likelihood'] == best[t] else text} ({seconds(line['seconds'])})"

        rows = [[f"`{m}`", *(shown(t, m) for t in tables)] for m in (*group, *BASELINES)]
        parts.append(table(["model", *tables], rows))
        parts.append("\n".join(f"- `{name}`: `{described(one)}`" for name, one in group.items()))
    return "\n\n".join(parts) + "\n"


def candidates_of(name_of: str) -> dict[str, Candidate]:
    """Candidates of a table, by its name."""
    return candidates(name_of, TABLES[name_of](0, 20).task)


def study(name_of: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Means over all held-out rows, one line for each model."""
    make = TABLES[name_of]
    example = make(options.seed) if options.rows is None else make(options.seed, options.rows)
    folds = (
        front_door.folds(example, options.seed) if len(example.frame) > front_door.LARGE
        else find_folds(example.frame, example.target, example.task, options.folds, options.seed, None)
    )  # fmt: skip
    group = candidates(name_of, example.task)
    names = [*group, *BASELINES]
    names = [n for n in options.models.split(",") if n in names] if options.models else names
    lines, store = [], records_of(options)
    for name in names:
        results: list[Any] = []
        for fold, rows in enumerate(folds[: options.first]):
            key = record_name(name_of, name, fold, group.get(name), options)
            result = store.read(key)
            if result is None:
                try:
                    result = cell(name, group.get(name), example, rows, options.seed)
                except (credo.errors.Refusal, credo.errors.InputError) as error:
                    print(f"{name_of} {name}: {error}", file=sys.stderr)
                    break
                store.write(key, result | {"machine": records.machine()})
                result = store.read(key)
            results.append(result)
        if len(results) < len(folds[: options.first]):
            continue
        total = sum(f["rows"] for f in results)
        facts = ("rows", "seconds", "machine", "written")
        line = {k: sum(f[k] for f in results) / total for k in results[0] if k not in facts}
        spent, machine = np.mean([f["seconds"] for f in results]), results[0]["machine"]
        lines.append({"table": name_of, "model": name} | line | {"seconds": spent, "machine": machine})
        print("  ".join(f"{k} {v:.4g}" if not isinstance(v, str) else v for k, v in lines[-1].items()), flush=True)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--first", type=int, help="only so many of the folds")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--page", type=Path, help="write the table here")
    options = parser.parse_args()
    lines = [line for name in options.tables.split(",") for line in study(name, options)]
    if options.page:
        options.page.write_text(page(lines, options), encoding="utf-8")
        records_of(options).pack("candidates", options.page.with_suffix(".json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
