"""The machine while a case runs: how fast a matrix product is, and how busy others keep the cores."""

import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CONTENDED_ABOVE = 0.1  # cores used by other processes, on average over the run


def gemm_gflops(seconds: float = 0.25, size: int = 1024) -> float:
    """Rate of a numpy float32 matrix product right now: speed drifts, so every row carries its own."""
    a = np.ones((size, size), np.float32)
    a @ a
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        a @ a
        count += 1
    return 2 * size**3 * count / elapsed / 1e9


def busy_seconds() -> float | None:
    """Core seconds used so far by everything on the machine, stolen time included; None off Linux."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    first = stat.read_text(encoding="utf-8").splitlines()[0]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, first.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Core seconds of this process and of its finished children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


@dataclass
class Watch:
    """Between ``start`` and ``stop``: wall seconds and the cores that other processes took."""

    wall: float
    busy: float | None
    own: float

    @classmethod
    def start(cls) -> "Watch":
        """Begin to watch."""
        return cls(time.perf_counter(), busy_seconds(), own_seconds())

    def stop(self) -> dict[str, Any]:
        """Seconds, ``other_cores`` (None where it cannot be known) and the CONTENDED flag."""
        wall, busy, own = time.perf_counter() - self.wall, busy_seconds(), own_seconds() - self.own
        if self.busy is None or busy is None:
            return {"process_seconds": wall, "other_cores": None, "contended": None}
        other = max(busy - self.busy - own, 0.0) / wall
        return {"process_seconds": wall, "other_cores": other, "contended": other > CONTENDED_ABOVE}


def description() -> dict[str, Any]:
    """Cores, architecture and interpreter, without any name of the machine."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
