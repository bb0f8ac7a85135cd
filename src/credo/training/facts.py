"""What a fit says of itself on one line."""

from typing import Any

from credo.core.short import some


def facts(fit: Any) -> dict[str, str]:
    """Method, rows, posterior, time and outcome; alarms where somebody looked for them, since looking takes time.

    Args:
        fit: a `credo.Fit`.
    """
    told = {"method": str(fit.config.get("method", "a fit")), "rows": some(int(fit.config.get("num_data", 0)), "row")}
    told["posterior"] = repr(fit.posterior)
    if "seconds_fit" in fit.timing:
        told["time"] = f"{some(int(fit.timing['steps']), 'step')} in {fit.timing['seconds_fit']:.1f} s"
    told["outcome"] = fit.outcome
    alarms = fit.rings if fit.known is None else fit.known.alarms
    return told | ({} if alarms is None else {"alarms": some(len(alarms), "alarm") if alarms else "no alarms"})
