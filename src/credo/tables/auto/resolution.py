"""From a table or a model and what the user said to what is fitted: nothing is left open."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from credo.core.numeric import host_arrays, host_targets
from credo.tables.auto import choice as rules
from credo.tables.auto.choice import AUTO, Choice
from credo.tables.auto.honest import checked, units_of, with_units
from credo.tables.auto.pilots import pilot
from credo.tables.auto.replan import pace, shortened
from credo.tables.auto.speed import Speed
from credo.tables.model import MODEL_OPTIONS, build, table_model
from credo.tables.rows.copies import merged
from credo.training.budget import left_of, seconds
from credo.training.clock import COMPILING

if TYPE_CHECKING:
    from credo.core.model import Model
    from credo.tables.encode.encoder import TableEncoder
    from credo.training.fit import Fit

LEAST = 0.15  # of a budget for the ensemble that takes the place of chains, though the pilot has spent it all


class Case(NamedTuple):
    """What is to be fitted.

    Attributes:
        task: "regression", "binary", "multiclass" or "count".
        data: (inputs, targets, weights), encoded.
        features: columns of the inputs.
        outputs: targets, or classes.
        model_of: makes the model from the name of a method, a network and options such as {"prior": "normal:1"}.
        parameters: of a network that is not said in words.
        simple: rows are arrays in memory, of which a pilot can hold some out where all have a weight.
        fixed_outputs: the network has as many outputs as it has; with a share of wrong labels two classes need two.
        looks: a pilot looks at the error bars of a prior that was named, too.
    """

    task: str
    data: Any
    features: int
    outputs: int
    model_of: Callable[[str, Any, dict[str, Any]], Model]
    parameters: int | None = None
    simple: bool = True
    fixed_outputs: bool = False
    looks: bool = True

    def choose(self, network: Any = None, allowed: float | None = None, speed: Speed | None = None) -> Choice:
        """The choice by the size of the data, for so many seconds."""
        found = rules.choose(
            self.task, len(self.data[1]), self.features, outputs=self.outputs, network=_words(network),
            parameters=self.parameters, seconds=allowed, speed=speed,
        )  # fmt: skip
        apart = self.simple and (np.asarray(self.data[2]) > 0).all()
        return found if apart else found._replace(rivals=())


def of_table(encoder: TableEncoder, data: Any) -> Case:
    """A table that an encoder has learned, and its encoded rows (inputs, targets, weights)."""
    targets = 1 if isinstance(encoder.target, str) else len(encoder.target)

    def model_of(method: str, network: Any, options: dict[str, Any]) -> Model:
        return table_model(encoder, network, options, method)

    outputs = len(encoder.classes or ()) or targets
    return Case(encoder.task, data[:3], len(encoder.feature_names), outputs, model_of)


def of_model(model: Model, data: Any) -> Case:
    """A model of the user's own, whose network, prior and likelihood stay.

    Rows that are read from disk, and inputs that are no single array, get no pilot.
    """
    inputs, targets = host_arrays(data[0]), host_targets(model.likelihood, data[1])
    one = jax.tree.map(lambda x: np.asarray(x[:1]), inputs)
    outputs = model.likelihood.num_outputs(targets)
    made = jax.eval_shape(lambda x: model.network.init(jax.random.key(0), x, outputs).params, one)
    features = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(one))
    task = {"real": "regression", "counts": "count", "classes": "multiclass"}[model.likelihood.kind]
    simple = isinstance(data, tuple | list) and not isinstance(data[0], dict | list | tuple | np.memmap)
    if simple:
        weights = np.ones(len(targets), np.float32) if len(data) < 3 or data[2] is None else data[2]
        data = (np.asarray(data[0]), np.asarray(data[1]), np.asarray(weights, np.float32))
    parameters = sum(math.prod(x.shape) for x in jax.tree.leaves(made))
    return Case(task, data, features, outputs, lambda *_: model, parameters, simple)


class Resolved(NamedTuple):
    """What is fitted.

    Attributes:
        words: "method", "network", "settings", "steps" and "batch_size", as the user might have said them.
        method, model: the objects.
        budget: what is left of the user's, or None.
        why: what "auto" chose, in a sentence; empty where a method was named.
        correction: of the likelihood, by the rows that a pilot had not seen.
        planned: seconds that it will take, compilation aside, where that is known.
    """

    words: dict[str, Any]
    method: Any
    model: Model
    budget: str | float | None = None
    why: str = ""
    correction: dict[str, Any] | None = None
    planned: float | None = None

    def fit(self, key: jax.Array, data: Any, **how: Any) -> Fit:
        """`credo.fit` with all of this, and error bars that unseen rows have corrected."""
        from credo.training import fit as training

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
    """
    begun, settings = begun or (time.perf_counter(), COMPILING.seconds), dict(settings or {})
    words = {"method": method, "network": network, "settings": settings, "steps": steps, "batch_size": batch_size}
    choice = None
    if method == AUTO:
        choice = _chosen(case, network, settings, budget, seed, groups, begun, announce, measure)
        words = choice.words(network, settings, steps, batch_size, budget)
        why, budget = choice.why, None if budget is None else left_of(budget, *begun)
    made, options = build(words["method"], words["settings"])
    made = with_units(made, case.data, groups) if why and case.simple else made
    model = case.model_of(words["method"], words["network"], options)
    if choice is None:
        return Resolved(words, made, model, budget, why)
    return Resolved(words, made, model, budget, why, choice.correction, choice.seconds or None)


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
) -> Choice:
    """The choice after its pilot."""
    allowed, rows, speed = None if budget is None else seconds(budget), len(case.data[1]), None
    began = time.perf_counter(), COMPILING.seconds

    def model_of(choice: Choice, rival: dict[str, Any]) -> Model:
        said = choice.words(network, settings, None, None, budget)
        options = {name: value for name, value in said["settings"].items() if name in MODEL_OPTIONS}
        return case.model_of(choice.method, said["network"], options | rival)

    choice = case.choose(network, allowed)
    deep = rules.deep_network(case.task)
    parameters = case.parameters or rules.count(_words(network) or deep, case.task, case.features)
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
    found = pilot(choice, lambda rival: model_of(choice, rival), [case.data], [seed], units)[0]
    if budget is None or speed is None or not choice.rivals:
        return found
    left, whole = left_of(budget, *began), seconds(budget)
    slower = pace(whole - left, rules.pilot_seconds(speed, len(choice.rivals)))
    return shortened(found, speed, left, slower) or case.choose(network, max(left, LEAST * whole))


def _words(network: Any) -> str | None:
    return network if isinstance(network, str) else None
