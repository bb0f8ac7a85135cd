"""credo's process: `python -m benchmarks.portfolio.credo_worker FOLDER`.

It reads what rivals read, and the truth when it has predicted.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.portfolio.peers.memory import peak_mb

TARGET = "the target"


def main(folder: Path) -> int:
    """Fit, predict, score, and leave `rows.npz` and `times.json`."""
    import credo
    from benchmarks.portfolio import scores

    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    y, new = np.load(folder / "targets.npy", allow_pickle=False), pd.read_parquet(folder / "new.parquet")
    numbers = facts["task"] == "regression"
    labels = y if numbers else [f"class {int(code)}" for code in y]
    frame = pd.read_parquet(folder / "train.parquet").assign(**{TARGET: labels})
    began = time.perf_counter()
    run = credo.tables.fit(
        frame, target=TARGET, task=facts["task"], seed=facts["seed"], progress=False, **facts["options"]
    )
    predictive = run.predictive(new)
    first = (predictive.mean, predictive.std) if numbers else (predictive.probs,)
    times = {"work": time.perf_counter() - began, "done": time.time(), "peak_mb": peak_mb(), "why": run.why}
    truth = np.load(folder / "truth.npy", allow_pickle=False)
    rows = scores.of_numbers(predictive, truth) if numbers else scores.of_classes(_ordered(run, first[0]), truth)
    np.savez(folder / "rows.npz", **rows)
    status = {"status": str(run.status), "versions": {"credo": credo.__version__}}
    (folder / "times.json").write_text(json.dumps(times | status), encoding="utf-8")
    return 0


def _ordered(run: Any, probs: np.ndarray) -> np.ndarray:
    codes = [int(str(label).removeprefix("class ")) for label in run.encoder.classes]
    ordered = np.zeros((len(probs), max(codes) + 1))
    ordered[:, codes] = probs
    return ordered


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
