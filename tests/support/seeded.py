"""Cases that are made from a seed and run in a process of their own, because one may end it."""

import os
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path


def survivors(module, folder, first, count):
    """Run a module's cases from `first` on; what came of them, or a failure that names the seed and shows its end."""
    command = [sys.executable, str(Path(module.__file__)), str(folder), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    lines = done.stdout.splitlines()
    last = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].startswith("seed ")), 0)
    report = "\n".join(lines[last:])
    assert done.returncode == 0, f"exit code {done.returncode} at\n{report}\n{done.stderr[-2000:]}"
    return Counter(line for line in lines if not line.startswith("seed "))


def main(one):
    """Print each seed before its case and what `one(folder, seed)` says of it; stop at the first exception."""
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for seed in range(first, first + count):
        print(f"seed {seed}", flush=True)
        try:
            print(one(folder, seed), flush=True)
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(1)
