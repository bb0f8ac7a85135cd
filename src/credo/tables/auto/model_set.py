"""The models that `effort="best"` fits and mixes: several networks, priors and likelihoods instead of one.

A table rarely says which model is right. Chains from a small smooth network lead where rows are few or noise is small,
an early-stopped ensemble of residual networks where rows are many, a Gaussian process or a linear model where the
function is smoother than either believes. The set is a function of the task, the size of the table and the time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from credo.tables.auto.choice import BATCHES, CLASSES, DEEP, ROBUST, SHORTEST, TIGHT, count, device_of
from credo.tables.auto.speed import BATCH, OVERHEAD, RATES, Speed

STACK = "stack"
BEST_SECONDS = 150.0  # of a fit without a budget
FOLDS = 8  # each left out by one member of every model
LONGEST_CHAIN, START_STEPS, LEAST_START = 60, 4_000, 1_000
ENSEMBLE_STEPS, LEAST_STEPS = 4_000, 300
HELD_OUT = 0.1  # of the rows that a member sees: they tell it when to stop
RESIDUAL, WIDE, LINEAR, PROCESS = "residual_mlp:64:3:silu", "mlp:100,100", "mlp:", "mlp:50,50:erf"
SEARCH_ROWS, PROCESS_ROWS, PROCESS_INPUTS = 400, 2_000, 300
CHAIN_ROWS = 5_000
CHAIN_SHARE, ENSEMBLE_SHARE, PROCESS_SHARE, LINEAR_SHARE = 6.0, 3.0, 1.0, 0.5  # of the time


@dataclasses.dataclass(frozen=True)
class ModelPlan:
    """One model of the set.

    Attributes:
        name: in words.
        method, network: in words.
        settings: of the method and the model.
        steps, batch_size: of the fit.
        share: of the time, beside those of the others.
    """

    name: str
    method: str
    network: str
    settings: dict[str, Any]
    steps: int | None
    batch_size: int | None
    share: float


def model_set(
    task: str,
    rows: int,
    features: int,
    *,
    outputs: int = 1,
    likelihoods: tuple[str, ...] = (),
    levels: tuple[int, ...] = (),
    seconds: float | None = None,
    speed: Callable[[str], Speed] | None = None,
    device: str | None = None,
) -> tuple[ModelPlan, ...]:
    """The models for a table, quickest first.

    Args:
        task: "regression", "binary", "multiclass" or "count".
        rows, features, outputs: as for `choose`.
        likelihoods: in words, that the target's values suggest beside the usual one.
        levels: as for `choose`; a process has no vectors for them.
        seconds: for all of them; None plans by rule, the same on every machine.
        speed: of chains of a network in words, where it was measured; None is by rule.
        device: as for `choose`.

    Example:
        >>> [part.name for part in model_set("regression", 400, 10, device="cpu")]
        ['linear model', 'Gaussian process', 'ensemble', 'narrow-prior chains', 'wide-prior chains']
    """
    device = device_of(device)
    parts = list(_parts(task, rows, features, outputs, likelihoods))
    parts = [part for part in parts if not (levels and part.method == "infinite_width")]
    total = BEST_SECONDS if seconds is None else seconds
    while parts:
        shares = sum(part.share for part in parts)
        fitted = [
            _to_length(part, total * part.share / shares, task, rows, features, outputs, levels, device, speed)
            for part in parts
        ]
        planned = tuple(part for part in fitted if part is not None)
        if len(planned) == len(parts):
            return planned
        parts = [part for part, plan in zip(parts, fitted) if plan is not None]
    return ()


def _parts(task: str, rows: int, features: int, outputs: int, likelihoods: tuple[str, ...]) -> Iterator[ModelPlan]:
    """All models that the size of the table admits, quickest first; lengths are still open."""
    classes = task in ("binary", "multiclass")
    usual: dict[str, Any] = {"likelihood": ROBUST} if task == "regression" else {}
    ensemble: dict[str, Any] = {"size": FOLDS, "held_out": HELD_OUT, "aside": 0.0}
    linear = usual | ensemble | ({"prior": TIGHT} if classes else {})
    yield ModelPlan("linear model", "deep_ensemble", LINEAR, linear, None, None, LINEAR_SHARE)
    values = rows * (outputs if task == "multiclass" else 1)
    if task != "count" and values <= PROCESS_ROWS and features <= PROCESS_INPUTS:
        scales = "evidence" if classes else "relevance"
        settings = {"prior_scale": scales, "search_rows": SEARCH_ROWS}
        yield ModelPlan("Gaussian process", "infinite_width", PROCESS, settings, None, None, PROCESS_SHARE)
    network = WIDE if classes else RESIDUAL
    prior = {"prior": TIGHT} if features > rows else {}
    yield ModelPlan("ensemble", "deep_ensemble", network, usual | ensemble | prior, None, None, ENSEMBLE_SHARE)
    for likelihood in likelihoods:
        settings = ensemble | prior | {"likelihood": likelihood}
        name = f"{likelihood.replace('_', '-')} ensemble"
        yield ModelPlan(name, "deep_ensemble", network, settings, None, None, ENSEMBLE_SHARE)
    if rows <= CHAIN_ROWS and features <= rows:
        network, wide = (CLASSES[0], 4.0) if classes else (DEEP, 3.0)
        for name, scale in (("narrow-prior chains", 1.0), ("wide-prior chains", wide)):
            settings = usual | {"size": FOLDS, "prior": f"fan_in_normal:{scale:g}"}
            yield ModelPlan(name, "ensemble_chains", network, settings, None, None, CHAIN_SHARE)


def _to_length(
    part: ModelPlan,
    seconds: float,
    task: str,
    rows: int,
    features: int,
    outputs: int,
    levels: tuple[int, ...],
    device: str,
    speed: Callable[[str], Speed] | None,
) -> ModelPlan | None:
    """The part with as many steps as fit into its time; None where these are too few to be worth its compilation."""
    batch = min(BATCH, rows)
    if part.method == "infinite_width":
        return part
    size = count(part.network, task, features, outputs, levels)
    if part.method == "deep_ensemble":
        step = FOLDS * (OVERHEAD[device] + batch * size / (BATCHES * RATES[device]))
        steps = int(min(ENSEMBLE_STEPS, seconds / step))
        return None if steps < LEAST_STEPS else dataclasses.replace(part, steps=steps, batch_size=batch)
    pace = Speed.by_rule(rows, size, device, FOLDS) if speed is None else speed(part.network)
    start = int(min(START_STEPS, max(LEAST_START, 0.3 * seconds / pace.batch)))
    length = int(min(LONGEST_CHAIN, (max(seconds - start * pace.batch, 0.0) / (2 * pace.full)) ** 0.5))
    if length < SHORTEST:
        return None
    settings = part.settings | {"warmup": length, "num_steps": length, "longest": start}
    return dataclasses.replace(part, settings=settings, steps=length, batch_size=batch)
