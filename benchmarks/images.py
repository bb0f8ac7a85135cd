"""LeNet-5 on MNIST and Fashion-MNIST: accuracy and negative log-likelihood beside the best published rows.

Mean-field variational inference (flipout, N(0, 0.5²) on every weight, no tempering, no augmentation) and an ensemble of
ten networks (N(0, 0.3²); images shifted by up to two places, those of clothes by one and mirrored). Networks train on
all 60,000 rows and are scored on the test rows; with `validation` on 50,000 and the last 10,000 training rows, which
is how the settings were chosen. DIR holds mnist/mnist.npz and fashion_mnist/fashion_mnist.npz.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import credo
from benchmarks import published, records
from benchmarks.markdown import bold, mean_and_error, seconds, with_error
from credo.errors import InputError
from credo.report.markdown import table

NAME = "images"
DATA = ("mnist", "fashion_mnist")
METHODS = ("mfvi", "deep_ensemble")
HELD = 10_000
Images = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Options(NamedTuple):
    """What changes the numbers.

    Attributes:
        epochs: instead of each method's own.
        batch_size: rows of a step.
        samples: draws of the weights under mean field.
        members: of the ensemble.
        validation: score on held-out training rows.
    """

    epochs: float | None = None
    batch_size: int = 128
    samples: int = 100
    members: int = 10
    validation: bool = False


def load(folder: Path, name: str, validation: bool) -> Images:
    """Training and scored rows: images [n, 28, 28, 1] with pixels in [0, 1], and labels."""
    path = folder / name / f"{name}.npz"
    if not path.is_file():
        raise InputError(f"There is no {path}: --data-dir names the folder that holds {name}/.")
    with np.load(path, allow_pickle=False) as data:
        x, test = ((data[f"x_{part}"].astype(np.float32) / 255)[..., None] for part in ("train", "test"))
        y, test_y = (data[f"y_{part}"].astype(int) for part in ("train", "test"))
    held = min(HELD, len(x) // 6)
    return (x[:-held], y[:-held], x[-held:], y[-held:]) if validation else (x, y, test, test_y)


def setting(method: str, name: str, members: int = 10) -> tuple[Any, Any, Any, float]:
    """Network, prior, method and epochs."""
    network: Any = credo.networks.lenet()
    clothes = name == "fashion_mnist"
    if method == "mfvi":
        vi = credo.methods.BayesByBackprop(learning_rate=0.002, estimator="flipout", initial_std=0.01)
        return network, credo.priors.normal(0.5), vi, 480 if clothes else 120
    network = credo.networks.augmented(network, flip=clothes, shift=1 if clothes else 2)
    return network, credo.priors.normal(0.3), credo.methods.DeepEnsemble(size=members, learning_rate=0.002), 80


def run(name: str, method: str, seed: int, data: Images, options: Options) -> dict[str, Any]:
    """Accuracy in percent, negative log-likelihood, seconds of compilation and of the run."""
    x, y, test, test_y = data
    network, prior, how, epochs = setting(method, name, options.members)
    model = credo.Model(network, prior, credo.likelihoods.categorical(10))
    steps = max(1, round((epochs if options.epochs is None else options.epochs) * len(x) / options.batch_size))
    fit = credo.fit(
        jax.random.key(seed), model, (x, y), how, steps=steps, batch_size=min(options.batch_size, len(x)),
        progress=False,
    )  # fmt: skip
    predictive = credo.predict(jax.random.key(seed), fit, test, num_samples=options.samples)
    scores = credo.metrics.summarise(predictive, test_y)
    return {
        "accuracy": 100 * float(scores["accuracy"]), "nll": -float(scores["log_likelihood"]), "steps": steps,
        "compiling": float(fit.timing["seconds_compile"]), "seconds": float(fit.timing["seconds_run"]),
    }  # fmt: skip


def study(
    folder: Path,
    sets: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    options: Options,
    store: records.Records,
    tell: Callable[[str], Any],
) -> int:
    """Run what is not on record; the number of fits."""
    fits = 0
    for name in sets:
        data = load(folder, name, options.validation)
        for method in methods:
            mark = records.fingerprint(method, options, setting(method, name, options.members), *data)
            for seed in range(seeds):
                key = f"{NAME}-{name}-{method}-{seed}-{mark}"
                if store.read(key) is not None:
                    continue
                record = {"data": name, "method": method, "seed": seed, "fingerprint": mark}
                record |= {"validation": options.validation, "machine": records.machine()}
                record |= {"members": options.members} if method == "deep_ensemble" else {}
                record |= run(name, method, seed, data, options)
                store.write(key, record)
                fits += 1
                tell(f"{name} {method} seed {seed}: {record['accuracy']:.2f} %, NLL {record['nll']:.4f}")
    return fits


def markdown(entries: list[dict[str, Any]], command: str) -> str:
    """The page."""
    rows = []
    groups = records.latest(entries, lambda record: f"{record['data']} {record['method']} {record['validation']}")
    for group in groups.values():
        name, method = group[0]["data"], group[0]["method"]
        accuracy, nll = published.IMAGES[name, method]
        best = mean_and_error([r["accuracy"] for r in group]), mean_and_error([r["nll"] for r in group])
        ours = [with_error(*best[0], 2), with_error(*best[1], 4)]
        ahead = best[0][0] > float(accuracy), best[1][0] < float(nll)
        shown = [(bold(a), b) if first else (a, bold(b)) for a, b, first in zip(ours, (accuracy, nll), ahead)]
        spent = max(r["compiling"] for r in group), mean_and_error([r["seconds"] for r in group])[0]
        members = f", {group[0]['members']} members" if "members" in group[0] else ""
        label = f"`{method}`{members}" + (", validation rows" if group[0]["validation"] else "")
        rows.append([name, label, *shown[0], *shown[1], *map(seconds, spent), str(len(group))])
    head = ["data", "method", "accuracy (%)", "published", "NLL", "published", "compile (s)", "run (s)", "seeds"]
    machines = dict.fromkeys(record["machine"] for record in entries)
    return "\n\n".join([
        "# LeNet-5 on images",
        "All training rows, scored on the test rows unless a line says otherwise; means ± standard errors over seeds, "
        "the better of a pair is bold. `mfvi` is mean-field variational inference with flipout and without tempering, "
        "`deep_ensemble` sees shifted (clothes: also mirrored) images. A program is compiled once, for all seeds. "
        "Published rows were noted without their sources; their ensembles have ten members.",
        table(head, rows, text=2),
        "\n".join(f"- {line}" for line in [f"`{command}`", *machines]),
    ]) + "\n"  # fmt: skip
