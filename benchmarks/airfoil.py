"""Quality against seconds of `ensemble_chains` on the airfoil set: five 80/20 splits, standardised target.

    python benchmarks/airfoil.py --data-dir DIR [--lengths 25,50,100] [--splits 5] [--json FILE]

DIR has `airfoil/airfoil.npz` with `data` [1503, 6], the target in the last column. Split s takes the first 80 % of
`numpy.random.default_rng(s).permutation(1503)` to learn from. Encoding, network, prior and noise are those that a table
gets (`credo.data`, `credo.recipes`), nothing is chosen on test rows. A length n is n steps of warm-up and n draws of
every chain. Seconds are those of the fit on this machine, compilation included. Published for a Bayesian deep ensemble:
RMSE 0.1215, negative log-likelihood −0.91 after 240 s on ten cores.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

import credo
from credo.data.encoder import TableEncoder
from credo.recipes import default_prior, parse_likelihood, parse_network, recipe

METHOD = "ensemble_chains"


def split(data: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Inputs and targets to learn from and to test on, as a table's encoder learns them from the former."""
    order = np.random.default_rng(seed).permutation(len(data))
    table = pd.DataFrame(data, columns=[*"abcde", "y"]).iloc[order].reset_index(drop=True)
    rows, new = table[: int(0.8 * len(data))], table[int(0.8 * len(data)) :]
    encoder = TableEncoder.learn(rows, "y", task="regression")
    return encoder.inputs(rows), encoder.targets(rows), encoder.inputs(new), encoder.targets(new)


def run(data: np.ndarray, seed: int, length: int, size: int, path: int) -> dict[str, Any]:
    """One split: scores and seconds."""
    x, y, new_x, new_y = split(data, seed)
    usual = recipe(METHOD)
    model = credo.Model(
        parse_network(usual.network), default_prior("regression", METHOD), parse_likelihood(usual.likelihood)
    )
    method = credo.methods.EnsembleChains(size=size, warmup=length, num_steps=path)
    began = time.perf_counter()
    fit = credo.fit(jax.random.key(seed), model, (x, y), method, steps=length, progress=False)
    seconds = time.perf_counter() - began
    predictive = credo.predict(jax.random.key(1), fit, new_x)
    return {
        "split": seed, "length": length, "seconds": seconds, "compiling": fit.timing["seconds_compile"],
        "rmse": float(credo.metrics.rmse(predictive, new_y)),
        "nll": -float(credo.metrics.log_likelihood(predictive, new_y)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--lengths", default="25,50,100")
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--path", type=int, default=100, help="integrator steps of a draw, at most")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with np.load(options.data_dir / "airfoil" / "airfoil.npz", allow_pickle=False) as file:
        data = file["data"]
    found = []
    for length in map(int, options.lengths.split(",")):
        rows = [run(data, seed, length, options.size, options.path) for seed in range(options.splits)]
        found += rows
        mean = {name: np.mean([row[name] for row in rows]) for name in ("rmse", "nll", "seconds", "compiling")}
        error = np.std([row["nll"] for row in rows]) / np.sqrt(len(rows))
        print(
            f"length {length:4d}: RMSE {mean['rmse']:.4f}  NLL {mean['nll']:.3f} ± {error:.3f}  "
            f"{mean['seconds']:.0f} s ({mean['compiling']:.0f} s compiling), {options.splits} splits, "
            f"{options.size} chains, paths of {options.path}",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
