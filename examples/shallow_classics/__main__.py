"""Bayesian networks of one hidden layer on five classic problems, beside NUTS and a Gaussian process.

    python examples/shallow_classics --data-dir DIR --out FOLDER [--quick] [--problems rdata,lynx]

DIR has `neal_fbm/fbm_examples.npz` and `classics/{lynx,sunspot.year,mcycle,galaxies}.csv.gz`. FOLDER gets a picture of
each problem and `scores.md`. `reversible_jump` infers the number of hidden nodes; `gibbs` and `nuts` have a fixed one
and sample the same posterior, which is checked. Prior and likelihood are the same for all three and for all problems,
and nothing was tuned on a row that scores. `--quick` runs short chains on one problem, to see that everything works.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

import jax
from answers import Answer, answer_of
from figures import NAMES, figure_of
from fits import Sampler, samplers
from problems import PROBLEMS, Curve, Series
from scores import page, section

QUICK = ("lynx",)


def answers_of(problem: Curve | Series, settings: dict[str, Sampler]) -> dict[str, Answer]:
    """Every method's answer, one after another."""
    found = {}
    for i, name in enumerate(NAMES):
        began = time.perf_counter()
        found[name] = answer_of(jax.random.key(i), settings.get(name), problem)
        score, seconds = found[name].log_likelihood.mean(), time.perf_counter() - began
        print(f"{problem.name:9} {name:16} log-likelihood {score:8.4f}   {seconds:5.1f} s", flush=True)
    return found


def main(data: Path, out: Path, names: list[str], quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    settings, parts = samplers(quick), []
    for name in names:
        problem = PROBLEMS[name](data)
        answers = answers_of(problem, settings)
        figure_of(problem, answers).savefig(out / f"{name}.png")
        parts.append(section(problem, answers))
        command = shlex.join(["python", "examples/shallow_classics", *sys.argv[1:]])
        (out / "scores.md").write_text(page(command, settings, parts), encoding="utf-8")
    print(out / "scores.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Shallow Bayesian networks on five classic problems.")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="short chains, one problem")
    parser.add_argument("--problems", help=f"some of {','.join(PROBLEMS)}")
    given = parser.parse_args()
    chosen = given.problems.split(",") if given.problems else list(QUICK if given.quick else PROBLEMS)
    unknown = set(chosen) - set(PROBLEMS)
    if unknown:
        parser.error(f"there is no problem {', '.join(sorted(unknown))}; there are {', '.join(PROBLEMS)}")
    main(given.data_dir, given.out, chosen, given.quick)
