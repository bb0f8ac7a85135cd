"""After the pilot: what is left of a budget, and the chains that it still allows."""

from __future__ import annotations

from credo.tables.auto.choice import BEFORE, LEAST_START, SHORTEST, START_STEPS, Choice
from credo.tables.auto.speed import Speed

SPARE = 0.95  # of what is left, that is planned with
FIXED = 0.5  # seconds of a pilot that do not depend on the speed of gradients


def pace(spent: float, planned: float) -> float:
    """How many times as long as planned the pilot took: other programs may run beside it by now.

    Example:
        >>> pace(4.5, 2.0), pace(1.0, 2.0)
        (2.0, 1.0)
    """
    return max(1.0, (spent - FIXED) / planned) if planned > 0 else 1.0


def shortened(choice: Choice, speed: Speed, left: float, slower: float = 1.0) -> Choice | None:
    """The choice with chains as long as what is left allows; None where that is too short for chains.

    L steps of warm-up and L draws, of at most L gradients each, take 2 L² gradients of all chains.

    Args:
        choice: of chains, as it was planned.
        speed: of this machine, before the pilot.
        left: seconds of the budget.
        slower: how many times as long a gradient takes by now.
    """
    planned = choice.settings.get("longest", START_STEPS)
    for start in dict.fromkeys((planned, LEAST_START)):
        before = min(start * speed.batch * slower, BEFORE * left)
        room = max(SPARE * left - before, 0.0)
        length = int(min(choice.steps, (room / (2 * speed.full * slower)) ** 0.5))
        if length >= SHORTEST:
            break
    else:
        return None
    if length == choice.steps:
        return choice
    settings = choice.settings | {"warmup": length, "num_steps": length}
    settings |= {} if start == START_STEPS else {"longest": start}
    return choice._replace(
        settings=settings,
        steps=length,
        why=f"{choice.why} The pilot took longer than planned, so each chain has {length} draws.",
    )
