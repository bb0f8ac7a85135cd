"""The models that `auto` fits and mixes: several networks, priors and likelihoods instead of one.

A table rarely says which model is right. Chains from a small smooth network lead where rows are few or noise is small,
networks that see quantiles of their inputs where the function bends or jumps, residual networks where rows are many, a
Gaussian process or a linear model where the function is smoother than either believes. The set is a function of the
task, the size of the table, the effort and the time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from credo.tables.auto.choice import CLASSES, DEEP, ROBUST, TIGHT, count, device_of
from credo.tables.auto.speed import BATCH, Speed

STACK = "stack"
# Seconds of work on two cores of a processor, for up to 1,000 rows, up to 10,000, and more.
SIZES = (1_000, 10_000)
SECONDS = {"quick": (2.0, 5.0, 10.0), "normal": (6.0, 14.0, 30.0), "best": (150.0, 150.0, 150.0)}
FOLDS = 8  # each left out by one member of every model
SHORTEST_CHAIN, LONGEST_CHAIN = 12, 60
START_STEPS, LEAST_START = 4_000, 1_000
ENSEMBLE_STEPS = {"quick": 1_000, "normal": 2_000, "best": 4_000}  # up to 1,000 rows; with the square root of more
LEAST_STEPS = 300
HELD_OUT = 0.1  # of the rows that a member sees: they tell it when to stop
PIECES, PIECES_OF_CLASSES = "piecewise_mlp:32,32,32:tanh", "piecewise_mlp:100,100"
RESIDUAL, WIDE, LINEAR, PROCESS = "residual_mlp:64:3:silu", "mlp:100,100", "mlp:", "mlp:50,50:erf"
PIECES_PRIOR = "fan_in_normal:2"  # of classes, beside the usual one of 4
SEARCH_ROWS, PROCESS_ROWS, PROCESS_INPUTS = 400, {"quick": 1_000, "normal": 1_000, "best": 2_000}, 300
CHAIN_ROWS, PIECES_INPUTS = {"quick": 0, "normal": 2_500, "best": 5_000}, 300
CHAIN_SHARE, RESIDUAL_SHARE, PIECES_SHARE, PROCESS_SHARE, LINEAR_SHARE = 3.0, 3.0, 1.5, 1.0, 0.3  # of the time
# Seconds of a step of all members: so many, and one for each STEP_RATE of rows times parameters times members; and how
# much faster a second core makes chains than the rule. Measured on two cores; those of accelerators are a guess.
STEP, STEP_RATE = {"cpu": 2e-4, "gpu": 2e-4, "tpu": 2e-4}, {"cpu": 2e10, "gpu": 1e12, "tpu": 5e11}
CORES = 1.7


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
    effort: str = "best",
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
        effort: "quick", "normal" or "best": how many models, and how much time where no seconds are given.
        likelihoods: in words, that the target's values suggest beside the usual one.
        levels: as for `choose`; a process has no vectors for them.
        seconds: for all of them; None plans by rule, the same on every machine.
        speed: of chains of a network in words, where it was measured; None is by rule.
        device: as for `choose`.

    Example:
        >>> [part.name for part in model_set("regression", 400, 10, effort="normal", device="cpu")]
        ['Gaussian process', 'piecewise ensemble', 'wide-prior chains']
    """
    device = device_of(device)
    parts = list(_parts(task, rows, features, outputs, likelihoods, effort))
    parts = [part for part in parts if not (levels and part.method == "infinite_width")]
    total = seconds_of(effort, rows) if seconds is None else seconds
    while parts:
        whole = sum(part.share for part in parts)
        fitted = [
            _to_length(part, total * part.share / whole, task, rows, features, outputs, levels, device, effort, speed)
            for part in parts
        ]
        planned = tuple(part for part in fitted if part is not None)
        if len(planned) == len(parts):
            return planned
        parts = [part for part, plan in zip(parts, fitted) if plan is not None]
    return ()


