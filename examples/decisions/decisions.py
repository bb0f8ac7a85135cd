"""Decisions by a posterior and by a point: when to operate, release or refer, and how much to order.

    python examples/decisions/decisions.py --out FOLDER [--splits 20] [--quick]

FOLDER gets `decisions.md` and `decisions.png`.

*Tumours.* 569 breast masses with 30 measurements of their cells (Wolberg, Street and Mangasarian, 1995; UCI, CC BY 4.0,
shipped with scikit-learn). Utilities: to release a patient with cancer costs 20, to operate on a healthy one 1, to
refer to a doctor, who finds out, 0.2.

*Orders.* The bundled diabetes table, 442 patients. A resource is ordered for the progression of each, in its units:
each unit too few costs 3, each too many 1.

Each split trains on a random half (of each class) and decides for the other. Rules:

    point            the best action if the most likely class (or the mean) of `map` were sure
    map              largest expected utility under the probabilities of `map`: the same network, utility and rule
    linear           the same for a linear model of the inputs, by `map`
    others           largest expected utility under the posterior of that method

Network, prior and steps are the same for all rules: one layer of 16, weights N(0, 1) for tumours and credo's default
for tables (fan-in normal, scale 2) for orders, where N(0, 1) was tried first. `map` overfits the orders under both;
`linear` is the stronger baseline there. "Own point" is the best action if the method's own mean were sure: what is
gained over it is gained by deciding, not by predicting better.
Intervals are bootstraps of the paired gain: over splits, and over patients (a patient's gain is the mean over the
splits that tested them), because splits share patients.
"""

import argparse
import time
from importlib.resources import files
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

import credo
from credo.applications import class_utility, newsvendor
from credo.report.style import CYCLE, INK, MUTED, dress

ACTIONS, CLASSES = ("release", "operate"), ("benign", "malignant")
MISSES, REFER = (10.0, 20.0, 50.0), 0.2
MAIN = 20.0
UNDER, OVER = 3.0, 1.0
POINT, PLAIN, LINEAR = "point", "map", "linear"


