"""One page for one run or several, written whole or not at all."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from credo.errors import InputError
from credo.report.compare import comparison
from credo.report.html import Section, page
from credo.report.run import RunData
from credo.report.sections import run_sections, short_sections
from credo.storage.atomic_write import replaced_file

MOST_BYTES = 2_500_000  # of all figures of a page, which must open on a phone


def render(runs: Sequence[RunData]) -> str:
    """The page as text."""
    if not runs:
        raise InputError("A report needs at least one run.")
    if len(runs) == 1:
        return page(runs[0].name, run_sections(runs[0]), _subtitle(runs[0]))
    runs = with_distinct_names(runs)
    anchors = [f"run-{i + 1}" for i in range(len(runs))]
    sections = [comparison(runs, anchors)]
    budget = MOST_BYTES - _size(sections)
    for run, anchor in zip(runs, anchors):
        sections.append(Section(run.name, f"<p class='subtitle'>{escape(_subtitle(run))}</p>", anchor=anchor))
        sections_of_run = run_sections(run, level=3, prefix=anchor) if budget > 0 else []
        budget = budget - _size(sections_of_run) if _size(sections_of_run) <= budget else 0
        sections += sections_of_run if budget > 0 else short_sections(run, level=3)
    return page(f"{len(runs)} runs compared", sections)


def _size(sections: Sequence[Section]) -> int:
    return sum(len(section.body.encode()) for section in sections)


def with_distinct_names(runs: Sequence[RunData]) -> list[RunData]:
    """The runs, with a number behind names that occur more than once."""
    names = [run.name for run in runs]
    again = [names[:i].count(name) + 1 for i, name in enumerate(names)]
    return [replace(run, name=f"{run.name} ({i})") if names.count(run.name) > 1 else run for run, i in zip(runs, again)]


def write_report(runs: Sequence[RunData], out: Path | str) -> Path:
    """Write a self-contained HTML page and return where it is.

    Args:
        runs: one run, or several to compare.
        out: the file; its folder is made if need be.
    """
    target = Path(out)
    text = render(runs)
    try:
        with replaced_file(target) as part:
            part.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"The report cannot be written to {target}: {error.strerror}; choose another --out."
        ) from error
    return target


def _subtitle(run: RunData) -> str:
    if run.fit is None:
        return "Predictions without their fit"
    config = run.fit.config
    rows = f", learned from {config['num_data']:,} rows" if "num_data" in config else ""
    return f"A Bayesian neural network fitted with {config.get('method', 'credo')}{rows}"
