"""The time budget of a fit: parsed, and what is left of it."""

import re
import time

from credo.errors import InputError
from credo.training.clock import COMPILING


def seconds(budget: str | float) -> float:
    """Seconds in "90s", "5m", "1.5h" or a number."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|h)?\s*", str(budget))
    try:
        value = float(match[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[match[2]] if match else 0.0
    except ValueError:
        value = 0.0
    if value <= 0:
        raise InputError(f'A budget looks like "60s", "5m" or "1h", got {budget!r}.')
    return value


def left_of(budget: str | float, began: float, compiled: float) -> float:
    """Seconds left of a budget, compilation aside; at least a millisecond, which lets a fit run its first block.

    Args:
        budget: as `seconds` reads it.
        began: `time.perf_counter()` at the start.
        compiled: `COMPILING.seconds` at the start.
    """
    spent = time.perf_counter() - began - (COMPILING.seconds - compiled)
    return max(seconds(budget) - spent, 1e-3)
