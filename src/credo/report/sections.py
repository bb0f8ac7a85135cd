"""The sections of one run."""

from matplotlib.figure import Figure

from credo.report.advice import advice
from credo.report.belief import TITLE, belief
from credo.report.effects import input_section
from credo.report.html import Section, bullets, gallery, paragraphs, table
from credo.report.nodes import node_section
from credo.report.plots import CAPTIONS, MOST_OUTPUTS, of_training, of_views
from credo.report.run import RunData
from credo.report.tables import score_rows, setting_rows
from credo.report.words import summary

FIGURES = {
    "Predictions": ("curve", "sorted_predictions", "confusion"),
    "Residuals": ("predicted_observed", "residuals"),
    "Calibration": ("pit_histogram", "coverage_curve", "reliability", "confidence_histogram"),
    "Noise and lack of knowledge": ("split", "share", "entropy_split"),
    "Training": ("loss_trace", "log_density", "acceptance", "step_size"),
}
MOST_FEATURES = 60


def short_sections(run: RunData, level: int) -> list[Section]:
    """A run without its figures, for a page that has many."""
    more = "The figures of this run are left out to keep the page small; they are in its own report."
    body = f"<div class='summary'>{paragraphs(summary(run))}</div>{paragraphs([more])}"
    return [Section("In words", body, level), *_scores(run, level)]


def _scores(run: RunData, level: int) -> list[Section]:
    head = ("Score", "Value", "What it says")
    return [Section("Scores", table(head, score_rows(run.metrics)), level)] if run.metrics else []


def run_sections(run: RunData, level: int = 2, prefix: str = "run") -> list[Section]:
    """Everything about a run, in reading order; `prefix` is unique within the page."""
    figures = of_views(run.views, run.fit, run.inputs, run.encoder, run.seed)
    figures |= of_training(run.fit) if run.fit is not None else {}
    sections = [
        Section("In words", f"<div class='summary'>{paragraphs(summary(run))}</div>", level),
        Section("Status and advice", _status(run), level),
    ]
    if run.fit is not None:
        sections.append(belief(run.fit, level, prefix))
    sections += _scores(run, level)
    for title, names in FIGURES.items():
        if title == "Training":
            sections += [*input_section(run, level, prefix), *node_section(run.fit, level, prefix)]
        chosen = {k: f for name in names for k, f in figures.items() if k.rstrip("_0123456789") == name}
        if chosen or (title == "Noise and lack of knowledge" and run.views):
            sections.append(Section(title, _figures(run, title, chosen, prefix), level))
    if run.fit is not None:
        body = table(("Setting", "Value"), [*_data_rows(run), *setting_rows(run.fit.config)])
        sections.append(Section("Configuration", body, level))
    if run.versions:
        sections.append(Section("Versions", table(("Package", "Version"), list(run.versions.items())), level))
    return sections


def _figures(run: RunData, title: str, figures: dict[str, Figure], prefix: str) -> str:
    body = gallery(figures, CAPTIONS, prefix) if figures else ""
    if title == "Predictions" and len(run.views) > MOST_OUTPUTS:
        body = paragraphs([f"The first {MOST_OUTPUTS} of {len(run.views)} outputs are shown."]) + body
    if title == "Noise and lack of knowledge" and not figures:
        body = paragraphs(
            ["This method keeps one set of weights, so there is no lack of knowledge to show: all is noise."]
        )
    return body


def _status(run: RunData) -> str:
    sentences = list(run.notes)
    if run.fit is not None:
        status = run.fit.status
        first = "The fit finished." if status.outcome == "finished" else f"The fit was {status.outcome}."
        count = len(status.alarms)
        ring = [f"It raised {count} alarm{'s' * (count != 1)}: see “{TITLE}” below."] if count else []
        sentences = [first, *(n for n in status.notes if n not in status.alarms), *ring, *sentences]
    if run.encoder is not None:
        sentences += run.encoder.notes
    suggestions = advice(run)
    tips = bullets(suggestions) if suggestions else paragraphs(["Nothing stands out that would need another try."])
    return bullets(dict.fromkeys(sentences)) + f"<p><strong>What to try</strong></p>{tips}"


def _data_rows(run: RunData) -> list[tuple[str, str]]:
    rows = []
    if run.encoder is not None:
        target = run.encoder.target
        rows.append(("target", target if isinstance(target, str) else ", ".join(target)))
    if run.feature_names:
        names = list(run.feature_names)
        more = f" and {len(names) - MOST_FEATURES} more" if len(names) > MOST_FEATURES else ""
        rows.append((f"inputs ({len(names)})", ", ".join(names[:MOST_FEATURES]) + more))
    if run.targets is not None:
        rows.append((f"{run.rows} rows", f"{len(run.targets):,}"))
    return rows
