"""The facts of a fit for its one-line display, and why some fits cannot go on."""

from typing import Any

from credo.core.short import plural
from credo.posteriors import Stacked


def facts(fit: Any) -> dict[str, str]:
    """Method, rows, posterior, time and outcome; alarms where they have been computed, since computing takes time.

    Args:
        fit: a `credo.Fit`.
    """
    rows = plural(int(fit.config.get("num_data", 0)), "row")
    lines = {"method": str(fit.config.get("method", "a fit")), "rows": rows}
    lines["posterior"] = repr(fit.posterior)
    if "seconds_fit" in fit.timing:
        lines["time"] = f"{plural(int(fit.timing['steps']), 'step')} in {fit.timing['seconds_fit']:.1f} s"
    lines["outcome"] = fit.outcome
    alarms = fit.rings if fit.known is None else fit.known.alarms
    return lines | ({} if alarms is None else {"alarms": plural(len(alarms), "alarm") if alarms else "no alarms"})


def nothing_under_way(fit: Any) -> str:
    """Why a fit without a loop cannot be extended."""
    if isinstance(fit.posterior, Stacked):
        return "A stack has no chains under way: extend the fits that it is made of, and stack them again."
    return "A loaded fit has no chains under way; fit again, or resume from its checkpoint."


def nothing_to_start_from(fit: Any) -> str:
    """Why a fit without a loop has no point to start from."""
    if isinstance(fit.posterior, Stacked):
        return "A stack is of several networks and has no single point; start from one of the fits that it is made of."
    return "A loaded fit has no state to start from; use its posterior's draws as start weights."
