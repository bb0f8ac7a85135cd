"""Diagnostics of a stack: those of its parts, each labelled by its name."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from credo.evaluation.diagnostics.alarms import Alarm

SILENT = 0.01  # of a stack: a part of less weight leaves no trace in predictions


def heard_parts(fit: Any) -> list[Any]:
    """The parts of a stack that have weight enough to be judged; none of a fit that is no stack, or was loaded."""
    return [share for share in fit.parts if share.weight >= SILENT]


def alarms_of_parts(shares: Sequence[Any]) -> tuple[Alarm, ...]:
    """What speaks against each of the parts."""
    return tuple(named(alarm, share) for share in shares for alarm in share.fit.alarms)


def named(alarm: Alarm, share: Any) -> Alarm:
    """The alarm of a part, with the part's name and weight.

    Example:
        >>> from types import SimpleNamespace
        >>> print(named(Alarm("modes", "Chains disagree", "run more"), SimpleNamespace(name="nuts", weight=0.25)))
        nuts (25 % of the stack): Chains disagree; run more.
    """
    return dataclasses.replace(alarm, found=f"{share.name} ({100 * share.weight:.0f} % of the stack): {alarm.found}")
