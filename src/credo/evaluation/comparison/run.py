"""`compare`: methods and baselines on the same folds of a table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from credo.core.checks import share
from credo.evaluation.comparison import time_left
from credo.evaluation.comparison.cell import run_cell
from credo.evaluation.comparison.plan import Plan
from credo.evaluation.comparison.result import Comparison, rank_models
from credo.storage.atomic_write import check_replaceable
from credo.storage.store import open_store
from credo.training.progress import labelled

FILE = "comparison.json"


def compare(
    table: Any,
    target: str | list[str],
    *,
    methods: str | Sequence[str] | None = None,
    baselines: str | Sequence[str] | bool = True,
    folds: int = 5,
    budget: str | float | None = None,
    steps: int | None = None,
    task: str = "auto",
    missing: str = "auto",
    drop: Sequence[str] = (),
    network: str | None = None,
    settings: dict[str, Any] | None = None,
    split_by: str | None = None,
    seed: int = 0,
    level: float = 0.9,
    jobs: int = 1,
    folder: str | Path | None = None,
    callback: Callable[[str, int, dict[str, Any]], Any] | None = None,
    announce: Callable[[str], Any] | None = None,
) -> Comparison:
    """Fit every model on the same folds of a table and score the rows that it did not see.

    Every row is held out once, so scores are those of all rows. Models are ordered by log-likelihood; how far one is
    behind the first has a bootstrap interval, paired: both are scored on the same rows. It is over rows, or with
    `split_by` over whole groups, since rows of one group are alike. Rows that are held out together were predicted by
    one fit, so intervals know nothing of what another table of this kind would give.

    Whether every fold can be fitted is checked before the first fit: a class needs two rows beside those held out.

    Args:
        table: a data frame, or a CSV, TSV, Parquet or Feather file.
        target: the column to predict, or several.
        methods: names of methods, in a list or with commas; None takes some of each kind, "all" all of them.
        baselines: True for all of `credo.evaluation.baselines`, False for none, or names.
        folds: number of folds.
        budget: time of each fit, such as "60s", with the pilot of "auto", compilation aside. It ends the main phase
            alone: starts, warm-up and what follows are done in full, and baselines take what they take. "over" of the
            table counts folds that took more than 1.5 times as long, compilation aside.
        steps: of each fit, instead; None takes each method's own number.
        task, missing, drop: as in `credo fit`.
        network: "mlp:50,50"; None takes each method's own.
        settings: of methods and models, such as {"prior": "normal:1.0"}; every method must know them.
        split_by: a column whose groups are held out whole, here, in the pilot of "auto" and within baselines; it is
            no input.
        seed: of folds and fits.
        level: of the intervals.
        jobs: processes that run cells side by side, through joblib: with `joblib.parallel_config(backend=…)` around
            the call they run on a cluster of Dask or Ray.
        folder: where cells are kept; the same call goes on where it was stopped.
        callback: called with model, fold and cell after each.
        announce: called with a sentence about the time that it takes, at first and after each fold; a terminal then
            shows the progress of each fit, too, where one runs at a time.

    Example:
        >>> import numpy as np, pandas as pd, credo
        >>> x = np.random.default_rng(0).normal(size=60)
        >>> frame = pd.DataFrame({"x": x, "y": 2 * x + 1})
        >>> comparison = credo.compare(frame, "y", methods="map", baselines="linear", folds=2, steps=20)
        >>> comparison.best
        'linear'
    """
    from joblib import Parallel, delayed

    share(level, "The level of an interval")
    plan = Plan(
        table, target, methods, baselines, task, missing, folds, seed, network, settings, steps, budget, split_by, drop
    )
    if folder is not None:
        check_replaceable(Path(folder), lambda path: (path / FILE).exists(), "a comparison")
    with open_store(folder, FILE, "a comparison", plan.settings() if folder is not None else {}) as store:
        cells: dict[tuple[str, int], dict[str, Any]] = {}
        for model in plan.models:
            for fold in range(folds):
                stored = store.read(f"{model}-{fold}")
                if stored is not None:
                    cells[model, fold] = stored[0] | {"rows": stored[1]}
        # Fold by fold, so that a comparison that is stopped early has something to say about every model.
        remaining = [(model, fold) for fold in range(folds) for model in plan.models if (model, fold) not in cells]
        durations = {cell: float(comparison["seconds"]) for cell, comparison in cells.items()}
        say: Callable[[str], Any] = announce or (lambda sentence: None)
        if remaining:
            say(time_left.at_first(remaining, durations, plan.how["budget"], jobs))
        how = plan.how | {"groups": plan.groups, "progress": None if announce is not None and jobs == 1 else False}
        work = [delayed(_run_labelled)(model, fold, plan.frame, plan.folds[fold], how) for model, fold in remaining]
        for model, fold, cell in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
            facts = {name: value for name, value in cell.items() if name != "rows"}
            store.write(f"{model}-{fold}", facts, cell["rows"])
            cells[model, fold] = cell
            if callback is not None:
                callback(model, fold, cell)
            durations[model, fold] = float(cell["seconds"])
            remaining.remove((model, fold))
            seconds = time_left.expected(remaining, durations, jobs)
            if remaining and seconds is not None and all(other != fold for _, other in remaining):
                say(f"About {time_left.in_words(seconds)} left.")
        comparison = collect(plan, cells, level, seed)
        comparison.notes = [*comparison.notes, *store.notes]
        return comparison


def _run_labelled(model: str, fold: int, *arguments: Any) -> tuple[str, int, dict[str, Any]]:
    from credo.runtime import configure

    configure()
    with labelled(f"fold {fold + 1}, {model}"):
        return model, fold, run_cell(model, *arguments)


def collect(plan: Plan, cells: dict[tuple[str, int], dict[str, Any]], level: float, seed: int) -> Comparison:
    """The comparison of models whose every fold was run."""
    complete: dict[str, list[dict[str, Any]]] = {}
    refused: dict[str, str] = {}
    for model in plan.models:
        outcomes = [cells[model, fold] for fold in range(len(plan.folds))]
        reasons = [cell["refused"] for cell in outcomes if cell["refused"]]
        if reasons:
            refused[model] = reasons[0]
        else:
            complete[model] = outcomes
    table, rowwise = rank_models(complete, level, seed, plan.groups)
    scored = [len(rows["log_likelihood"]) for rows in rowwise.values()]
    rows = scored[0] if scored else len(plan.frame)
    return Comparison(
        table, refused, level, plan.task, plan.target, rows, len(plan.folds), plan.notes, rowwise, plan.split_by,
        plan.how["budget"],
    )  # fmt: skip
