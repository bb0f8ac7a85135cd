"""Quality against seconds on the airfoil set: five 80/20 splits, standardised target.

DIR has `airfoil/airfoil.npz` with `data` [1503, 6], the target in the last column. Split s takes the first 80 % of
`numpy.random.default_rng(s).permutation(1503)` to learn from. Encoding, network, prior and noise are those that a table
gets (`credo.tables`) under each method, nothing is chosen on test rows. A length n of `ensemble_chains` is n steps of
warm-up and n draws of every chain. Seconds are those of the fit on this machine; the first split's have the
compilation.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

import credo
from benchmarks import published, records
from benchmarks.markdown import bold, mean_and_error, seconds, with_error
from benchmarks.rules import baseline_rules, rules
from credo.errors import InputError, Refusal
from credo.evaluation.baselines import BASELINES, fit_baseline
from credo.registry import METHODS
from credo.report.markdown import table
from credo.tables.auto import AUTO
from credo.tables.auto.case import of_table
from credo.tables.auto.resolution import resolve
from credo.tables.encode.encoder import TableEncoder

NAME = "airfoil"
CHAINS = "ensemble_chains"
MODELS = (AUTO, *METHODS, *BASELINES)


class Options(NamedTuple):
    """What changes the numbers: members and longest paths of `ensemble_chains`, settings of it and of "auto", and steps
    of "auto" and of other methods instead of their own."""

    size: int = 8
    path: int = 100
    settings: tuple[tuple[str, Any], ...] = ()
    steps: int | None = None


def load(folder: Path) -> np.ndarray:
    """The table: inputs, and the target in the last column."""
    path = folder / "airfoil" / "airfoil.npz"
    if not path.is_file():
        raise InputError(f"There is no {path}: --data-dir names the folder that holds airfoil/.")
    with np.load(path, allow_pickle=False) as file:
        return file["data"]


def split(data: np.ndarray, seed: int) -> tuple[Any, ...]:
    """The encoder of a table that learned from the training rows; inputs and targets of these and of the others."""
    order = np.random.default_rng(seed).permutation(len(data))
    names = [f"x{i}" for i in range(data.shape[1] - 1)]
    frame = pd.DataFrame(data, columns=[*names, "y"]).iloc[order].reset_index(drop=True)
    rows, new = frame[: int(0.8 * len(data))], frame[int(0.8 * len(data)) :]
    encoder = TableEncoder.learn(rows, "y", task="regression")
    return encoder, encoder.inputs(rows), encoder.targets(rows), encoder.inputs(new), encoder.targets(new)


def run(data: np.ndarray, seed: int, model: str, length: int | None, options: Options) -> dict[str, Any]:
    """One split: scores and seconds."""
    encoder, x, y, new_x, new_y = split(data, seed)
    facts: dict[str, Any] = {"compiling": 0.0, "why": None}
    began = time.perf_counter()
    if model in BASELINES:
        predictive = fit_baseline(model, "regression", x, y, seed=seed).predict(new_x)
        spent = time.perf_counter() - began
    else:
        words: dict[str, Any] = {"method": model, "network": None, "steps": options.steps, "batch_size": None}
        words["settings"] = {}
        if model == CHAINS:
            chains = {"size": options.size, "warmup": length, "num_steps": options.path}
            words |= {"steps": length, "settings": chains | dict(options.settings)}
        case = of_table(encoder, (x, y, np.ones(len(x), np.float32)))
        if model == AUTO:
            words["settings"] = dict(options.settings)
            facts["why"] = case.choose().why  # that of the choice says the scores of one split's pilot
        resolved = resolve(case, **words, seed=seed)
        fit = credo.fit(
            jax.random.key(seed), resolved.model, (x, y), resolved.method, steps=resolved.words["steps"],
            batch_size=resolved.words["batch_size"], progress=False,
        )  # fmt: skip
        spent = time.perf_counter() - began
        facts["compiling"] = float(fit.timing["seconds_compile"])
        predictive = credo.predict(jax.random.key(1), fit, new_x)
    scores = {
        "rmse": float(credo.metrics.rmse(predictive, new_y)),
        "nll": -float(credo.metrics.log_likelihood(predictive, new_y)),
    }
    return facts | {"seconds": spent} | scores


def study(
    data: np.ndarray,
    models: Iterable[str],
    lengths: Iterable[int],
    splits: int,
    options: Options,
    store: records.Records,
    tell: Callable[[str], Any],
) -> int:
    """Run what is not on record; the number of fits."""
    fits = 0
    cells = [(m, n) for m in models for n in (lengths if m == CHAINS else [None])]
    for model, length in cells:
        for seed in range(splits):
            settings = (model, length) if model in BASELINES else (model, length, options)
            constants = baseline_rules(model, "regression") if model in BASELINES else []
            choice = (jax.default_backend(), *rules("regression")) if model == AUTO else tuple(constants)
            mark = records.fingerprint(settings, *choice, data)
            name = f"{NAME}-{model}-{length or 0}-{seed}-{mark}"
            if store.read(name) is not None:
                continue
            record: dict[str, Any] = {"model": model, "length": length, "split": seed, "fingerprint": mark}
            try:
                record |= run(data, seed, model, length, options) | {"machine": records.machine()}
            except Refusal as error:
                tell(f"{model} is left out: {error}")
                break
            store.write(name, record)
            fits += 1
            tell(f"{label(record)}, split {seed}: NLL {record['nll']:.3f}, {record['seconds']:.0f} s")
    return fits


def label(record: dict[str, Any]) -> str:
    """The name of a model, with the length of its chains."""
    return record["model"] + (f" {record['length']} + {record['length']}" if record["length"] else "")


def summary(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each model and length: (mean, standard error) of every score over splits, seconds of a fit (their
    median: only the first one compiles) and of the first."""
    groups = records.latest(entries, label)
    return [
        {"label": name, "model": rows[0]["model"], "splits": len(rows)}
        | {key: mean_and_error([row[key] for row in rows]) for key in ("nll", "rmse")}
        | {"seconds": float(np.median([row["seconds"] for row in rows])), "first": rows[0]["seconds"]}
        for name, rows in groups.items()
    ]


