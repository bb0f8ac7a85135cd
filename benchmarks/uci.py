"""UCI regression in the published protocol: test log-likelihood and RMSE over the standard splits.

Inputs and targets are standardised on the training rows of a split and scores are on the original scale
(Hernández-Lobato and Adams, 2015). Models are "auto" (what `method="auto"` chooses for so many rows on this machine),
methods with a list of settings (`benchmarks.grid`) and baselines. One rule for all sets: of a list of settings
the one with the best log-likelihood in five-fold cross-validation of the training rows is fitted again to all training
rows. Test rows are looked at once, at the end. All splits and folds of a network run side by side as one program.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import records
from benchmarks.grid import GRID
from benchmarks.rules import baseline_rules, rules
from benchmarks.side_by_side import Built, alone, from_choice, from_words, original_scale, scores
from benchmarks.uci_auto import choice_of, run_pilots, words_of
from benchmarks.uci_data import FOLDS, SETS, Arrays, Task, folds, outside
from credo.errors import InputError, Refusal
from credo.evaluation.baselines import BASELINES, fit_baseline
from credo.registry import did_you_mean
from credo.tables.auto import AUTO

NAME = "uci"
MODELS = (AUTO, *GRID, *BASELINES)
NO_SETTINGS: dict[str, Any] = {}


class Options(NamedTuple):
    """What changes the numbers of a study.

    Attributes:
        steps: of every fit of a network, instead of its own.
        seconds: that "auto" plans with; None is its own.
        settings: of "auto", instead of those that it chooses.
        jobs: processes for baselines; changes no number.
    """

    steps: int | None = None
    seconds: float | None = None
    settings: dict[str, Any] = NO_SETTINGS
    jobs: int = 1


def check(models: Iterable[str], sets: Iterable[str]) -> None:
    """Raise a sentence where a name is unknown."""
    for names, allowed, what in ((models, MODELS, "model"), (sets, SETS, "set")):
        for name in names:
            if name not in allowed:
                raise InputError(
                    f"Unknown {what} {name!r}.{did_you_mean(name, list(allowed))} There are {', '.join(allowed)}."
                )


def mark(model: str, data: Arrays, options: Options) -> str:
    """The fingerprint of a model's settings on a set: splits with the same one belong together."""
    if model == AUTO:
        choice = choice_of(data, options.seconds)
        words = sorted(words_of(choice, options.settings, options.steps).items())
        settings: Any = (words, choice.rivals, rules("regression"))
    else:
        settings = (GRID.get(model), options.steps if model in GRID else None)
        settings += tuple(baseline_rules(model, "regression")) if model in BASELINES else ()
    return records.fingerprint(model, settings, *(data[key] for key in sorted(data)))


def study(
    model: str,
    name: str,
    data: Arrays,
    splits: Iterable[int],
    options: Options,
    store: records.Records,
    tell: Callable[[str], Any] = print,
) -> bool:
    """Run the splits that are not on record, and keep them; whether anything was run."""
    settings_mark, stem = mark(model, data, options), f"{NAME}-{name}-{model}"
    done = [record for record in store.all(stem) if record["fingerprint"] == settings_mark]
    if any(record["refused"] for record in done):
        return False
    finished = {row["split"] for record in done for row in record["rows"]}
    remaining = [split for split in splits if split not in finished]
    if not remaining:
        return False
    began = time.perf_counter()
    record: dict[str, Any] = {
        "benchmark": NAME, "set": name, "model": model, "fingerprint": settings_mark, "refused": None, "why": None,
        "num_data": int(data["train_idx"].shape[1]), "side_by_side": model not in BASELINES,
        "machine": records.without_accelerator() if model in BASELINES else records.machine(),
    }  # fmt: skip
    try:
        if model in BASELINES:
            record["rows"] = baseline(model, data, remaining, options.jobs)
        elif model == AUTO:
            record |= automatic(data, remaining, options)
        else:
            record["rows"] = tuned(model, data, remaining, options.steps, tell)
    except Refusal as error:
        record |= {"rows": [], "refused": str(error)}
    record["seconds"] = time.perf_counter() - began
    store.write(f"{stem}-{_range(remaining)}-{settings_mark}", record)
    return True


def _range(splits: list[int]) -> str:
    return f"{splits[0]}_{splits[-1]}_{len(splits)}"


def _scored(built: Built, data: Arrays, splits: list[int]) -> list[dict[str, Any]]:
    results = scores(jax.random.key(splits[0]), built, [outside(data, split) for split in splits])
    return [
        {"split": split, "log_likelihood": float(log_likelihood), "rmse": float(np.sqrt(error))}
        for split, (log_likelihood, error) in zip(splits, results)
    ]


