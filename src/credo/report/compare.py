"""Several runs beside each other: ranked on the rows that all of them held out, with intervals of the differences."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from credo.evaluation.comparison.cell import alarms_of, row_scores
from credo.evaluation.comparison.result import Comparison, rank_models
from credo.report.comparison import best_cells, best_of, figure, marks, rows_of
from credo.report.html import Section, gallery, links, paragraphs, table
from credo.report.run import RunData
from credo.report.tables import cell, in_order, meaning
from credo.report.views import COVERAGE

SKIPPED = ("seconds_compile", "seconds_run")
LEVEL = COVERAGE  # that of `credo compare`, and of every other interval
FEWEST_GROUPS = 5  # a bootstrap over fewer is far too sure; over one it is certain
CAPTIONS = {
    "ranking": "Left: distance to the first in log-likelihood per row, both on the same rows, with its interval if "
    "there is one; one that reaches zero is a difference that chance could explain. Right: seconds of the whole fit."
}


def comparison(runs: Sequence[RunData], anchors: Sequence[str]) -> Section:
    """The ranking where runs have rows in common, a table of all scores, and links to each run."""
    ranked = ranking(runs)
    body = paragraphs([_why_not(runs)]) if ranked is None else _ranked(runs, ranked)
    body += "<h3>All scores</h3>" + _scores(runs)
    body += paragraphs(["Each run on the rows that it was scored on.", "The best of each score is in bold."])
    body += links(dict(zip(anchors, (run.name for run in runs))))
    return Section("Comparison", body)


def ranking(runs: Sequence[RunData]) -> Comparison | None:
    """The runs that were scored, best first, on the rows that all of them have; None where that says nothing.

    Args:
        runs: with different names.
    """
    scored = [run for run in runs if run.predictive is not None and run.targets is not None]
    indices = shared_rows(scored) if len(scored) > 1 else None
    if indices is None:
        return None
    cells: dict[str, list[dict[str, Any]]] = {}
    for run, index in zip(scored, indices):
        assert run.predictive is not None
        assert run.targets is not None
        rows = {name: values[index] for name, values in row_scores(run.predictive, run.targets).items()}
        rows["place"] = np.arange(len(index))
        seconds = float(run.metrics.get("seconds_fit", np.nan))
        alarms = {} if run.fit is None else alarms_of(run.fit)
        cells[run.name] = [{"rows": rows, "seconds": seconds, "ok": not alarms, "alarms": alarms}]
    split_by, groups, trouble = shared_groups(scored, indices)
    ranked, rowwise = rank_models(cells, LEVEL, 0, groups, intervals=not trouble)
    task = "" if scored[0].predictive is None else scored[0].predictive.kind
    notes = [trouble] if trouble else []
    return Comparison(ranked, {}, LEVEL, task, None, len(indices[0]), 1, notes, rowwise, split_by)


def shared_groups(runs: Sequence[RunData], indices: Sequence[np.ndarray]) -> tuple[str | None, np.ndarray | None, str]:
    """The column whose groups all runs held out whole, the group of each shared row, and why there can be no interval.

    Rows of one group are alike, so that an interval over rows would be far too narrow.

    Args:
        runs: that are ranked.
        indices: from `shared_rows`.
    """
    columns = {run.split_by for run in runs}
    if columns == {None}:
        return None, None, ""
    if len(columns) > 1:
        return None, None, (
            "Some runs held out whole groups and others did not, or not of the same column, so there is no interval; "
            "fit them with the same --split-by to have one."
        )  # fmt: skip
    column = runs[0].split_by
    kept_groups = next(((run.groups, index) for run, index in zip(runs, indices) if run.groups is not None), None)
    if kept_groups is None:
        return column, None, (
            f"The runs held out whole groups of '{column}' but did not keep which, so there is no interval; fit again "
            "to have one."
        )  # fmt: skip
    groups = kept_groups[0][kept_groups[1]]
    count = len(np.unique(groups))
    if count < FEWEST_GROUPS:
        return column, None, (
            f"These rows are {count} group{'s' * (count > 1)} of '{column}', too few for an interval; hold out at "
            f"least {FEWEST_GROUPS}."
        )  # fmt: skip
    return column, groups, ""


def shared_rows(runs: Sequence[RunData]) -> list[np.ndarray] | None:
    """The indices in each run of the rows that all runs share; None for fewer than two, or if rows cannot be matched.

    Rows of one table are matched by their numbers. Other rows count as the same where all their targets agree.
    """
    targets = [np.asarray(run.targets) for run in runs]
    if len({_labels(run) for run in runs}) > 1 or len({t.shape[1:] for t in targets}) > 1:
        return None
    sources, numbers = {run.source for run in runs}, [run.row_numbers for run in runs if run.row_numbers is not None]
    if len(sources) == 1 and None not in sources and len(numbers) == len(runs):
        common = reduce(np.intersect1d, numbers)
        indices = [np.array([np.flatnonzero(n == row)[0] for row in common], int) for n in numbers]
    else:
        indices = [np.arange(len(t)) for t in targets]
    first = targets[0][indices[0]]
    alike = all(np.array_equal(first, t[index]) for t, index in zip(targets, indices))
    return indices if alike and len(first) > 1 else None


def _labels(run: RunData) -> tuple[str, ...] | None:
    """The classes, whose order gives the targets their meaning."""
    classes = None if run.encoder is None else run.encoder.classes
    return None if classes is None else tuple(map(str, classes))


def _ranked(runs: Sequence[RunData], comparison: Comparison) -> str:
    methods = {run.name: _method(run) for run in runs}
    head, rows = rows_of(comparison)
    head = ["Run", "Method", *(name[:1].upper() + name[1:] for name in head[1:])]
    rows = [[name, methods[row["model"]], *rest] for row, (name, *rest) in zip(comparison.table, rows)]
    best = [(i, j + 1) for i, j in best_cells(comparison)]
    sizes = {len(run.targets) for run in runs if run.targets is not None}
    which = "the same" if sizes == {comparison.rows} else "the"
    notes = [
        *comparison.sentences(),
        f"All scores of this table are means over {which} {comparison.rows:,} rows that every run held out.",
        _interval(comparison),
        "Predictions were drawn anew for it, so that its last digits may differ from scores saved with the runs.",
    ]
    missing = [run.name for run in runs if run.name not in comparison.rowwise]
    if missing:
        notes.append(f"Without scored rows, and so not ranked: {', '.join(missing)}.")
    return (
        table(head, rows, numbers=True, best=best)
        + paragraphs(notes)
        + marks(comparison)
        + gallery({"ranking": figure(comparison)}, CAPTIONS, "comparison")
    )


def _interval(comparison: Comparison) -> str:
    if comparison.notes:
        return f"Behind the first: nats per row. {' '.join(comparison.notes)}"
    over = "rows" if comparison.split_by is None else f"whole groups of '{comparison.split_by}'"
    return f"Behind the first: nats per row, with the {100 * LEVEL:.0f} % interval of a bootstrap over {over}."


def _why_not(runs: Sequence[RunData]) -> str:
    if sum(run.predictive is not None for run in runs) < 2:
        return "Fewer than two runs were scored, so there is nothing to rank."
    return "The runs were scored on different rows, so they are not ranked, and small differences mean little."


def _scores(runs: Sequence[RunData]) -> str:
    names = list(dict.fromkeys(n for run in runs for n in in_order(run.metrics) if n not in SKIPPED))
    head = ["Run", "Method", *(meaning(n).label for n in names)]
    rows = [[run.name, _method(run), *(cell(n, run.metrics.get(n)) for n in names)] for run in runs]
    best = [(i, j + 2) for j, n in enumerate(names) for i in _best(runs, n)]
    return table(head, rows, numbers=True, best=best)


def _method(run: RunData) -> str:
    return "–" if run.fit is None else str(run.fit.config.get("method", "–"))


def _best(runs: Sequence[RunData], name: str) -> list[int]:
    """The runs that share the best value of a score; none where no way is better."""
    return best_of([run.metrics.get(name) for run in runs], meaning(name).better)
