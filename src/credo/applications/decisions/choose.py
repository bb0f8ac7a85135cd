"""The action of largest posterior expected utility (H4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.applications.decisions.amounts import amount_range, best_amounts, criterion, exact_amounts
from credo.applications.decisions.chosen import Decisions
from credo.applications.decisions.outcomes import FEW, Outcomes, outcomes
from credo.applications.decisions.risk import Mean, Risk, risk_of
from credo.applications.decisions.utilities import (
    ABSTAIN,
    Amount,
    NamedActions,
    as_utility,
    check_abstain,
    with_abstain,
)
from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.evaluation.recalibration.recalibrated import Recalibrated

AMOUNT_PANELS = 2  # amounts are tried many times, and errors of single draws average out
TIE = 1e-9  # of the largest value: closer ones are equal, and the action named first is taken


def decide(
    predictive: Predictive,
    utility: Any,
    *,
    actions: Sequence[Any] | None = None,
    classes: Sequence[Any] = (),
    bounds: tuple[float, float] | None = None,
    risk: Any = "mean",
    over: str = "outcomes",
    abstain: float | tuple[float, float] | None = None,
) -> Decisions:
    """The best action for every row: argmax_a E[u(a, y)] under the predictive distribution p(y|x, D).

    Expectations are exact sums for classes and counts and quadrature for real outcomes, with an estimate of its error;
    only the draws of θ are random. Savage (1954), The Foundations of Statistics; Berger (1985), Statistical Decision
    Theory and Bayesian Analysis.

    Args:
        predictive: what `credo.predict` gave, for any method and likelihood with one outcome a row.
        utility: a table [actions, classes] (array or pandas); a dictionary action → u(y); a function u(action, y) with
            `actions` or `bounds`; or one of `class_utility`, `step_utility`, `newsvendor` and `pinball`. Functions take
            arrays; for classes y is the index of the class.
        actions: their names, or for a function their values.
        classes: names of the classes, for a table.
        bounds: the smallest and largest amount, where the action is a number.
        risk: "mean"; "cvar:α", the mean of the worst share α; "exponential:λ", the certainty equivalent
            −(1/λ) log E exp(−λu).
        over: what the risk is about. "outcomes": u itself, noise and ignorance together. "parameters": E[u|θ], what
            is not known alone; noise is averaged out. Both are the same for "mean".
        abstain: the cost of an extra action "abstain"; or (cost, chance), where somebody else then takes the best
            action with that chance and the worst one otherwise.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-2, 2, 60)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, (x[:, 0] > 0).astype(int)), "laplace", steps=300)
        >>> predictive = credo.predict(jax.random.key(1), fit, np.array([[-2.0], [-0.3], [2.0]]))
        >>> decisions = credo.decide(predictive, [[0, -20], [-1, 0]], actions=["wait", "treat"], abstain=0.5)
        >>> decisions.action.tolist()
        ['wait', 'abstain', 'treat']
    """
    utility, risk = as_utility(utility, actions, classes, bounds), risk_of(risk)
    if over not in ("outcomes", "parameters"):
        raise InputError(f'over is "outcomes" or "parameters", got {over!r}.')
    if over == "parameters" and isinstance(predictive, Recalibrated):
        predictive.needs_parts('decide(over="parameters")')
    cost, right = abstain if isinstance(abstain, tuple) else (abstain, None)
    if cost is not None:
        check_abstain(cost, right)
    if isinstance(utility, Amount):
        if right is not None:
            raise InputError("With an amount as the action, abstain takes a cost alone: amounts have no worst one.")
        return _amounts(predictive, utility, risk, over, cost)
    _check_kind(predictive, utility)
    full = utility if cost is None else with_abstain(utility, cost, right)
    parts: list[dict[str, Any]] = [
        _rows(full, block, risk, over) for _, block in outcomes(predictive, full.breaks, _few(risk, over))
    ]
    merged: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    sure = np.stack([full.of(i, _point(predictive)) for i in range(len(full.actions))], 1)
    return Decisions(
        full.actions, _first_best(merged["values"]), plug_in=_first_best(sure), risk=risk, over=over,
        draws=_effective(predictive), utility=full, **merged,
    )  # fmt: skip


def _few(risk: Risk, over: str) -> int:
    """Means need few outcomes, and more than the smallest rule only for kinks; shares of outcomes need many."""
    return FEW // 3 if isinstance(risk, Mean) or over == "parameters" else FEW


def _check_kind(predictive: Predictive, utility: NamedActions) -> None:
    if predictive.kind != "classes":
        if utility.num_classes is not None:
            raise InputError(
                f"A table of utilities needs classes, but these outcomes are {predictive.kind}; use step_utility, "
                "newsvendor or a function u(action, outcome)."
            )
        return
    if utility.breaks:
        raise InputError("Utilities with thresholds need numbers, but these outcomes are classes; give a table.")
    count = predictive.probs.shape[1]
    if utility.num_classes not in (None, count):
        raise InputError(f"There are {count} classes but utilities for {utility.num_classes}; give one for each class.")


def _point(predictive: Predictive) -> np.ndarray:
    """The point prediction: the likeliest class, or the mean."""
    if predictive.kind == "classes":
        return predictive.probs.argmax(1)
    return predictive.mean.reshape(len(predictive)).astype(np.float64)


def _effective(predictive: Predictive) -> float:
    """How many equal draws the weights of the draws are worth: 1/Σ w²."""
    _, draws = next(iter(predictive.chunks()))
    weights = np.exp(np.asarray(draws.log_weights, np.float64))
    return float(weights.sum() ** 2 / (weights**2).sum())


def _first_best(values: np.ndarray) -> np.ndarray:
    top = values.max(1, keepdims=True)
    return np.asarray((values >= top - TIE * np.abs(values).max(1, keepdims=True)).argmax(1))


def _rows(utility: NamedActions, block: Outcomes, risk: Risk, over: str) -> dict[str, np.ndarray]:
    """Everything about the actions at a block of rows."""
    each = [utility.of(i, block.values, block.mass) for i in range(len(utility.actions))]
    by_draw = np.stack([block.mean(u) for u in each], -1)  # E[u|a, θ_k], [K, n, A]
    ideal = np.maximum.reduce(np.broadcast_arrays(*each))
    values = np.stack([criterion(block, u, risk, over) for u in each], -1)
    error = np.stack([block.error(u) for u in each], -1)
    return _summarise(
        block, by_draw, by_draw.max(-1), np.tensordot(block.weights, by_draw, 1).max(-1), ideal, values, error
    )


def _summarise(
    block: Outcomes,
    by_draw: np.ndarray,
    most: np.ndarray,
    top: np.ndarray,
    ideal: np.ndarray,
    values: np.ndarray,
    error: np.ndarray,
) -> dict[str, np.ndarray]:
    """Moments over draws, and what knowing more would add to the largest expected utility `top`."""
    weights = block.weights
    expected = np.tensordot(weights, by_draw, 1)
    first = by_draw >= by_draw.max(-1, keepdims=True)
    best = np.eye(by_draw.shape[-1])[first.argmax(-1)]
    return {
        "values": values,
        "expected": expected,
        "std": np.sqrt(np.tensordot(weights, (by_draw - expected) ** 2, 1)),
        "chance_best": np.tensordot(weights, best, 1),
        "value_of_parameters": np.maximum(weights @ most - top, 0.0),
        "value_of_outcome": np.maximum(weights @ block.mean(ideal) - top, 0.0),
        "error": error,
    }


def _amounts(predictive: Predictive, utility: Amount, risk: Risk, over: str, cost: float | None) -> Decisions:
    """Decisions whose action is a number, with or without abstaining."""
    low, high = amount_range(predictive, utility)
    exact = exact_amounts(predictive, utility, risk)
    parts, amounts = [], []
    for rows, block in outcomes(predictive, panels=AMOUNT_PANELS):
        best = best_amounts(utility, block, (low[rows], high[rows]), None if exact is None else exact[rows], risk, over)
        by_draw, most, top, ideal = block.mean(best.utility)[..., None], best.most, best.top, best.ideal
        values, error = criterion(block, best.utility, risk, over)[:, None], block.error(best.utility)[:, None]
        if cost is not None:
            by_draw = np.concatenate([by_draw, np.full_like(by_draw, -cost)], -1)
            values = np.concatenate([values, np.full_like(values, -cost)], -1)
            error = np.concatenate([error, np.zeros_like(error)], -1)
            most, top, ideal = (np.maximum(x, -cost) for x in (most, top, ideal))
        parts.append(_summarise(block, by_draw, most, top, ideal, values, error))
        amounts.append(best.amounts)
    merged: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    point = _point(predictive)
    alone = np.ones((1, len(point), 1))
    sure = Outcomes(point[None, :, None], alone, alone, np.ones(1))
    plain = best_amounts(utility, sure, (low, high), None, Mean(), over)
    names = (utility.name,) if cost is None else (utility.name, ABSTAIN)
    worth = [plain.utility[0, :, 0], *([] if cost is None else [np.full(len(point), -cost)])]
    return Decisions(
        names, _first_best(merged["values"]), plug_in=_first_best(np.stack(worth, 1)), risk=risk, over=over,
        draws=_effective(predictive), utility=utility, amounts=np.concatenate(amounts), plug_in_amounts=plain.amounts,
        abstain=cost, **merged,
    )  # fmt: skip
