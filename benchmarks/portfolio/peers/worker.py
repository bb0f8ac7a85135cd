"""Entry point of a rival's process: `python -m benchmarks.portfolio.peers.worker MODULE FUNCTION FOLDER`."""

import importlib
import importlib.metadata
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.portfolio.peers.memory import peak_mb
from benchmarks.portfolio.peers.split import read

PACKAGES = ("catboost", "lightgbm", "xgboost", "ngboost", "scikit-learn", "pytabkit", "torch", "tabpfn")


def main() -> int:
    """Fit, predict, and leave `answer.npz` and `times.json` in the folder."""
    module, function, path = sys.argv[1:]
    folder = Path(path)
    fit = getattr(importlib.import_module(f"benchmarks.portfolio.peers.{module}"), function)
    split = read(folder)
    began = time.perf_counter()
    answer = fit(split)
    work, done = time.perf_counter() - began, time.time()
    np.savez(folder / "answer.npz", **answer)
    facts = {"work": work, "done": done, "peak_mb": peak_mb(), "versions": versions()}
    if "took" in answer:
        facts["took"] = int(answer["took"])
    (folder / "times.json").write_text(json.dumps(facts), encoding="utf-8")
    return 0


def versions() -> dict[str, str]:
    """Of the packages that were imported."""
    installed = {}
    for name in PACKAGES:
        if name.replace("scikit-learn", "sklearn") in sys.modules:
            try:
                installed[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                installed[name] = "0.1"
    return installed


if __name__ == "__main__":
    sys.exit(main())
