"""Attacked and foreign images: which Bayesian networks notice them, and how often.

    python -m benchmarks.detection --data-dir DIR [--data mnist] [--models deterministic,mfvi] [--seeds 5] --folder OUT

LeNet-5 is trained on MNIST or Fashion-MNIST under each method. Three tables follow: accuracy and negative
log-likelihood; AUROC of each score against images of another data set; and the detection of FGSM and PGD at several
sizes, each made through the attacked model's own Monte-Carlo predictive, where only successful attacks count.
Thresholds have FPR ≤ 5 % on the last 10,000 training rows, which no model is trained on; rates are those of the test
rows, of which the first --attacked are attacked. With `--validation` no test row is looked at: one half of the last
training rows fixes thresholds and the other is scored. Means are over seeds, wins, ties and losses against the first
model by a paired bootstrap over images in each seed. DIR holds mnist/mnist.npz, fashion_mnist/fashion_mnist.npz and
notmnist/notmnist_test.npz. Fits and scores go to --folder: a run that was stopped goes on.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

import credo
from credo.applications import detection
from credo.report.detection import gallery

HELD = 10_000
OTHERS = {"mnist": ("fashion_mnist", "notmnist"), "fashion_mnist": ("mnist",)}
SCORES = ("entropy", "conditional_entropy", "mutual_information", "max_probability")


class Data(NamedTuple):
    """Images [n, 28, 28, 1] with pixels in [0, 1]."""

    x: np.ndarray
    y: np.ndarray
    held: np.ndarray
    test: np.ndarray
    test_y: np.ndarray
    others: dict[str, np.ndarray]


def scaled(images: np.ndarray) -> np.ndarray:
    """Pixels as numbers in [0, 1], with one channel."""
    return (images.astype(np.float32) / 255)[..., None]


def read(folder: str, name: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of one part of a data set."""
    path = Path(folder) / name / ("notmnist_test.npz" if name == "notmnist" else f"{name}.npz")
    if not path.exists():
        raise SystemExit(f"There is no {path}.")
    with np.load(path, allow_pickle=False) as data:
        return scaled(data[f"x_{part}"]), data[f"y_{part}"].astype(int)


def load(options: argparse.Namespace) -> Data:
    """Training rows, clean rows for thresholds, rows to score on, and foreign images."""
    x, y = read(options.data_dir, options.data, "train")
    held, held_y = x[-HELD:], y[-HELD:]
    if options.validation:
        half = HELD // 2
        held, test, test_y = held[:half], held[half:], held_y[half:]
    else:
        test, test_y = read(options.data_dir, options.data, "test")
    x, y = x[:-HELD], y[:-HELD]
    rows, scored = options.rows or len(x), options.scored or len(test)
    others = {name: read(options.data_dir, name, "test")[0][:scored] for name in OTHERS[options.data]}
    return Data(x[:rows], y[:rows], held[:scored], test[:scored], test_y[:scored], others)


def methods(options: argparse.Namespace) -> dict[str, Any]:
    """Methods by their names here, each with the model's dropout rate and options of its fit."""
    rate, few = options.learning_rate, options.rows is not None
    vi = credo.methods.BayesByBackprop(learning_rate=rate, estimator="flipout", initial_std=0.01)
    quick = {"map_steps": 100, "burn_in": 50, "pilot_steps": 12} if few else {}
    return {
        "deterministic": credo.methods.MAP(learning_rate=rate),
        "mc_dropout": credo.methods.MCDropout(learning_rate=rate),
        "mfvi": vi,
        "deep_ensemble": credo.methods.DeepEnsemble(size=options.members, learning_rate=rate),
        "mfvi_ensemble": credo.replicate(vi, options.members),
        "last_layer": credo.methods.LastLayer(learning_rate=rate),
        "laplace": credo.methods.Laplace(structure="diagonal", prior_precision="evidence", learning_rate=rate),
        "sghmc": credo.methods.SGHMC(chains=options.members, **quick),
    }


