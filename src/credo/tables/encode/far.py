"""Targets that lie so far from all others that scale and error bars would be about them alone."""

from __future__ import annotations

import numpy as np

from credo.errors import InputError

FAR = 1000.0  # times the distance from the median within which half of the values lie
SMALLEST, LARGEST = 1e-150, 1e150  # of a standard deviation: squares of others leave the range of float64


def far_note(name: str, values: np.ndarray) -> str:
    """A sentence on values that are FAR from the median; empty where there are none.

    Example:
        >>> far_note("y", np.array([1.0, 2.0, 3.0, 4.0])), far_note("y", np.array([1.0, 2.0, 3.0, 1e6]))[:40]
        ('', "1 value of the target 'y' lies more than")
    """
    middle = float(np.median(values))
    distance = np.abs(values / 2 - middle / 2)  # half of it, which cannot overflow
    typical = float(np.median(distance))
    far = distance > FAR * typical
    if typical <= 0 or not far.any():
        return ""
    count, worst = int(far.sum()), values[int(distance.argmax())]
    head = f"1 value of the target '{name}' lies" if count == 1 else f"{count} values of the target '{name}' lie"
    return (
        f"{head} more than {FAR:,.0f} times as far from the median {middle:g} as half of the rows, the farthest at "
        f"{worst:g}: the scale of everything is that of such rows; correct or remove them, or learn the logarithm."
    )


def check_scale(name: str, scale: float) -> None:
    """Raise a sentence where a target is so large or small that its variance has no number."""
    if SMALLEST < scale < LARGEST:
        return
    action = "divide" if scale >= LARGEST else "multiply"
    raise InputError(
        f"The target '{name}' varies by about {scale:.0e}, and the square of that is beyond what float64 holds; "
        f"{action} the column by a power of ten."
    )
