"""Several runs beside each other, and whether the best is better by more than chance."""

from collections.abc import Sequence

import numpy as np

from credo.report.html import Section, links, paragraphs, table
from credo.report.run import RunData
from credo.report.tables import cell, in_order, meaning
from credo.report.words import number

SKIPPED = ("seconds_compile", "seconds_run")


def comparison(runs: Sequence[RunData], anchors: Sequence[str]) -> Section:
    """A table of scores with one row for each run, and what can be said about it."""
    names = list(dict.fromkeys(n for run in runs for n in in_order(run.metrics) if n not in SKIPPED))
    head = ["Run", "Method", *(meaning(n).label for n in names)]
    rows = [
        [run.name, _method(run), *(cell(n, run.metrics.get(n)) for n in names)] for run in runs
    ]  # fmt: skip
    best = [(i, j + 2) for j, n in enumerate(names) for i in _best(runs, n)]
    body = table(head, rows, numbers=True, best=best)
    body += paragraphs(_words(runs))
    body += links(dict(zip(anchors, (run.name for run in runs))))
    return Section("Comparison", body)


def _method(run: RunData) -> str:
    return "–" if run.fit is None else str(run.fit.config.get("method", "–"))


def _best(runs: Sequence[RunData], name: str) -> list[int]:
    """The runs that share the best value of a score; none where no way is better."""
    sign = meaning(name).better
    values = [run.metrics.get(name) for run in runs]
    known = [sign * v for v in values if v is not None and np.isfinite(v)]
    if not sign or len(known) < 2:
        return []
    return [i for i, v in enumerate(values) if v is not None and sign * v == max(known)]


def _words(runs: Sequence[RunData]) -> list[str]:
    said = ["The best of each score is in bold."]
    scored = [run for run in runs if run.predictive is not None and run.targets is not None]
    if len(scored) < 2:
        return said
    first = scored[0].targets
    if not all(_same(first, run.targets) for run in scored[1:]):
        return [*said, "The runs were scored on different rows, so small differences mean little."]
    rows = [np.asarray(run.predictive.log_prob(run.targets)) for run in scored]  # type: ignore[union-attr]
    order = np.argsort([-r.mean() for r in rows])
    gap = rows[order[0]] - rows[order[1]]
    error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.inf
    clear = gap.mean() > 2 * error
    said.append(
        f"By log-likelihood {scored[order[0]].name} leads {scored[order[1]].name} by {number(gap.mean())} ± "
        f"{error:.2g} nats per row (± one standard error over the same {len(gap):,} rows): "
        + ("more than chance would explain." if clear else "no more than chance could explain.")
    )
    return said


def _same(first: np.ndarray | None, second: np.ndarray | None) -> bool:
    return first is not None and second is not None and np.array_equal(first, second)
