"""The audit in words: a table, and a sentence for each method."""

from typing import Any

from credo.evaluation.audit.claims import CLAIMS, FLAGGED
from credo.evaluation.audit.run import Audit
from credo.registry import METHODS

LEGEND = (
    "Each cell: spread of the posterior of functions ÷ the true spread (1 is exact, below 1 too sure), then the error "
    "of its mean in true posterior standard deviations. ✓ its own claim of exactness is met, ✗ it is missed."
)


def cell(row: dict[str, Any]) -> str:
    """A row as a cell of the table."""
    if row["mean_error"] is None:
        return "refused"
    mark = {True: " ✓", False: " ✗", None: ""}[row["met"]]
    return f"{row['std_ratio']:.2f} · {row['mean_error']:.2f}{mark}"


def table(audit: Audit) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: methods down, problems across, seconds at the end."""
    names = list(audit.problems)
    lines = []
    for method in audit.methods:
        rows = [audit.row(method, name) for name in names]
        seconds = sum(row["seconds"] or 0.0 for row in rows)
        lines.append([method, *(cell(row) for row in rows), f"{seconds:.1f}"])
    return ["method", *names, "seconds"], lines


def sentences(audit: Audit) -> dict[str, str]:
    """One sentence, or two, for each method."""
    return {method: sentence(audit, method) for method in audit.methods}


def sentence(audit: Audit, method: str) -> str:
    """What the audit found about a method."""
    rows = [row for row in audit.rows if row["method"] == method]
    done = [row for row in rows if row["mean_error"] is not None]
    parts = [_claim(method, done)]
    if METHODS.get(method) is None or METHODS[method].exact_on != "posterior":
        parts.append(_distance(done, bool(parts[0])))
    refused = [row for row in rows if row["mean_error"] is None]
    if refused:
        parts.append(f"It refused {_list(refused)}: {refused[0]['note']}")
    return " ".join(part for part in parts if part)


def _claim(method: str, done: list[dict[str, Any]]) -> str:
    judged = [row for row in done if row["met"] is not None]
    if not judged:
        return ""
    words = CLAIMS[METHODS[method].exact_on].words
    missed = [row for row in judged if not row["met"]]
    if missed:
        return f"Claims to be {words}, and misses that on {_list(missed)}."
    flagged = [row for row in judged if row["z"] is not None and row["z"] >= row["z_bound"] and row["rhat"] > FLAGGED]
    exact = len(judged) - len(flagged)
    if METHODS[method].exact_on == "posterior":
        text = f"Within Monte-Carlo error of the truth on {exact} of {len(judged)} problems"
        seen = "; ".join(f"{row['problem']} flagged by R-hat {row['rhat']:.2f}" for row in flagged)
        return f"{text} ({seen})." if flagged else f"{text}."
    return f"Claims to be {words}: true on {_list(judged)}."


def _distance(done: list[dict[str, Any]], claimed: bool) -> str:
    others = [row for row in done if not row["met"]] or done
    if not others:
        return ""
    worst = max(others, key=lambda row: row["mean_error"])
    error = f"its mean is off by up to {worst['mean_error']:.2f} standard deviations ({worst['problem']})"
    spread = [row["std_ratio"] for row in others]
    if max(spread) == 0:
        return f"A point has no spread; {error}."
    low, high = f"{min(spread):.2f}", f"{max(spread):.2f}"
    between = low if low == high else f"{low} to {high}"
    text = f"{'Elsewhere its' if claimed else 'Its'} spread is {between} of the true one"
    gaps = [row["std_ratio_gap"] for row in others if row.get("std_ratio_gap") is not None]
    inside = f" and {gaps[0]:.2f} of it inside the gap" if gaps else ""
    return f"{text}{inside}; {error}."


def _list(rows: list[dict[str, Any]]) -> str:
    return ", ".join(row["problem"] for row in rows)