def markdown(entries: list[dict[str, Any]], command: str) -> str:
    """The page."""
    lines, beside = summary(entries), published.AIRFOIL
    least = {key: min([line[key][0] for line in lines] + [float(beside[key])]) for key in ("nll", "rmse")}

    def cell(line: dict[str, Any], key: str) -> str:
        text = with_error(line[key][0], line[key][1], 3)
        return bold(text) if line[key][0] == least[key] else text

    rows = [
        [f"`{line['label']}`", cell(line, "nll"), cell(line, "rmse"), seconds(line["seconds"]),
         seconds(line["first"]), str(line["splits"])]
        for line in sorted(lines, key=lambda line: line["nll"][0])
    ]  # fmt: skip
    printed = [beside[key].replace("-", "−") for key in ("nll", "rmse", "seconds")]
    rows.append([f"{beside['name']} (ten cores)", *printed, "–", "5"])
    whys = dict.fromkeys(record["why"] for record in entries if record.get("why"))
    machines = dict.fromkeys(record["machine"] for record in entries)
    return "\n\n".join([
        "# Airfoil: quality against seconds",
        "1,503 rows, 80 % of them to learn from, standardised target: means ± standard errors over the splits. "
        "Each method has the network and the prior that `credo fit --method` gives it; `ensemble_chains n + n` has n "
        "steps of warm-up and n draws of every chain. Seconds are the median of the fits; the first one compiles the "
        "program that serves all splits. The published row was noted without its source.",
        "![Negative log-likelihood and RMSE against the seconds of a fit](airfoil.png)",
        table(["model", "negative log-likelihood", "RMSE", "seconds", "of the first fit", "splits"], rows),
        "\n".join(f"- {line}" for line in [f"`{command}`", *machines, *whys]),
    ]) + "\n"  # fmt: skip
