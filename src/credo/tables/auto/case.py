"""What is to be fitted: encoded rows of a table, or a model and data of the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from credo.core.numeric import host_arrays, host_targets
from credo.tables.auto import choice as rules
from credo.tables.auto.choice import Choice
from credo.tables.auto.speed import Speed
from credo.tables.model import table_model

if TYPE_CHECKING:
    from credo.core.model import Model
    from credo.tables.encode.encoder import TableEncoder

SHARE_OF_ZEROS = 0.05  # of counts, from where on some may be zeros of their own


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
        likelihoods: in words, that the values of the target suggest beside the usual one.
        levels: how many codes each column of codes has; a network learns a vector for each.
        encoded: rows are those of a table, whose network is open.
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
    likelihoods: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    encoded: bool = False

    @property
    def can_be_held_out(self) -> bool:
        """Rows are arrays in memory, and each weighs something: models can be asked about those they did not see."""
        return self.simple and bool((np.asarray(self.data[2]) > 0).all())

    def choose(self, network: Any = None, allowed: float | None = None, speed: Speed | None = None) -> Choice:
        """The choice by the size of the data, for so many seconds."""
        choice = rules.choose(
            self.task, len(self.data[1]), self.features, outputs=self.outputs, network=network_words(network),
            parameters=self.parameters, seconds=allowed, speed=speed, levels=self.levels,
        )  # fmt: skip
        return choice if self.can_be_held_out else choice._replace(rivals=())


def of_table(encoder: TableEncoder, data: Any) -> Case:
    """A table that an encoder has learned, and its encoded rows (inputs, targets, weights)."""
    targets = 1 if isinstance(encoder.target, str) else len(encoder.target)

    def model_of(method: str, network: Any, options: dict[str, Any]) -> Model:
        return table_model(encoder, network, options, method)

    outputs = len(encoder.classes or ()) or targets
    likelihoods = _suggested(encoder, np.asarray(data[1]))
    return Case(
        encoder.task,
        data[:3],
        len(encoder.feature_names),
        outputs,
        model_of,
        likelihoods=likelihoods,
        levels=encoder.levels,
        encoded=True,
    )


def _suggested(encoder: TableEncoder, targets: np.ndarray) -> tuple[str, ...]:
    """Likelihoods, in words, that the target's values suggest beside the usual one."""
    if encoder.positive and isinstance(encoder.target, str):
        return ("log_normal",)
    if encoder.ordered:
        return ("ordinal",)
    if encoder.task == "count" and np.mean(targets == 0) > SHARE_OF_ZEROS:
        return ("zero_inflated_negative_binomial",)
    return ()


def of_model(model: Model, data: Any) -> Case:
    """A model of the user's own, whose network, prior and likelihood stay.

    Rows that are read from disk, and inputs that are no single array, get no pilot.
    """
    inputs, targets = host_arrays(data[0]), host_targets(model.likelihood, data[1])
    one = jax.tree.map(lambda x: np.asarray(x[:1]), inputs)
    outputs = model.likelihood.num_outputs(targets)
    params = jax.eval_shape(lambda x: model.network.init(jax.random.key(0), x, outputs).params, one)
    features = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(one))
    task = {"real": "regression", "counts": "count", "classes": "multiclass"}[model.likelihood.kind]
    simple = isinstance(data, tuple | list) and not isinstance(data[0], dict | list | tuple | np.memmap)
    if simple:
        weights = np.ones(len(targets), np.float32) if len(data) < 3 or data[2] is None else data[2]
        data = (np.asarray(data[0]), np.asarray(data[1]), np.asarray(weights, np.float32))
    parameters = sum(math.prod(x.shape) for x in jax.tree.leaves(params))
    return Case(task, data, features, outputs, lambda *_: model, parameters, simple)


def network_words(network: Any) -> str | None:
    """A network that is said in words; None where it is an object, or nobody names one."""
    return network if isinstance(network, str) else None
