"""How many draws, rows and points effects are computed from, where nobody says: the same wherever they are shown."""

import math
from typing import Any, NamedTuple

from credo.applications.effects.grid import MOST_POINTS
from credo.evaluation.diagnostics.weights import num_parameters

DRAWS, ROWS = 100, 200
WORK = 2e10  # parameters × network evaluations, about two seconds on a processor
LEAST = 0.03  # of `WORK` over what there is to do, below which curves would be too rough


class Effort(NamedTuple):
    """`share`: how much of the full computation fits into `WORK`; below `LEAST` it takes longer."""

    draws: int
    rows: int
    points: int
    share: float


def effort_for(fit: Any, num_inputs: int) -> Effort:
    """The effort for the effects of so many inputs.

    Args:
        fit: whose network is evaluated.
        num_inputs: how many curves.
    """
    full = DRAWS * ROWS * MOST_POINTS * max(1, num_inputs) * (num_parameters(fit) or 1)
    share = min(1.0, WORK / full)
    paid = max(share, LEAST)
    # Rows are averaged over, so fewer of them cost the least; draws make the ends of intervals.
    return Effort(
        math.ceil(DRAWS * paid**0.25), math.ceil(ROWS * paid**0.5), math.ceil(MOST_POINTS * paid**0.25), share
    )
