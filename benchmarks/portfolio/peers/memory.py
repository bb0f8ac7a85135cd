"""The most memory that a process has held."""

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_mb() -> float:
    """Megabytes. Linux counts them anew from where a program starts in its file of status; elsewhere, and in
    `getrusage`, what the parent held may be counted, too."""
    if STATUS.is_file():
        lines = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines())
        return float(lines["VmHWM"].split()[0]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, kilobytes elsewhere
