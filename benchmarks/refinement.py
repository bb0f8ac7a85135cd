"""What T steps of a learned sampler add to variational inference: bounds, distances to the truth and seconds (F1).

    python -m benchmarks.refinement [--steps 0,1,5,10] [--samplers hamiltonian] [--problems funnel,mixture,…]

The densities have integral 1, so their log evidence is 0; that of `bimodal` is by quadrature, that of networks is not
known. Distances: for densities the mean over coordinates of the Wasserstein distance to exact draws in units of their
standard deviation; for networks `w1_function` of the audit. "chain" is T → ∞ after the largest T.
"""

import argparse
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import credo
from credo.evaluation.audit import measures
from credo.evaluation.audit.problems import problems as audit_problems

NORM = jax.scipy.stats.norm.logpdf
CENTRES = 2.0 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)


def funnel(x):
    """Neal's funnel in three dimensions: v ~ N(0, 1.5²), x_i | v ~ N(0, e^v)."""
    return NORM(x[0], 0, 1.5) + NORM(x[1:], 0, jnp.exp(x[0] / 2)).sum()


def mixture(x):
    """Four Gaussians in the plane, of standard deviation 0.7 and 2 away from the origin."""
    each = jax.vmap(lambda c: NORM(x, c, 0.7).sum())(jnp.asarray(CENTRES))
    return jax.scipy.special.logsumexp(each) - jnp.log(4.0)


def exact_draws(name: str, num: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(1)
    if name == "mixture":
        return CENTRES[rng.integers(0, 4, num)] + 0.7 * rng.normal(size=(num, 2))
    v = 1.5 * rng.normal(size=num)
    return np.column_stack([v, np.exp(v / 2)[:, None] * rng.normal(size=(num, 2))])


def bimodal_log_evidence() -> float:
    problem = audit_problems()["bimodal"]
    inputs, targets = (np.asarray(a, np.float64) for a in problem.data)
    weight = np.linspace(-8, 8, 20_001)
    log_joint = stats.norm.logpdf(weight, 0, 1.5)
    log_joint += stats.norm.logpdf(targets, weight[:, None] ** 2 * inputs[:, 0], 1.0).sum(1)
    return float(special.logsumexp(log_joint) + np.log(weight[1] - weight[0]))


def distance(draws: np.ndarray, truth: np.ndarray) -> float:
    each = [stats.wasserstein_distance(a, b) / b.std() for a, b in zip(draws.T, truth.T)]
    return float(np.mean(each))


def one(name: str, method: credo.methods.VIS, draws: int, seed: int) -> dict:
    problem = audit_problems().get(name)
    if problem is None:
        model = credo.from_density({"funnel": funnel, "mixture": mixture}[name], np.zeros(3 if name == "funnel" else 2))
        data = model.data
    else:
        model, data = problem.model, problem.data
    began = time.perf_counter()
    fit = credo.fit(jax.random.key(seed), model, data, method, steps=draws, progress=False)
    seconds = time.perf_counter() - began
    bound = np.asarray(fit.phases["bound"]["bound"], np.float64)
    best = bound[bound.mean(1).argmax()]
    if problem is None:
        theta = np.asarray(fit.posterior.params["network"]["theta"])
        distances = {"distance": distance(theta.reshape(-1, theta.shape[-1]), exact_draws(name))}
    else:
        measured = measures.measure(jax.random.key(seed + 1), fit, problem)
        distances = {"distance": measured["w1_function"], "std_ratio": measured["std_ratio"]}
    log_evidence = {"funnel": 0.0, "mixture": 0.0}.get(name, bimodal_log_evidence() if name == "bimodal" else None)
    return {
        "problem": name, "sampler": method.sampler, "T": method.refinement, "inference": method.inference,
        "bound": float(best.mean()), "bound_error": float(best.std() / np.sqrt(len(best))),
        "members": bound.mean(1).tolist(), "log_evidence": log_evidence, **distances,
        "seconds_run": fit.timing["seconds_run"], "seconds_compile": fit.timing["seconds_compile"], "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", default="0,1,5,10")
    parser.add_argument("--samplers", default="hamiltonian")
    parser.add_argument("--problems", default="funnel,mixture,bimodal,tanh_network")
    parser.add_argument("--learning-steps", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write all numbers to this file")
    args = parser.parse_args()
    rows = []
    print("| problem | sampler | T | bound | log evidence | distance | run s | compile s |")
    print("|---|---|---|---|---|---|---|---|")
    counts = [int(t) for t in args.steps.split(",")]
    for name in args.problems.split(","):
        # Where there are several modes a narrow start would choose one before the steps could reach the others.
        wide = {"funnel": 0.5, "mixture": 0.5, "bimodal": 1.0}
        start = {"initial_std": wide[name], "num_samples": 16} if name in wide else {"num_samples": 8}
        if name == "bimodal":  # −log p grows as θ⁴: steps that suit the modes would overflow in the tails of q_0
            start["refined_step"] = 0.05
        for sampler in args.samplers.split(","):
            for steps, inference in [*((t, "refined") for t in counts), (max(counts), "chain")]:
                method = credo.methods.VIS(
                    refinement=steps, sampler=sampler, inference=inference, learning_steps=args.learning_steps,
                    learning_rate=0.01, bound_draws=2000, **start,
                )  # fmt: skip
                row = one(name, method, args.draws, args.seed)
                rows.append(row)
                truth = "unknown" if row["log_evidence"] is None else f"{row['log_evidence']:.3f}"
                label = str(steps) if inference == "refined" else f"{steps} → ∞ (chain)"
                print(
                    f"| {name} | {sampler} | {label} | {row['bound']:.3f} ± {row['bound_error']:.3f} | {truth} | "
                    f"{row['distance']:.3f} | {row['seconds_run']:.1f} | {row['seconds_compile']:.1f} |", flush=True,
                )  # fmt: skip
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"command": " ".join(sys.argv), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
