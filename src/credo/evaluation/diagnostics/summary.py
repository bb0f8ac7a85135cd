"""A fit in a few lines of text."""

from typing import Any

from credo.core.short import plural
from credo.evaluation.diagnostics.alarms import RHAT
from credo.evaluation.diagnostics.diagnose import Convergence, Diagnostics


def verdict(checks: Diagnostics) -> str:
    """One sentence on what the chains, or the lack of them, say about the posterior."""
    functions = checks.space("function")
    if checks.kind == "point":
        return "One set of weights: there are no draws that could disagree."
    if checks.kind == "ensemble":
        return f"{checks.members} sets of weights, each a point: no test of convergence applies to them."
    if checks.kind == "distribution":
        return (
            "Draws are made afresh from a distribution, hence independent; how close it is to the posterior is told by "
            "credo.evaluation.diagnostics.pareto_k."
        )
    if checks.kind == "stack":
        return _stack_verdict(checks)
    if checks.kind == "weighted":
        return "Draws are weighted or were chosen by weight: weights, not their order, decide what they are worth."
    rows = functions or checks.space("log density")
    if not rows or not rows[0].rhat > 0:
        return "The chains are too short to say whether they agree."
    worst = max(r.rhat for r in rows)
    least = min(min(r.ess_bulk, r.ess_tail) for r in rows)
    # Alarms look at functions, and know what short chains that agree do by chance; of densities alone they say nothing.
    apart = worst > RHAT and (not functions or any(alarm.id in ("modes", "unconverged") for alarm in checks.alarms))
    agree = "do not agree" if apart else "agree"
    what = "function values" if functions else "the log density"
    where = f" at {checks.num_inputs} inputs" if functions else ""
    return (
        f"{checks.members} chain{'s' * (checks.members != 1)} of {checks.draws} draws {agree} about {what}{where} "
        f"(largest R-hat {worst:.3f}) and are worth at least {least:.0f} independent draws."
    )


def table_rows(checks: Diagnostics) -> list[tuple[str, ...]]:
    """(quantity, numbers, R-hat, ESS bulk, ESS tail, error of the mean) as text, functions first."""
    return [_row(c) for c in checks.convergence]


def _row(row: Convergence) -> tuple[str, ...]:
    name = {"weights": "weights: ", "likelihood": "noise: "}.get(row.space, "") + row.name
    sizes = [f"{v:,.0f}" if v == v else "–" for v in (row.ess_bulk, row.ess_tail)]
    error = f"{100 * row.mcse_mean:.1f} %" if row.mcse_mean == row.mcse_mean else "–"
    return name, f"{row.count:,}", f"{row.rhat:.3f}" if row.rhat == row.rhat else "–", *sizes, error


def _stack_verdict(checks: Diagnostics) -> str:
    """The same of a stack, whose parts are judged one by one."""
    judged = [row.rhat for row in checks.space("function") if row.rhat > 0]
    if not judged:
        return "A mixture of several fits, none of which has chains that could disagree."
    return f"A mixture of several fits; largest R-hat of the functions of those that have chains: {max(judged):.3f}."


def _sizes(checks: Diagnostics) -> str:
    """Parameters and members, or what stands for them."""
    if checks.kind == "stack":
        return plural(checks.members, "part")
    size = "functions, not weights" if checks.num_parameters is None else f"{checks.num_parameters:,} parameters"
    return size + (f", {checks.members} members" if checks.members > 1 else "")


HEAD = ("Quantity", "Numbers", "R-hat", "ESS bulk", "ESS tail", "Error of mean / std")


def summary(fit: Any) -> str:
    """Method, sizes, time, convergence, alarms and notes as text; what `fit.summary()` gives."""
    checks: Diagnostics = fit.diagnostics
    config, timing = fit.config, fit.timing
    lines = [
        f"{config.get('method', 'A fit')}: {_sizes(checks)}, {int(config.get('num_data', 0)):,} rows",
        f"beta = {config.get('beta', 1.0):g}, temperature = {config.get('temperature', 1.0):g}",
    ]
    if "seconds_fit" in timing:
        lines.append(
            f"{timing['steps']:,} step{'s' * (timing['steps'] != 1)} in {timing['seconds_fit']:.1f} s, "
            f"{timing['seconds_compile']:.1f} s of them compiling"
        )
    lines += ["", verdict(checks)]
    if checks.divergences is not None:
        energy = f"; lowest E-BFMI {min(checks.bfmi):.2f}" if checks.bfmi else ""
        lines.append(f"{checks.divergences} of {checks.transitions:,} transitions diverged{energy}.")
    if checks.convergence:
        rows = [HEAD, *table_rows(checks)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
        lines.append("")
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(text.rjust(w) for text, w in zip(row[1:], widths[1:]))]
            lines.append("  ".join(cells).rstrip())
    status = fit.status
    first = "The fit finished." if status.outcome == "finished" else f"The fit was {status.outcome}."
    notes = [note for note in status.notes if note not in status.alarms]
    lines += ["", " ".join([first, *notes])]
    lines += [f"Alarm: {text}" for text in status.alarms] or ["No alarms."]
    return "\n".join(lines)
