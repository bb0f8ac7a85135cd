"""Diagnostics of a stack: those of its parts, each labelled by its name."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from credo.core.capabilities import StoredPosterior, ask
from credo.evaluation.diagnostics.alarms import Alarm

CONVERGENCE, MOVES = ("modes", "unconverged", "low_ess"), 0.1
SILENT = 0.01  # of a stack: a part of less weight leaves no trace in predictions


def heard_parts(fit: Any) -> list[Any]:
    """The parts of a stack that have weight enough to be judged; none of a fit that is no stack, or was loaded."""
    return [share for share in fit.parts if share.weight >= SILENT]


def alarms_of_parts(shares: Sequence[Any]) -> tuple[Alarm, ...]:
    """What speaks against each of the parts.

    That chains differ or drift is no alarm where another run of them would move the predictions of the whole stack by
    less than `MOVES` of their standard deviation (`movement`).
    """
    return tuple(named(alarm, share) for share in shares for alarm in heard_alarms(share, share.fit.alarms))


def heard_alarms(share: Any, alarms: Sequence[Alarm]) -> list[Alarm]:
    """Those of a part's alarms that concern the stack."""
    from credo.evaluation.diagnostics.movement import movement
    from credo.evaluation.diagnostics.probe import training_inputs

    if not any(alarm.id in CONVERGENCE for alarm in alarms) or ask(share.fit.posterior, StoredPosterior).on_disk:
        return list(alarms)
    inputs = training_inputs(share.fit)
    if inputs is None or share.weight * movement(share.fit, inputs) > MOVES:
        return list(alarms)
    return [alarm for alarm in alarms if alarm.id not in CONVERGENCE]


def named(alarm: Alarm, share: Any) -> Alarm:
    """The alarm of a part, with the part's name and weight.

    Example:
        >>> from types import SimpleNamespace
        >>> print(named(Alarm("modes", "Chains disagree", "run more"), SimpleNamespace(name="nuts", weight=0.25)))
        nuts (25 % of the stack): Chains disagree; run more.
    """
    return dataclasses.replace(alarm, found=f"{share.name} ({100 * share.weight:.0f} % of the stack): {alarm.found}")
