"""In-between uncertainty: mean field over weights against inference over functions, on the audit's gap problem (F2).

    python -m benchmarks.function_space [--steps 8000] [--json FILE]

std_ratio in the gap is the posterior standard deviation of functions between two clusters of data over the true one
(long chains): 1 is right, less is too sure. "regret" is the mean loss of log score against the truth, in nats.
"""

import argparse
import json
import sys

import jax

import credo
from credo.evaluation.audit.measures import measure
from credo.evaluation.audit.problems import problems

VI, FS = credo.methods.BayesByBackprop, credo.methods.FunctionSpaceVI
MATERN = credo.function_space.matern52(1.0, 1.0)


def methods() -> dict:
    few = {"num_samples": 8, "points": 15, "rows": 30, "prior_draws": 200}
    return {
        "weights, mean field": VI(num_samples=8),
        "weights, full covariance": VI(num_samples=8, family="full"),
        "functions, network prior, linearised, full": FS(family="full", **few),
        "functions, network prior, spectral, mean field": FS(family="mean_field", divergence="spectral", **few),
        "functions, network prior, spectral, full": FS(family="full", divergence="spectral", **few),
        "functions, Matérn prior, linearised, full": FS(family="full", kernel=MATERN, **few),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write all numbers to this file")
    args = parser.parse_args()
    problem, rows = problems()["gap"], []
    print("| divergence over | std ratio in the gap | everywhere | mean error | regret | run s | compile s |")
    print("|---|---|---|---|---|---|---|")
    for name, method in methods().items():
        key = jax.random.key(args.seed)
        fit = credo.fit(key, problem.model, problem.data, method, steps=args.steps, progress=False)
        measured = measure(jax.random.fold_in(key, 1), fit, problem) | fit.timing
        rows.append({"name": name, **measured})
        numbers = " | ".join(f"{measured[k]:.2f}" for k in ("std_ratio_gap", "std_ratio", "mean_error", "regret"))
        print(f"| {name} | {numbers} | {measured['seconds_run']:.0f} | {measured['seconds_compile']:.0f} |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"command": " ".join(sys.argv), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