def methods(quick: bool) -> dict[str, tuple]:
    """Name → (method, steps)."""
    scale = 10 if quick else 1
    return {
        PLAIN: (credo.methods.MAP(), 2000 // scale),
        LINEAR: (credo.methods.MAP(), 2000 // scale),
        "deep_ensemble": (credo.methods.DeepEnsemble(size=10), 2000 // scale),
        "bayes_by_backprop": (credo.methods.BayesByBackprop(), 4000 // scale),
        "laplace": (credo.methods.Laplace(), 2000 // scale),
        "hmc": (credo.methods.HMC(num_steps=20, warmup=300 // scale, chains=2), 500 // scale),
    }


def tumours() -> tuple[np.ndarray, np.ndarray]:
    found = load_breast_cancer()
    return found.data, 1 - found.target  # 1 is malignant


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(str(files("credo.tables") / "bundled" / "diabetes.csv"))
    frame["sex"] = (frame["sex"] == "A").astype(float)
    return frame.drop(columns="progression").to_numpy(float), frame["progression"].to_numpy(float)


def predictives(seed: int, x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, quick: bool):
    """Each method's predictive distribution at the test rows, on the scale of the targets."""
    inputs = ((x - x[train].mean(0)) / x[train].std(0)).astype(np.float32)
    real = y.dtype.kind == "f"
    shift, scale = (y[train].mean(), y[train].std()) if real else (0, 1)
    likelihood = credo.likelihoods.gaussian() if real else credo.likelihoods.bernoulli()
    prior = credo.priors.fan_in_normal(2.0) if real else credo.priors.normal(1.0)
    targets = (y[train] - shift) / scale if real else y[train]
    for name, (method, steps) in methods(quick).items():
        network = credo.networks.mlp([] if name == LINEAR else [16], activation="tanh")
        model = credo.Model(network, prior, likelihood)
        fit = credo.fit(jax.random.key(seed), model, (inputs[train], targets), method, steps=steps, progress=False)
        made = credo.predict(
            jax.random.key(1000 + seed), fit, inputs[test], num_samples=400 if name not in (PLAIN, LINEAR) else None
        )
        yield name, made.rescaled(shift, scale) if real else made


def tumour_utility(miss: float):
    return class_utility([[0.0, -miss], [-1.0, 0.0]], ACTIONS, CLASSES)


def run(problem: str, splits: int, quick: bool) -> dict[tuple, np.ndarray]:
    """(rule, cost of a miss, referral) → realised utility [split, patient], NaN where a patient was not tested."""
    x, y = tumours() if problem == "tumours" else diabetes()
    splitter = StratifiedShuffleSplit if problem == "tumours" else ShuffleSplit
    table: dict[tuple, np.ndarray] = {}

    def put(rule: tuple, split: int, test: np.ndarray, values: np.ndarray) -> None:
        table.setdefault(rule, np.full((splits, len(y)), np.nan))[split, test] = values

    for split, (train, test) in enumerate(splitter(splits, train_size=0.5, random_state=0).split(x, y)):
        start = time.time()
        for name, predictive in predictives(split, x, y, train, test, quick):
            kinds = [(m, r) for m in MISSES for r in (True, False)] if problem == "tumours" else [(UNDER, False)]
            for cost, refer in kinds:
                worth = tumour_utility(cost) if problem == "tumours" else newsvendor(UNDER, OVER)
                found = credo.decide(predictive, worth, abstain=REFER if refer else None)
                put((name, cost, refer), split, test, found.realised(y[test]))
                point = POINT if name == PLAIN else f"point of {name}"
                put((point, cost, refer), split, test, found.realised(y[test], plug_in=True))
                put(("referred " + name, cost, refer), split, test, (found.action == "abstain").astype(float))
        print(f"{problem}: split {split + 1} of {splits}, {time.time() - start:.0f} s", flush=True)
    return table


def gain(first: np.ndarray, second: np.ndarray) -> tuple[float, tuple, tuple]:
    """Mean gain a patient, with 95 % bootstrap intervals over splits and over patients."""
    gap = first - second
    tested = np.isfinite(gap).any(0)
    by_split, by_patient = np.nanmean(gap, 1), np.nanmean(gap[:, tested], 0)
    ends = []
    for values in (by_split, by_patient):
        picks = np.random.default_rng(0).integers(len(values), size=(10_000, len(values)))
        ends.append(tuple(np.quantile(values[picks].mean(1), (0.025, 0.975))))
    return float(by_split.mean()), *ends


def in_words(found: tuple[float, tuple, tuple], digits: int) -> str:
    """A gain and its two intervals."""
    ends = "; ".join(f"{low:+.{digits}f} to {high:+.{digits}f}" for low, high in found[1:])
    return f"{found[0]:+.{digits}f} ({ends})"


def lines_of(table: dict, cost: float, refer: bool, digits: int) -> list[str]:
    """Rows of Markdown: each rule, its utility and its gains over both baselines."""
    lines = []
    for rule in (POINT, *methods(True)):
        own = table[(rule, cost, refer)]
        cells = [rule if rule in (POINT, LINEAR) else f"`{rule}`", f"{np.nanmean(own):.{digits}f}"]
        for base in (f"point of {rule}", POINT, PLAIN, LINEAR):
            other = table.get((POINT if base == f"point of {PLAIN}" else base, cost, refer))
            same = other is None or rule == base or (rule == POINT and base != PLAIN and base != LINEAR)
            cells.append("–" if same else in_words(gain(own, other), digits))
        if refer:
            cells.append("–" if rule == POINT else f"{np.nanmean(table[('referred ' + rule, cost, refer)]):.0%}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def page(command: str, first: dict, second: dict, splits: int) -> str:
    head = "utility a patient | gain over its own point (splits; patients) | over the point of `map` | over `map` | "
    head += "over linear"
    lines = [
        "# Decisions\n",
        f"`{command}` on {jax.default_backend().upper()}; {splits} splits. What everything means is said at the "
        "head of `decisions.py`; intervals are 95 %.\n",
        f"## Tumours: a miss costs {MAIN:g}, a false alarm 1, a referral {REFER:g}\n",
        f"| rule | {head} | referred |",
        "|---|---|---|---|---|---|---|",
        *lines_of(first, MAIN, True, 3),
        "\n## The same for other costs: gain of `hmc` (utility a patient; splits; patients)\n",
        "| a miss costs | referral | `hmc` | over the point of `map` | over `map` | over linear |",
        "|---|---|---|---|---|---|",
    ]
    for cost in MISSES:
        for refer in (True, False):
            own = first[("hmc", cost, refer)]
            cells = [f"{cost:g}", f"at {REFER:g}" if refer else "not allowed", f"{np.nanmean(own):.3f}"]
            cells += [in_words(gain(own, first[(base, cost, refer)]), 3) for base in (POINT, PLAIN, LINEAR)]
            lines.append("| " + " | ".join(cells) + " |")
    lines += [
        f"\n## Orders: too few cost {UNDER:g} a unit, too many {OVER:g}\n",
        f"| rule | {head} |",
        "|---|---|---|---|---|---|",
        *lines_of(second, UNDER, False, 2),
    ]
    return "\n".join(lines) + "\n"


def picture(first: dict, second: dict) -> Figure:
    """Cost a patient of every rule: a dot for each split, a bar at the mean."""
    figure = Figure(figsize=(11.6, 4.4), dpi=110, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.15)
    areas = figure.subplots(1, 2)
    panels = [
        (areas[0], first, MAIN, True, f"Tumours: miss {MAIN:g}, false alarm 1, referral {REFER:g}"),
        (areas[1], second, UNDER, False, f"Orders: too few {UNDER:g}, too many {OVER:g} a unit"),
    ]
    rules = (POINT, *methods(True))
    for area, table, cost, refer, title in panels:
        dress(area, title, "cost a patient, by split (bar: mean); less is better", "")
        for i, (rule, colour) in enumerate(zip(rules, (MUTED, *CYCLE))):
            values = -np.nanmean(table[(rule, cost, refer)], 1)
            wiggle = i + np.linspace(-0.22, 0.22, len(values))
            area.plot(values, wiggle, "o", color=colour, ms=4.5, alpha=0.7, mew=0)
            area.plot([values.mean()] * 2, [i - 0.34, i + 0.34], color=INK, lw=2)
        area.set_yticks(range(len(rules)), rules)
        area.set_ylim(len(rules) - 0.5, -0.5)
        area.grid(False, axis="y")
    return figure


def main(out: Path, splits: int, quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    first, second = run("tumours", splits, quick), run("orders", splits, quick)
    command = "python examples/decisions/decisions.py --out FOLDER" + f" --splits {splits}" + " --quick" * quick
    (out / "decisions.md").write_text(page(command, first, second, splits), encoding="utf-8")
    picture(first, second).savefig(out / "decisions.png")
    print(out / "decisions.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Decisions by a posterior and by a point.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="short fits, to see that everything works")
    given = parser.parse_args()
    main(given.out, given.splits, given.quick)
