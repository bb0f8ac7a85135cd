"""Which models a table gets, as objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from credo.tables.auto import choice as rules
from credo.tables.auto.fit_set import Planned
from credo.tables.auto.model_set import CHAIN_ROWS, FOLDS, ModelPlan, model_set, seconds_of
from credo.tables.model import build
from credo.training.budget import left_of, seconds

if TYPE_CHECKING:
    from credo.tables.auto.case import Case

FEWEST_ROWS = 24  # of a stack: three for each fold


def takes_many(case: Case) -> bool:
    """May several models be fitted: of a table whose rows can be held out, and are there enough of them?"""
    return case.encoded and case.can_be_held_out and len(case.data[1]) >= FEWEST_ROWS


def plan_set(
    case: Case,
    effort: str,
    budget: str | float | None,
    begun: tuple[float, float],
    announce: Callable[[float], Any] | None,
) -> tuple[ModelPlan, ...]:
    """The models of a stack: by rule, or for what is left of a budget with the speed of this machine."""
    rows, deep = len(case.data[1]), rules.deep_network(case.task)
    allowed, speed = None, None
    if budget is not None:
        from credo.tables.auto.probe import measured

        if rows <= CHAIN_ROWS[effort] and case.features <= rows and seconds(budget) >= rules.SHORT:
            pace = measured(case.model_of("ensemble_chains", deep, {}), case.data, FOLDS)
            speed = lambda network: pace  # noqa: E731  # all chains have the one network
        allowed = left_of(budget, *begun)
    parts = model_set(
        case.task, rows, case.features, effort=effort, outputs=case.outputs, likelihoods=case.likelihoods,
        levels=case.levels, seconds=allowed, speed=speed,
    )  # fmt: skip
    if parts and announce is not None:
        announce(seconds_of(effort, rows) if budget is None else seconds(budget))
    return parts


def built(case: Case, parts: Sequence[ModelPlan]) -> tuple[Planned, ...]:
    """The models with their methods."""
    models = []
    for part in parts:
        method, options = build(part.method, part.settings)
        models.append(Planned(part, method, case.model_of(part.method, part.network, options)))
    return tuple(models)


def why_set(parts: Sequence[ModelPlan]) -> str:
    """The set in a sentence."""
    names = ", ".join(part.name for part in parts)
    return f"{len(parts)} models ({names}), mixed by how well each predicts rows that it has not seen."
