"""The section "Can this be believed?": convergence, alarms, and figures of chains."""

from typing import Any

from credo.evaluation.diagnostics.summary import HEAD, table_rows, verdict
from credo.report.chains import of_chains
from credo.report.html import Section, bullets, gallery, paragraphs, table

TITLE = "Can this be believed?"
CAPTIONS = {
    "ranks_of_function_value": "Of the function value on which chains disagree most. Wanted: bars near the dashed line "
    "in every chain; a chain that fills one side stays where the others do not go.",
    "ranks_of_log_density": "Wanted: bars near the dashed line in every chain.",
    "energy": "Wanted: changes about as wide as the spread itself; much narrower ones mean that chains crawl through "
    "the energies.",
}
WORDS = (
    "R-hat compares chains with each other and with their own halves: 1 is agreement, above 1.05 is not, unless "
    "chains are so short that chance explains it. ESS says how many independent draws the draws are worth, in the bulk "
    "and in the tails of the posterior. Each row shows the worst of its numbers. Functions and the size of the noise "
    "come first, because predictions are made of them: weights are not identified (exchange two hidden units and "
    "nothing changes), so chains may disagree about weights and still agree about every prediction."
)


def belief(fit: Any, level: int, prefix: str) -> Section:
    """What speaks for and against the fit."""
    diagnostics = fit.diagnostics
    sentences = [verdict(diagnostics)]
    if diagnostics.divergences is not None:
        sentences.append(f"{diagnostics.divergences} of {diagnostics.transitions:,} transitions diverged.")
    if diagnostics.bfmi:
        sentences.append(f"The lowest E-BFMI of a chain is {min(diagnostics.bfmi):.2f}; above 0.3 is well.")
    alarms = [str(alarm) for alarm in diagnostics.alarms]
    body = paragraphs(sentences)
    if alarms:
        body += f"<p><strong>Alarms</strong></p>{bullets(alarms)}"
    else:
        body += paragraphs(["No alarm was raised."])
    if diagnostics.convergence:
        body += table(HEAD, table_rows(diagnostics), numbers=True) + paragraphs([WORDS])
    figures = of_chains(fit)
    if figures:
        body += gallery(figures, CAPTIONS, f"{prefix}-chains")
    return Section(TITLE, body, level)
