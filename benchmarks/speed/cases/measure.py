"""Timing inside a case's own process. Every timed function must block until its results are ready."""

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


@dataclass
class Measured:
    """What a case hands back: values in the case's unit, compilation apart; no values = too short to tell."""

    values: list[float]
    run_seconds: float | None  # median seconds of one timed run, compilation left out
    compile_seconds: float  # set-up, tracing and compilation of the first (or, if it repeats, of every) call
    cold_value: float | None = None  # the value with compilation counted
    facts: dict[str, Any] = field(default_factory=dict)
    function_draws: np.ndarray | None = None  # f(x) as [chain, draw, point]; the parent computes the ESS


def seconds(run: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def steady(run: Callable[[], object], work: float, repeats: int) -> Measured:
    """First call apart (it compiles), then ``repeats`` timed calls; values are ``work`` per second."""
    first = seconds(run)
    timed = [seconds(run) for _ in range(repeats)]
    typical = statistics.median(timed)
    return Measured(
        values=[work / t for t in timed],
        run_seconds=typical,
        compile_seconds=max(first - typical, 0.0),
        cold_value=work / first,
    )


def beyond(longs: list[float], shorts: list[float]) -> list[float]:
    """Seconds of each long call beyond a typical short one; empty when noise hides the difference.

    Dropping only the negative differences would flatter the rest, so one of them voids all.
    """
    fixed = statistics.median(shorts)
    runs = [t - fixed for t in longs]
    return runs if min(runs) > 0 else []


def by_difference(short: Callable[[], object], long: Callable[[], object], work: float, repeats: int) -> Measured:
    """For libraries that compile or set up at each call: seconds of a long call less those of a short one.

    ``work`` is what the long call does beyond the short one. The short call is the cost paid every time.
    """
    short()
    long()
    pairs = [(seconds(short), seconds(long)) for _ in range(repeats)]
    shorts, longs = ([p[i] for p in pairs] for i in (0, 1))
    runs = beyond(longs, shorts)
    return Measured(
        values=[work / r for r in runs],
        run_seconds=statistics.median(runs) if runs else None,
        compile_seconds=statistics.median(shorts),
        cold_value=work / statistics.median(longs),
        facts={"compile": "paid at every call"},
    )


class Compilations:
    """Counts XLA compilations while used as a context."""

    def __init__(self) -> None:
        import jax

        self.count = 0
        self._open = False
        jax.monitoring.register_event_duration_secs_listener(self._seen)

    def _seen(self, event: str, duration_secs: float, **_: object) -> None:
        if self._open and event == COMPILE_EVENT:
            self.count += 1

    def __enter__(self) -> "Compilations":
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False


def peak_rss_mb() -> float:
    """Largest resident memory of this process so far, in units of a million bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def require_finite(name: str, values: Any) -> np.ndarray:
    """The array, or an error when any entry is not finite: a broken run must not count as a fast one."""
    array = np.asarray(values, np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise AssertionError(f"{name}: {array.size} values, of which {np.isfinite(array).sum()} are finite")
    return array
