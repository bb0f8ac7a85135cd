"""From words to objects: the network, prior, likelihood and method that a table gets, as a command line says them."""

import dataclasses
import math
import numbers
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credo import priors
from credo.core.model import Model
from credo.core.network import Network
from credo.core.tree import size
from credo.errors import InputError
from credo.likelihoods.defaults import default_likelihood
from credo.likelihoods.positive import PositiveOutput
from credo.registry import LIKELIHOODS, NETWORKS, PRIORS, TASKS, did_you_mean, find, likelihoods_of
from credo.tables.encode.encoder import TableEncoder
from credo.tables.read import parse
from credo.tables.vectors import with_vectors
from credo.tables.words import build_entry, name_and_rest, parts

METHOD = "bayes_by_backprop"


class Recipe(NamedTuple):
    """What a table gets where nobody says otherwise."""

    network: str = "mlp:50"
    scale: float = 2.0  # of the fan-in prior of real targets and counts
    class_scale: float = 4.0  # of classes: at smaller scales logits stay too small
    likelihood: str | None = None  # of real targets; None: Gaussian with learned noise


# Methods whose draws can make use of a richer model. A floor of a hundredth of the target's standard deviation keeps
# heteroscedastic noise from spikes at rows that repeat.
RECIPES = {
    "ensemble_chains": Recipe("mlp:32,32,32:tanh", 3.0, 4.0, "heteroscedastic:0.01"),
    "gibbs": Recipe("shallow:8"),
    "reversible_jump": Recipe("shallow:12"),
}
MODEL_OPTIONS = ("prior", "likelihood", "noise", "temperature")
MAY_BE_ZERO = ("warmup", "jitter", "beta", "fresh", "aside")


def parse_network(text: str) -> Any:
    """A network of rows from "mlp:50,50" or "mlp:50,50:tanh" ("mlp:" alone is a linear model), or from "shallow:8" or
    "shallow:8:intercept:tanh": arguments of its builder with colons between.

    Example:
        >>> parse_network("mlp:50,20:tanh").widths
        (50, 20)
        >>> parse_network("shallow:8").beside
        'linear'
    """
    name, colon, rest = text.replace(" ", "").partition(":")
    row = NETWORKS.get(name)
    if row is None or row.inputs != "rows" or not colon:
        examples = " or ".join(row.example for row in NETWORKS.values() if row.inputs == "rows")
        what = "is not known" if row is None else f"takes {row.inputs}"
        raise InputError(f"The network {text!r} {what}; one of a table's rows is written as {examples}.")
    return build_entry(row, rest.split(":"), text)


def num_parameters(network: Network, features: int, outputs: int) -> int:
    """Weights of a network of rows, without making one."""
    inputs = jax.ShapeDtypeStruct((1, features), np.float32)
    return size(jax.eval_shape(lambda x: network.init(jax.random.key(0), x, outputs).params, inputs))


def parse_value(text: str) -> int | float | bool | str:
    """A whole number, a number, true or false, or else the text itself."""
    lower = text.strip().lower()
    if lower in ("true", "false"):
        return lower == "true"
    for kind in (int, float):
        try:
            return kind(lower)
        except ValueError:
            continue
    return text.strip()


