"""From a table or a model and what the user said to what is fitted: nothing is left open."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from credo.errors import InputError
from credo.tables.auto import choice as rules
from credo.tables.auto.case import Case, network_words
from credo.tables.auto.choice import AUTO, EFFORTS, QUICK_SECONDS, Choice
from credo.tables.auto.fit_set import Planned, fit_set
from credo.tables.auto.honest import checked, units_of, with_units
from credo.tables.auto.model_set import STACK, ModelPlan, seconds_of
from credo.tables.auto.pilots import pilot
from credo.tables.auto.plan_set import built, plan_set, takes_many, why_set
from credo.tables.auto.replan import pace, shortened
from credo.tables.model import MODEL_OPTIONS, build
from credo.tables.rows.copies import merged
from credo.training.budget import left_of, seconds
from credo.training.clock import COMPILING

if TYPE_CHECKING:
    from credo.core.model import Model
    from credo.training.fit import Fit

LEAST_BUDGET = 10.0  # seconds; below, a single model is chosen
LEAST = 0.15  # of a budget for the ensemble that takes the place of chains, though the pilot has spent it all


class Resolved(NamedTuple):
    """What is fitted.

    Attributes:
        words: "method", "network", "settings", "steps" and "batch_size", as the user might have said them.
        method, model: the objects; of a stack those of its first model.
        budget: what is left of the user's, or None.
        why: what "auto" chose, in a sentence; empty where a method was named.
        correction: of the likelihood, by the rows that a pilot had not seen.
        planned: seconds that it will take, compilation aside, where that is known.
        models: of a stack; none where one model is fitted.
        seed, groups: of a stack's folds.
    """

    words: dict[str, Any]
    method: Any
    model: Model
    budget: str | float | None = None
    why: str = ""
    correction: dict[str, Any] | None = None
    planned: float | None = None
    models: tuple[Planned, ...] = ()
    seed: int = 0
    groups: Any = None

    def fit(self, key: jax.Array, data: Any, **how: Any) -> Fit:
        """`credo.fit` with all of this, and error bars that unseen rows have corrected."""
        from credo.training import fit as training

        if self.models:
            return fit_set(key, data, self.models, budget=self.budget, seed=self.seed, groups=self.groups, **how)

        fit = training.fit(
            key, self.model, data, self.method, steps=self.words["steps"], budget=self.budget,
            batch_size=self.words["batch_size"], **how,
        )  # fmt: skip
        return checked(fit, self.correction) if self.why else fit


def resolve(
    case: Case,
    *,
    method: str = AUTO,
    network: Any = None,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    budget: str | float | None = None,
    seed: int = 0,
    groups: Any = None,
    begun: tuple[float, float] | None = None,
    announce: Callable[[float], Any] | None = None,
    measure: bool = True,
    why: str = "",
    effort: str = "normal",
) -> Resolved:
    """What is fitted, with nothing left open: "auto" becomes a method, after short fits where size does not decide.

    A budget is planned with the speed of this machine, measured where there is time for more than an ensemble, and once
    more after the pilot: other programs may have come to run beside it. Where chains would then be too short, an
    ensemble takes what is left.

    Args:
        case: from `of_table` or `of_model`.
        method, network, settings, steps, batch_size, budget: what the user said.
        seed: of the pilot.
        groups: a number for the group of each row; whatever holds rows out holds out whole groups.
        begun: `time.perf_counter()` and `COMPILING.seconds` when the budget began; now where None.
        announce: called with the seconds that all of it will take on this machine, before the pilot.
        measure: False plans by rule alone: what goes on from a checkpoint must be what began.
        why: of a method that was chosen before, and is now resumed.
        effort: how many models are fitted and mixed where neither network nor settings nor steps are named
            (`model_set`): "quick" in a few seconds, "normal" in up to half a minute, "best" in minutes; a budget says
            how long it may take instead.
    """
    if not why:  # what is resumed was checked when it began
        check_effort(effort, method, network, settings, steps)
    begun, settings = begun or (time.perf_counter(), COMPILING.seconds), dict(settings or {})
    words = {"method": method, "network": network, "settings": settings, "steps": steps, "batch_size": batch_size}
    choice = None
    if method == STACK and "parts" in settings:
        parts = tuple(ModelPlan(**part) for part in settings["parts"])
        return _stack(case, parts, words, budget, seed, groups, why, effort)
    open_model = network is None and not settings and steps is None and batch_size is None
    enough = budget is None or effort == "best" or seconds(budget) >= LEAST_BUDGET
    if method == AUTO and open_model and enough and takes_many(case):
        parts = plan_set(case, effort, budget, begun, announce if measure else None)
        if parts:
            words = words | {"method": STACK, "settings": {"parts": [dataclasses.asdict(part) for part in parts]}}
            left = None if budget is None else left_of(budget, *begun)
            return _stack(case, parts, words, left, seed, groups, why_set(parts), effort)
    if method == AUTO:
        choice = _chosen(case, network, settings, budget, seed, groups, begun, announce, measure, effort)
        words = choice.words(network, settings, steps, batch_size, budget)
        why, budget = choice.why, None if budget is None else left_of(budget, *begun)
    method_object, options = build(words["method"], words["settings"])
    method_object = with_units(method_object, case.data, groups) if why and case.simple else method_object
    model = case.model_of(words["method"], words["network"], options)
    if choice is None:
        return Resolved(words, method_object, model, budget, why)
    return Resolved(words, method_object, model, budget, why, choice.correction, choice.seconds or None)


def check_effort(
    effort: str, method: str, network: Any = None, settings: Mapping[str, Any] | None = None, steps: int | None = None
) -> None:
    """Raise a sentence where an effort is none, or would change nothing."""
    if effort not in EFFORTS:
        raise InputError(f"effort is one of {', '.join(EFFORTS)}, got {effort!r}.")
    if effort != "normal" and method not in (AUTO, STACK):
        raise InputError(f"effort={effort!r} says how much auto tries, and {method} is named: leave one of them out.")
    if effort == "best" and method == AUTO and (network is not None or settings or steps is not None):
        raise InputError(
            'effort="best" mixes networks, likelihoods and lengths of its own: leave network, settings and steps out, '
            "or leave the effort at normal."
        )


def _chosen(
    case: Case,
    network: Any,
    settings: dict[str, Any],
    budget: str | float | None,
    seed: int,
    groups: Any,
    begun: tuple[float, float],
    announce: Callable[[float], Any] | None,
    measure: bool,
    effort: str,
) -> Choice:
    """The choice after its pilot."""
    usual = QUICK_SECONDS if effort == "quick" else None
    allowed, rows, speed = usual if budget is None else seconds(budget), len(case.data[1]), None
    began = time.perf_counter(), COMPILING.seconds

    def model_of(choice: Choice, rival: dict[str, Any]) -> Model:
        words = choice.words(network, settings, None, None, budget)
        options = {name: value for name, value in words["settings"].items() if name in MODEL_OPTIONS}
        return case.model_of(choice.method, words["network"], options | rival)

    choice = case.choose(network, allowed)
    deep = rules.deep_network(case.task)
    parameters = case.parameters or rules.count(
        network_words(network) or deep, case.task, case.features, levels=case.levels
    )
    if measure and case.simple and rules.worth_measuring(choice, rows, parameters, allowed, announce is not None):
        from credo.tables.auto.probe import measured

        chains = choice._replace(method="ensemble_chains", network=deep)
        speed = measured(model_of(chains, {}), case.data, rules.CHAINS)
        choice = case.choose(network, allowed, speed) if budget is not None else rules.timed(choice, speed)
    if announce is not None:
        announce(choice.seconds)
    if "likelihood" in settings or (case.fixed_outputs and case.task == "binary"):
        choice = choice._replace(rivals=tuple(rival for rival in choice.rivals if "likelihood" not in rival))
    if "prior" in settings:  # nothing competes, but what is taken is looked at
        choice = choice._replace(rivals=({"prior": settings["prior"]},) if choice.rivals and case.looks else ())
    units = merged(units_of(case.data[:2]), groups) if choice.rivals else None
    piloted = pilot(choice, lambda rival: model_of(choice, rival), [case.data], [seed], units)[0]
    if budget is None or speed is None or not choice.rivals:
        return piloted
    left, total = left_of(budget, *began), seconds(budget)
    slower = pace(total - left, rules.pilot_seconds(speed, len(choice.rivals)))
    return shortened(piloted, speed, left, slower) or case.choose(network, max(left, LEAST * total))


def _stack(
    case: Case,
    parts: tuple[ModelPlan, ...],
    words: dict[str, Any],
    budget: str | float | None,
    seed: int,
    groups: Any,
    why: str,
    effort: str,
) -> Resolved:
    models = built(case, parts)
    planned = seconds_of(effort, len(case.data[1])) if budget is None else seconds(budget)
    return Resolved(words, models[0].method, models[0].model, budget, why, None, planned, models, seed, groups)
