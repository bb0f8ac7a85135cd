"""From words to objects: the network, prior, likelihood and method that a table gets, as a command line says them."""

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from credo import likelihoods, priors
from credo.core.model import Model
from credo.errors import InputError
from credo.likelihoods.defaults import default_likelihood
from credo.networks.mlp import MLP, mlp
from credo.networks.shallow import Shallow, shallow
from credo.registry import did_you_mean, find
from credo.tables.encode.encoder import TableEncoder

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
PRIORS: dict[str, Callable[..., Any]] = {
    "normal": priors.normal,
    "fan_in_normal": priors.fan_in_normal,
    "laplace": priors.laplace,
    "student_t": priors.student_t,
    "scale_mixture": priors.scale_mixture,
    "node_hierarchy": priors.node_hierarchy,
}
LIKELIHOODS: dict[str, tuple[str, ...]] = {
    "regression": ("gaussian", "student_t", "heteroscedastic", "heteroscedastic_t"),
    "binary": ("bernoulli", "categorical", "mislabelled"),
    "multiclass": ("categorical", "mislabelled"),
    "count": ("negative_binomial", "poisson"),
}
MODEL_OPTIONS = ("prior", "likelihood", "noise", "temperature")
MAY_BE_ZERO = ("warmup", "jitter", "beta", "fresh")


def parse_network(text: str) -> MLP | Shallow:
    """A network from "mlp:50,50" or "mlp:50,50:tanh" ("mlp:" alone is a linear model), or from "shallow:8" or
    "shallow:8:intercept:tanh": one hidden layer, what stands beside it, its activation.

    Example:
        >>> parse_network("mlp:50,20:tanh").widths
        (50, 20)
        >>> parse_network("shallow:8").beside
        'linear'
    """
    name, *rest = text.replace(" ", "").split(":")
    if name == "shallow" and 1 <= len(rest) <= 3 and rest[0].isdecimal():
        return shallow(int(rest[0]), *rest[1:])
    widths = [width for width in rest[0].split(",") if width] if rest else []
    if name != "mlp" or not 1 <= len(rest) <= 2 or not all(width.isdecimal() for width in widths):
        raise InputError(
            f'Unknown network {text!r}: write "mlp:50,50" or, with an activation, "mlp:50,50:tanh", or "shallow:8" for '
            "one layer of nodes beside a linear part."
        )
    activation = rest[1] if len(rest) > 1 else "relu"
    return mlp([int(width) for width in widths], activation)


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
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in settings.items():
        if key in fields:
            own[key] = _fitting(value, hints[key], key, method)
        elif key in MODEL_OPTIONS:
            rest[key] = value
        else:
            known = [*fields, *MODEL_OPTIONS]
            raise InputError(
                f"{method} has no setting {key!r}.{did_you_mean(key, known)} Its settings are {', '.join(fields)}; "
                f"those of the model are {', '.join(MODEL_OPTIONS)}."
            )
    return cls(**own), rest


def _fitting(value: Any, hint: Any, key: str, method: str) -> Any:
    """The value as the type that the setting has, or a sentence."""
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if isinstance(value, str) and value.lower() == "none" and types.NoneType in kinds:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    finite = number and abs(value) <= sys.float_info.max  # whole numbers may be longer than any float
    if int in kinds and float not in kinds:
        good, wanted = finite and value == int(value) and abs(value) < 2**31, "a whole number below 2³¹"
        value = int(value) if good else value
    elif float in kinds:
        good, wanted = finite, "a number"
        value = float(value) if good else value
    elif bool in kinds:
        good, wanted = isinstance(value, bool), "true or false"
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
    options, usual = dict(options or {}), recipe(method)
    if encoder.task == "regression" and "likelihood" not in options and "noise" not in options and usual.likelihood:
        options["likelihood"] = usual.likelihood
    unknown = [key for key in options if key not in MODEL_OPTIONS]
    if unknown:
        raise InputError(f"Unknown model option {unknown[0]!r}; there are {', '.join(MODEL_OPTIONS)}.")
    temperature = options.get("temperature", 1.0)
    if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise InputError(f"temperature must be a positive number, got {temperature!r}.")
    net = parse_network(usual.network if network is None else network)
    return Model(
        net,
        parse_prior(options["prior"]) if "prior" in options else default_prior(encoder.task, method, net),
        _likelihood(encoder, options.get("likelihood"), options.get("noise")),
        float(temperature),
        None,
    )