def parse_settings(items: Iterable[str]) -> dict[str, int | float | bool | str]:
    """Settings from "key=value" words."""
    settings: dict[str, int | float | bool | str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or not value.strip():
            raise InputError(f"A setting is written key=value, such as learning_rate=0.01, got {item!r}.")
        if key in settings:
            raise InputError(f"The setting {key!r} is given twice; give it once.")
        settings[key] = parse_value(value)
    return settings


# ---------------------------------------------------------------------- methods
def build(method: str, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The method with its own settings, and those that are options of the model."""
    cls = find(method).load()
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    arguments: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in settings.items():
        if key in fields:
            arguments[key] = _fitting(value, hints[key], key, method)
        elif key in MODEL_OPTIONS:
            rest[key] = value
        else:
            names = [*fields, *MODEL_OPTIONS]
            raise InputError(
                f"{method} has no setting {key!r}.{did_you_mean(key, names)} Its settings are {', '.join(fields)}; "
                f"those of the model are {', '.join(MODEL_OPTIONS)}."
            )
    return cls(**arguments), rest


def _fitting(value: Any, hint: Any, key: str, method: str) -> Any:
    """The value as the type that the setting has, or a sentence."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(value, str) and value.lower() == "none" and types.NoneType in kinds:
        return None
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    finite = number and abs(value) <= sys.float_info.max  # whole numbers may be longer than any float
    if int in kinds and float not in kinds:
        good, wanted = finite and value == int(value) and abs(value) < 2**31, "a whole number below 2³¹"
        value = int(value) if good else value
    elif float in kinds:
        good, wanted = finite, "a number"
        value = float(value) if good else value
    elif bool in kinds:
        good, wanted = isinstance(value, bool | np.bool_), "true or false"
    else:
        good, wanted = isinstance(value, str), "a word"
    if not good:
        raise InputError(f"The setting {key!r} of {method} takes {wanted}, got {value!r}.")
    if number and (value < 0 or (value == 0 and key not in MAY_BE_ZERO)):
        raise InputError(f"The setting {key!r} of {method} must be positive, got {value}.")
    return value


# ---------------------------------------------------------------------- models
def recipe(method: Any = METHOD) -> Recipe:
    """The defaults of a table under a method, by its name, class or itself.

    Example:
        >>> recipe("map").network
        'mlp:50'
    """
    if not isinstance(method, str):
        kind = method if isinstance(method, type) else type(method)
        return next((r for name, r in RECIPES.items() if find(name).load() is kind), Recipe())
    return RECIPES.get(method, Recipe())


def table_model(
    encoder: TableEncoder,
    network: str | None = None,
    options: Mapping[str, Any] | None = None,
    method: Any = METHOD,
) -> Model:
    """The model of a table: a perceptron, a prior and a likelihood; where nothing is said, those of `recipe(method)`.

    Args:
        encoder: the learned encoder of the table.
        network: as `parse_network` reads it.
        options: "prior" ("normal:1.0"), "likelihood" ("student_t:4"), "noise" (a number on the scale of the target,
            "learned" or "inferred") and "temperature".
        method: the method or its name.
    """
    options, defaults = dict(options or {}), recipe(method)
    if encoder.task == "regression" and "likelihood" not in options and "noise" not in options and defaults.likelihood:
        options["likelihood"] = defaults.likelihood
    unknown = [key for key in options if key not in MODEL_OPTIONS]
    if unknown:
        raise InputError(f"Unknown model option {unknown[0]!r}; there are {', '.join(MODEL_OPTIONS)}.")
    temperature = options.get("temperature", 1.0)
    if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise InputError(f"temperature must be a positive number, got {temperature!r}.")
    net = parse_network(defaults.network if network is None else network)
    prior = parse_prior(options["prior"]) if "prior" in options else default_prior(encoder.task, method, net)
    return Model(
        *with_vectors(net, prior, encoder),
        _likelihood(encoder, options.get("likelihood"), options.get("noise")),
        float(temperature),
        None,
    )


def default_prior(task: str, method: Any = METHOD, network: Any = None) -> Any:
    """The prior of a table's network: a fan-in scaled normal, wider for classes, whose logits may have to be large; or
    the network's own."""
    row = NETWORKS.row_of(network)
    if row and row.prior:
        return parse_prior(row.prior)
    defaults = recipe(method)
    return priors.fan_in_normal(defaults.scale if task in ("regression", "count") else defaults.class_scale)


def parse_prior(text: Any) -> Any:
    """A prior from its name and arguments: "normal:1.0", "student_t:3,1", "hierarchical:half_cauchy(0.5),global"."""
    name, rest = name_and_rest(text)
    return build_entry(PRIORS.find(name), parts(rest), text)


def _likelihood(encoder: TableEncoder, text: Any, noise: Any) -> Any:
    task, classes = encoder.task, encoder.classes
    if text is None:
        likelihood = default_likelihood(task, len(classes) if task == "multiclass" and classes else None)
        likelihood = _placed(likelihood, encoder)
        return likelihood if noise is None else _with_noise(likelihood, noise, encoder)
    likelihood = _placed(parse_likelihood(text, task, len(classes or ())), encoder)
    check_order(likelihood, encoder.target_encoder)
    return likelihood if noise is None else _with_noise(likelihood, noise, encoder)


def _placed(likelihood: Any, encoder: TableEncoder) -> Any:
    """Counts and positive numbers with their mean at an output of 0: priors are centred there, and large counts are no
    further away than small ones."""
    if isinstance(likelihood, PositiveOutput):
        check_positive(likelihood, encoder.target_encoder)
        return likelihood.standardised(encoder.target_shift, encoder.target_scale)
    if encoder.task != "count":
        return likelihood
    return dataclasses.replace(likelihood, offset=float(np.log(encoder.count_mean)))


def check_positive(likelihood: Any, target: Any) -> None:
    """A sentence where the likelihood is of numbers above 0, and training rows of the target have others."""
    for name, lowest in zip(target.names, target.lowest):
        if isinstance(likelihood, PositiveOutput) and not lowest > 0:
            raise InputError(
                f"A {type(likelihood).__name__} describes numbers above 0, and '{name}' has {lowest:g}: take another "
                "likelihood, or leave such rows out."
            )


def check_order(likelihood: Any, target: Any) -> None:
    """A sentence where the likelihood is of classes in order, and those of the target have none."""
    row = LIKELIHOODS.row_of(likelihood)
    if row is not None and row.ordered and not target.numbers:
        raise InputError(
            f"{row.name} is for classes that are numbers in order, such as grades, and those of '{target.name}' are "
            f"{parse.listed(target.classes)}: number them in their order, or take categorical."
        )


def parse_likelihood(text: Any, task: str = "regression", num_classes: int = 0, names: Sequence[str] = ()) -> Any:
    """A likelihood from its name and arguments: "student_t:4", "heteroscedastic:0.01".

    Args:
        text: the words.
        task: whose likelihoods there are to choose from, for the sentence also "regressor" or "classifier".
        num_classes: of a task of classes.
        names: the likelihoods to choose from, where not those of the task.
    """
    name, rest = name_and_rest(text)
    names = names or likelihoods_of(task)
    if name not in names:
        owner = f"A {task} target" if task in TASKS else f"A {task}"
        raise InputError(f"{owner} has no likelihood {name!r}.{did_you_mean(name, names)} It takes {', '.join(names)}.")
    return build_entry(LIKELIHOODS[name], parts(rest), text, num_classes=num_classes)


def _with_noise(likelihood: Any, noise: Any, encoder: TableEncoder) -> Any:
    """The likelihood with its noise known on the target's own scale, learned or inferred."""
    if "noise" not in {field.name for field in dataclasses.fields(likelihood)}:
        raise InputError("noise is a setting of the gaussian and student_t likelihoods; leave it out here.")
    if noise in ("learned", "inferred"):
        return dataclasses.replace(likelihood, noise=noise)
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 < noise < math.inf:
        raise InputError(f'noise must be a positive number, "learned" or "inferred", got {noise!r}.')
    scale = noise / encoder.target_scale
    fixed = float(scale) if np.ndim(scale) == 0 else scale.astype(np.float32)
    return dataclasses.replace(likelihood, noise="known", scale=fixed)
