"""How long a fit is said to take, and how long it took."""

import time

from credo.training.clock import COMPILING

ALLOWED = 1.5  # times as long as was said, from where on it is told


class Stopwatch:
    """Seconds since it was made, and those of them that went into compiling."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), COMPILING.seconds

    def read(self) -> dict[str, float]:
        """Seconds in all, and compiling."""
        total = time.perf_counter() - self._began
        return {"seconds_wall": total, "seconds_wall_compile": min(total, COMPILING.seconds - self._compiled)}


def announced(planned: float) -> str:
    """The sentence before a fit.

    Example:
        >>> announced(72.0)
        'Planned: about 72 s on this machine, compiling aside.'
    """
    return f"Planned: about {words(planned)} on this machine, compiling aside."


def words(seconds: float) -> str:
    """Seconds in words.

    Example:
        >>> words(3.21), words(75.4), words(1500)
        ('3.2 s', '75 s', '25 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def took(wall: float, compiling: float, planned: float | None) -> str:
    """The sentence after it.

    Example:
        >>> took(20.0, 12.0, 5.0)
        'It took 20 s: 12 s compiling and 8.0 s of work, where 5.0 s were planned: longer than was said.'
    """
    sentence = f"It took {words(wall)}: {words(compiling)} compiling and {words(wall - compiling)} of work"
    if planned is None:
        return f"{sentence}."
    late = ": longer than was said" if wall - compiling > ALLOWED * planned else ""
    return f"{sentence}, where {words(planned)} were planned{late}."