def fitted(name: str, method: Any, seed: int, data: Data, options: argparse.Namespace) -> Any:
    """The fit, from the folder where it is there."""
    folder = options.folder / options.data / f"seed-{seed}" / "fits" / name
    if folder.exists():
        return credo.load(folder)
    began = time.perf_counter()
    network = credo.networks.lenet(dropout=options.dropout if name == "mc_dropout" else 0.0)
    model = credo.Model(network, credo.priors.normal(options.prior), credo.likelihoods.categorical(10))
    epochs = options.epochs * (options.longer if name.startswith("mfvi") else 1)
    steps = max(1, round(epochs * len(data.x) / options.batch_size))
    # Draws of a chain are kept at this many places; other methods keep none.
    thin = max(1, steps // options.kept) if name == "sghmc" else 1
    fit = credo.fit(
        jax.random.key(seed), model, (data.x, data.y), method, steps=steps, batch_size=options.batch_size, thin=thin,
        progress=False,
    )  # fmt: skip
    folder.parent.mkdir(parents=True, exist_ok=True)
    fit.save(folder)
    print(f"{name}, seed {seed}: fitted in {time.perf_counter() - began:.0f} s", flush=True)
    return fit


def attacks(options: argparse.Namespace) -> list[detection.Attack]:
    """FGSM and PGD, and noise as a control, at every size."""
    sizes = [float(e) for e in options.epsilons.split(",")]
    return [
        detection.Attack(kind, size, steps=options.steps, draws=options.draws, through=options.through, box=(0.0, 1.0))
        for kind in options.attacks.split(",")
        for size in sizes
    ]


def one_seed(seed: int, data: Data, options: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Quality of every model, and the table of detection."""
    folder = options.folder / options.data / f"seed-{seed}"
    available, done = methods(options), [folder / name for name in ("quality.csv", "table.csv")]
    if all(file.exists() for file in done):
        return pd.read_csv(done[0]), pd.read_csv(done[1])
    unknown = [name for name in options.models.split(",") if name not in available]
    if unknown:
        raise SystemExit(f"Unknown models {', '.join(unknown)}; choose of {', '.join(available)}.")
    fits = {name: fitted(name, available[name], seed, data, options) for name in options.models.split(",")}
    quality = []
    for name, fit in fits.items():
        predictive = credo.predict(jax.random.key(seed), fit, data.test, num_samples=options.samples)
        scores = credo.metrics.summarise(predictive, data.test_y)
        quality.append({"model": name, "seed": seed, "accuracy": scores["accuracy"], "nll": -scores["log_likelihood"]})
    began = time.perf_counter()
    common: dict[str, Any] = {
        "scores": SCORES, "num_samples": options.samples, "rows_at_once": options.rows_at_once,
        "callback": lambda model, name: print(f"  {model}: {name}, {time.perf_counter() - began:.0f} s", flush=True),
    }  # fmt: skip
    foreign = detection.study(
        jax.random.key(seed), fits, data.held, data.test, data.test_y, others=data.others, folder=folder / "foreign",
        resamples=100, **common,
    )  # fmt: skip
    table = detection.study(  # the bootstrap of all cells follows the last line that is printed
        jax.random.key(seed), fits, data.held, data.test[: options.attacked], data.test_y[: options.attacked],
        attacks=attacks(options), resamples=options.resamples, folder=folder / "attacked", **common,
    )  # fmt: skip
    if seed == min(options.seed_list) and not options.no_pictures:
        pictures(seed, fits, data, table, options)
    both = pd.concat([table.to_pandas(), foreign.to_pandas()], ignore_index=True).assign(seed=seed)
    pd.DataFrame(quality).to_csv(done[0], index=False)
    both.to_csv(done[1], index=False)
    return pd.DataFrame(quality), both


def pictures(seed: int, fits: dict[str, Any], data: Data, table: detection.Study, options: argparse.Namespace) -> None:
    """For each model ten successful attacks of the middle size, with what the entropy says; and the ROC curves."""
    hows = attacks(options)
    how = hows[len(hows) // 2]
    folder = options.folder / options.data
    for name, fit in fits.items():
        detected = table.detections[name, str(how), "entropy"]
        if len(detected.positive) == 0:
            continue
        rows = detected.rows[np.linspace(0, len(detected.rows) - 1, min(20, len(detected.rows))).astype(int)]
        attacked = detection.attack(
            jax.random.key(seed), fit, data.test[rows], data.test_y[rows], how, num_samples=options.samples
        )
        # The attack starts elsewhere than in the study: a few rows withstand it this time.
        again = np.flatnonzero(attacked.success)[:10]
        predictive = credo.predict(jax.random.key(seed), fit, attacked.inputs[again], num_samples=options.samples)
        scores = detection.suspicion(predictive, "entropy")
        words = [f"{a} → {b}" for a, b in zip(attacked.before[again], attacked.after[again])]
        figure = gallery(data.test[rows[again]], attacked.inputs[again], scores, detected.threshold, words)
        figure.savefig(folder / f"attacked-{name}.png")
    curves = {name: table.detections[name, str(how), "entropy"] for name in fits}
    curves = {name: detected for name, detected in curves.items() if len(detected.positive)}
    if curves:
        first, *rest = curves.values()
        first.plot(*rest, names=list(curves)).savefig(folder / "roc.png")


def mean(values: pd.Series, factor: float = 1.0, digits: int = 2) -> str:
    """The mean over seeds and its standard error."""
    finite = values.dropna().to_numpy(float) * factor
    if len(finite) == 0:
        return "–"
    error = f" ± {finite.std(ddof=1) / len(finite) ** 0.5:.{digits}f}" if len(finite) > 1 else ""
    return f"{finite.mean():.{digits}f}{error}"


def rates(frame: pd.DataFrame) -> list[str]:
    """TPR of one score by model and attack, with the wins, ties and losses of all seeds and the share of successes."""
    cells = list(dict.fromkeys(zip(frame["attack"], frame["epsilon"])))
    lines = ["| model | " + " | ".join(f"{kind} {size:g}" for kind, size in cells) + " |"]
    lines.append("|---" * (len(cells) + 1) + "|")
    for name, group in frame.groupby("model", sort=False):
        texts = []
        for kind, size in cells:
            cell = group[(group["attack"] == kind) & (group["epsilon"] == size)]
            verdicts = "/".join(str(int((cell["against_tpr"] == v).sum())) for v in ("win", "tie", "loss"))
            verdict = f", {verdicts}" if cell["against_tpr"].notna().any() else ""
            texts.append(f"{mean(cell['tpr'], 100, 1)} ({cell['success_rate'].mean():.0%}{verdict})")
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return lines


def report(quality: pd.DataFrame, frame: pd.DataFrame, options: argparse.Namespace) -> str:
    """The three tables in Markdown."""
    lines = ["| model | accuracy (%) | NLL |", "|---|---|---|"]
    for name, group in quality.groupby("model", sort=False):
        lines.append(f"| {name} | {mean(group['accuracy'], 100)} | {mean(group['nll'], digits=4)} |")
    foreign = frame[frame["epsilon"].isna()]
    lines += ["", "| model | other data | " + " | ".join(f"AUROC {s}" for s in SCORES) + " |", "|---" * 6 + "|"]
    for (name, other), group in foreign.groupby(["model", "attack"], sort=False):
        cells = [mean(group[group["score"] == s]["auroc"], digits=4) for s in SCORES]
        lines.append(f"| {name} | {options.data} → {other} | " + " | ".join(cells) + " |")
    attacked = frame[frame["epsilon"].notna()]
    lines += ["", *rates(attacked[attacked["score"] == "entropy"])]
    lines += ["", "| attack | ε | score | model | success (%) | TPR (%) | FPR (%) | AUROC | win/tie/loss |"]
    lines.append("|---" * 9 + "|")
    for (kind, size, score, name), group in attacked.groupby(["attack", "epsilon", "score", "model"], sort=False):
        verdicts = "/".join(str(int((group["against_tpr"] == v).sum())) for v in ("win", "tie", "loss"))
        lines.append(
            f"| {kind} | {size:g} | {score} | {name} | {mean(group['success_rate'], 100, 1)} | "
            f"{mean(group['tpr'], 100, 1)} | {mean(group['fpr'], 100, 1)} | {mean(group['auroc'], digits=4)} | "
            f"{verdicts if group['against_tpr'].notna().any() else '–'} |"
        )
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data-dir", required=True)
    add("--data", default="mnist", choices=list(OTHERS))
    add("--folder", type=Path, default=Path("detection"), help="for fits, scores, tables and pictures")
    add("--models", default="deterministic,mc_dropout,mfvi,deep_ensemble,mfvi_ensemble,last_layer,laplace,sghmc")
    add("--seeds", default="5", help="how many, or which: 3,4")
    add("--epochs", type=float, default=20)
    add("--longer", type=float, default=2, help="factor of the epochs of variational inference")
    add("--batch-size", type=int, default=128)
    add("--learning-rate", type=float, default=0.001)
    add("--prior", type=float, default=0.5, help="standard deviation of every weight")
    add("--dropout", type=float, default=0.5, help="of mc_dropout")
    add("--members", type=int, default=5, help="of ensembles, and chains")
    add("--kept", type=int, default=20, help="draws that each chain keeps")
    add("--samples", type=int, default=50, help="draws of the weights, for attacks and predictions")
    add("--attacks", default="fgsm,pgd,noise")
    add("--epsilons", default="0.05,0.1,0.2,0.3")
    add("--steps", type=int, default=40, help="of PGD")
    add("--draws", default="fixed", choices=["fixed", "fresh"])
    add("--through", default="predictive", choices=["predictive", "mean"])
    add("--attacked", type=int, default=1000, help="rows that are attacked")
    add("--rows", type=int, help="train on so many rows only")
    add("--scored", type=int, help="score so many rows only")
    add("--rows-at-once", type=int, help="rows that are attacked together")
    add("--resamples", type=int, default=1000, help="of the bootstrap")
    add("--validation", action="store_true", help="look at held-out training rows, never at test rows")
    add("--no-pictures", action="store_true")
    options = parser.parse_args()
    seeds = options.seeds
    options.seed_list = [int(s) for s in seeds.split(",") if s] if "," in seeds else list(range(int(seeds)))
    return options


def main() -> int:
    """Run, print the tables and write them."""
    options = parse()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    data = load(options)
    results = [one_seed(seed, data, options) for seed in options.seed_list]
    quality, frame = (pd.concat(parts, ignore_index=True) for parts in zip(*results))
    text = report(quality, frame, options)
    print(text)
    folder = options.folder / options.data
    frame.to_csv(folder / "detection.csv", index=False)
    (folder / "tables.md").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
