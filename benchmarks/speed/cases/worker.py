"""Entry point of a case's process: ``python -m cases.worker MODULE FUNCTION OPTIONS --seed 0 --out FOLDER``."""

import argparse
import importlib
import importlib.metadata
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from cases import measure, problems

PACKAGES = ("credo", "jax", "jaxlib", "numpyro", "blackjax", "optax", "torch", "pyro-ppl", "numpy")


def versions() -> dict[str, str]:
    """Installed versions of the packages that can matter here."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def main() -> None:
    """Run one case and leave ``result.json`` (and ``function_draws.npy``) in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("function")
    parser.add_argument("options", type=json.loads)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    sizes = problems.Sizes().quick() if args.quick else problems.Sizes()
    function = getattr(importlib.import_module(f"cases.{args.module}"), args.function)
    result: measure.Measured = function(args.seed, sizes, **args.options)
    record = asdict(result) | {"versions": versions(), "peak_rss_mb": measure.peak_rss_mb()}
    draws = record.pop("function_draws")
    if draws is not None:
        np.save(args.out / "function_draws.npy", np.asarray(draws))
    if not all(math.isfinite(v) for v in result.values):
        sys.exit("a timed value is not finite")
    (args.out / "result.json").write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main()