def automatic(data: Arrays, splits: list[int], options: Options) -> dict[str, Any]:
    """Pilots on all splits, then all splits with the same settings side by side; with the sentence of the choice."""
    choice = choice_of(data, options.seconds)
    tasks = [outside(data, split) for split in splits]
    words = dict(zip(splits, run_pilots(choice, tasks, options.settings, options.steps, splits)))
    rows: dict[int, dict[str, Any]] = {}
    for each in {repr(each): each for each in words.values()}.values():
        mine = [split for split in splits if words[split] == each]
        # Where compilation takes longer than the fits, all splits run, so that one program serves every prior.
        ran = _scored(from_words(each), data, mine if jax.default_backend() == "cpu" else splits)
        rows |= {row["split"]: row | {"pilot": each["pilot"]} for row in ran if row["split"] in mine}
    settings = words_of(choice, options.settings, options.steps)
    return {"why": choice.why, "settings": settings, "rows": [rows[split] for split in splits]}


def tuned(
    model: str, data: Arrays, splits: list[int], steps: int | None, tell: Callable[[str], Any], test: bool = True
) -> list[dict[str, Any]]:
    """Choose a setting on training rows, fit it again and score test rows; without `test` none of these is read."""
    grid = [from_choice(model, choice, steps) for choice in GRID[model]]
    inside = [one for split in splits for one in folds(data, split)] if len(grid) > 1 or not test else []
    tried = np.zeros((len(splits), len(grid)))
    for i, built in enumerate(grid if inside else []):
        results = scores(jax.random.key(splits[0]), built, inside)
        tried[:, i] = np.where(np.isfinite(results[:, 0]), results[:, 0], -np.inf).reshape(len(splits), FOLDS).mean(1)
        tell(f"  {tried[:, i].mean():8.3f}  {GRID[model][i]}")
    best = tried.argmax(1)
    rows: dict[int, dict[str, Any]] = {}
    for i in np.unique(best) if test else []:
        # All splits run, so that one program serves every choice.
        for row, chosen in zip(_scored(grid[i], data, splits), best == i):
            if chosen:
                rows[row["split"]] = row
    chosen_on = {split: {"choice": int(b), "cross_validated": float(t[b])} for split, b, t in zip(splits, best, tried)}
    return [{"split": split} | rows.get(split, {}) | chosen_on[split] for split in splits]


def baseline(name: str, data: Arrays, splits: list[int], jobs: int) -> list[dict[str, Any]]:
    """A model that is no network, split by split, each in a process where there are several jobs."""
    from joblib import Parallel, delayed

    work = (delayed(_one)(name, split, outside(data, split), jobs > 1) for split in splits)
    rows = list(Parallel(n_jobs=jobs)(work))
    refused = [row["refused"] for row in rows if "refused" in row]
    if refused:
        raise Refusal(refused[0])
    return rows


def _one(name: str, split: int, one: Task, own_process: bool) -> dict[str, Any]:
    if own_process:  # it scores with JAX, and must not take the memory of an accelerator
        jax.config.update("jax_platforms", "cpu")
    began = time.perf_counter()
    try:
        model = fit_baseline(name, "regression", one.x, one.y[:, 0], seed=split)
    except Refusal as error:
        return {"refused": str(error)}
    spent = time.perf_counter() - began
    scored = original_scale(model.predict(one.new_x), one)
    return {
        "split": split, "log_likelihood": scored["log_likelihood"], "rmse": scored["mse"] ** 0.5, "seconds": spent
    }  # fmt: skip


def one_fit(model: str, name: str, data: Arrays, options: Options, store: records.Records) -> bool:
    """Fit split 0 alone through `credo.fit`, for the seconds of one fit, pilot included; whether it was run."""
    settings_mark, stem = mark(model, data, options), f"{NAME}-{name}-{model}"
    if model in BASELINES or store.read(f"{stem}-alone-{settings_mark}") is not None:
        return False
    one, began = outside(data, 0), time.perf_counter()
    if model == AUTO:
        choice = choice_of(data, options.seconds)
        built = from_words(run_pilots(choice, [one], options.settings, options.steps, [0])[0])
    else:
        rows = [row for record in store.all(stem) if record["fingerprint"] == settings_mark for row in record["rows"]]
        index = next((row.get("choice", 0) for row in rows if row["split"] == 0), 0)
        built = from_choice(model, GRID[model][index], options.steps)
    record: dict[str, Any] = {"benchmark": NAME, "set": name, "model": model, "fingerprint": settings_mark}
    record |= {"rows": [], "refused": None}
    before = time.perf_counter() - began  # the pilot
    timed = alone(jax.random.key(0), built, one)
    record |= {"alone": timed | {"seconds": before + timed["seconds"], "seconds_pilot": before}}
    record["machine"] = records.machine()
    store.write(f"{stem}-alone-{settings_mark}", record)
    return True