def default_prior(task: str, method: Any = METHOD, network: Any = None) -> Any:
    """The prior of a table's network: a fan-in scaled normal, wider for classes, whose logits may have to be large; the
    node hierarchy for a shallow network."""
    if isinstance(network, Shallow):
        return priors.node_hierarchy()
    usual = recipe(method)
    return priors.fan_in_normal(usual.scale if task in ("regression", "count") else usual.class_scale)


def parse_prior(text: Any) -> Any:
    """A prior from its name and numbers: "normal:1.0", "student_t:3,1"."""
    name, numbers = _name_and_numbers(text, "prior", "normal:1.0")
    if name not in PRIORS:
        raise InputError(f"Unknown prior {name!r}.{did_you_mean(name, PRIORS)} There are {', '.join(PRIORS)}.")
    return _called(PRIORS[name], numbers, text)


def _likelihood(encoder: TableEncoder, text: Any, noise: Any) -> Any:
    task, classes = encoder.task, encoder.classes
    if text is None:
        likelihood = default_likelihood(task, len(classes) if task == "multiclass" and classes else None)
        likelihood = _centred(likelihood, encoder)
        return likelihood if noise is None else _with_noise(likelihood, noise, encoder)
    likelihood = _centred(parse_likelihood(text, task, len(classes or ())), encoder)
    return likelihood if noise is None else _with_noise(likelihood, noise, encoder)


def _centred(likelihood: Any, encoder: TableEncoder) -> Any:
    """Counts with their mean as the rate of an output of 0: priors are centred there, and large counts are no further
    away than small ones."""
    if encoder.task != "count":
        return likelihood
    return dataclasses.replace(likelihood, offset=float(np.log(encoder.count_mean)))


def parse_likelihood(text: Any, task: str = "regression", num_classes: int = 0) -> Any:
    """A likelihood of a task from its name and numbers: "student_t:4", "heteroscedastic:0.01"."""
    name, numbers = _name_and_numbers(text, "likelihood", "student_t:4")
    known = LIKELIHOODS[task]
    if name not in known:
        raise InputError(
            f"A {task} target has no likelihood {name!r}.{did_you_mean(name, known)} It takes {', '.join(known)}."
        )
    own = [num_classes, *numbers] if task in ("binary", "multiclass") and name != "bernoulli" else numbers
    return _called(getattr(likelihoods, name), own, text)


def _with_noise(likelihood: Any, noise: Any, encoder: TableEncoder) -> Any:
    """The likelihood with its noise known on the target's own scale, learned or inferred."""
    if "noise" not in {field.name for field in dataclasses.fields(likelihood)}:
        raise InputError("noise is a setting of the gaussian and student_t likelihoods; leave it out here.")
    if noise in ("learned", "inferred"):
        return dataclasses.replace(likelihood, noise=noise)
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 < noise < math.inf:
        raise InputError(f'noise must be a positive number, "learned" or "inferred", got {noise!r}.')
    scale = noise / encoder.target_scale
    known = float(scale) if np.ndim(scale) == 0 else scale.astype(np.float32)
    return dataclasses.replace(likelihood, noise="known", scale=known)


def _name_and_numbers(text: Any, what: str, example: str) -> tuple[str, list[float]]:
    name, _, rest = str(text).partition(":")
    try:
        return name.strip(), [float(number) for number in rest.split(",")] if rest else []
    except ValueError:
        raise InputError(f"A {what} is written as {example}, got {text!r}.") from None


def _called(builder: Callable[..., Any], numbers: list[float], text: Any) -> Any:
    try:
        return builder(*numbers)
    except TypeError:
        raise InputError(f"{text!r} has more numbers than {builder.__name__} takes.") from None