def seconds_of(effort: str, rows: int) -> float:
    """Seconds of work that an effort is planned for, compilation aside.

    Example:
        >>> seconds_of("normal", 500), seconds_of("normal", 20_000)
        (6.0, 30.0)
    """
    return SECONDS[effort][sum(rows > size for size in SIZES)]


def _parts(
    task: str, rows: int, features: int, outputs: int, likelihoods: tuple[str, ...], effort: str
) -> Iterator[ModelPlan]:
    """All models that the size of the table admits, quickest first; lengths are still open."""
    classes, best, small = task in ("binary", "multiclass"), effort == "best", rows <= SIZES[0]
    usual: dict[str, Any] = {"likelihood": ROBUST} if task == "regression" else {}
    members: dict[str, Any] = {"size": FOLDS, "held_out": HELD_OUT, "aside": 0.0}
    tight = {"prior": TIGHT} if features > rows else {}
    ensemble = usual | members | tight

    def of(name: str, network: str, share: float, **settings: Any) -> ModelPlan:
        return ModelPlan(name, "deep_ensemble", network, ensemble | settings, None, None, share)

    values = rows * (outputs if task == "multiclass" else 1)
    process = task != "count" and values <= PROCESS_ROWS[effort] and features <= PROCESS_INPUTS
    if best or (not classes and not process) or features > rows:
        yield of("linear model", LINEAR, LINEAR_SHARE, **({"prior": TIGHT} if classes else {}))
    if process and (best or not classes):
        settings = {"prior_scale": "evidence" if classes else "relevance", "search_rows": SEARCH_ROWS}
        yield ModelPlan("Gaussian process", "infinite_width", PROCESS, settings, None, None, PROCESS_SHARE)
    pieces = features <= PIECES_INPUTS
    if pieces:
        network = PIECES_OF_CLASSES if classes else PIECES
        yield of("piecewise ensemble", network, PIECES_SHARE)
        if classes and effort != "quick":
            yield of("narrow-prior piecewise ensemble", network, PIECES_SHARE, prior=PIECES_PRIOR)
    if not pieces or best or not (small or classes or effort == "quick"):
        yield of("ensemble", WIDE if classes else RESIDUAL, RESIDUAL_SHARE)
    for likelihood in likelihoods if best or task == "count" else ():
        name = f"{likelihood.replace('_', '-')} ensemble"
        yield of(name, WIDE if classes else RESIDUAL, RESIDUAL_SHARE, likelihood=likelihood)
    if rows <= CHAIN_ROWS[effort] and features <= rows:
        network, wide = (CLASSES[0], 4.0) if classes else (DEEP, 3.0)
        for name, scale in (("narrow-prior chains", 1.0), ("wide-prior chains", wide))[0 if best else 1 :]:
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
    effort: str,
    speed: Callable[[str], Speed] | None,
) -> ModelPlan | None:
    """The part with as many steps as fit into its time; None where these are too few to be worth its compilation."""
    batch = min(BATCH, rows)
    if part.method == "infinite_width":
        return part
    size = count(part.network, task, features, outputs, levels)
    step = STEP[device] + FOLDS * batch * size / STEP_RATE[device]
    if part.method == "deep_ensemble":
        most = ENSEMBLE_STEPS[effort] * max(1.0, rows / SIZES[0]) ** 0.5
        steps = int(min(most, seconds / step))
        return None if steps < LEAST_STEPS else dataclasses.replace(part, steps=steps, batch_size=batch)
    pace = Speed.by_rule(rows, size, device, FOLDS) if speed is None else speed(part.network)
    full = pace.full / CORES if speed is None else pace.full
    start = int(min(START_STEPS, max(LEAST_START, 0.3 * seconds / step)))
    length = int(min(LONGEST_CHAIN, (max(seconds - start * step, 0.0) / (2 * full)) ** 0.5))
    if length < SHORTEST_CHAIN:
        return None
    settings = part.settings | {"warmup": length, "num_steps": length, "longest": start}
    return dataclasses.replace(part, settings=settings, steps=length, batch_size=batch)
