"""From plain parameters (names, lists, dicts) to the parts of a model and a method."""

import dataclasses
from typing import Any

from credo.core.distribution import Prior
from credo.core.likelihood import Likelihood
from credo.core.network import Network
from credo.errors import InputError
from credo.networks import mlp
from credo.registry import did_you_mean, find, likelihoods_of
from credo.tables.model import METHOD, default_prior, parse_likelihood, parse_network, parse_prior, recipe

LIKELIHOODS = {"regressor": likelihoods_of("regression", "count"), "classifier": likelihoods_of("binary", "multiclass")}


def make_network(network: Any, method: Any = METHOD) -> Any:
    """A network from words, a list of widths or itself; None is the method's.

    Example:
        >>> make_network("mlp:50,20:tanh").widths
        (50, 20)
    """
    network = recipe(method).network if network is None else network
    if isinstance(network, str):
        return parse_network(network)
    if isinstance(network, list | tuple):
        return mlp(network)
    if isinstance(network, type) or not isinstance(network, Network):
        raise InputError(
            f'network must be a string such as "mlp:50,50", a list of widths or a credo network, got {network!r}.'
        )
    return network


def make_prior(prior: Any, kind: str, method: Any = METHOD, network: Any = None) -> Any:
    """A prior from words ("normal:0.5") or itself; None is that of a table for a "regressor" or "classifier"."""
    if prior is None:
        return default_prior("regression" if kind == "regressor" else "multiclass", method, network)
    if isinstance(prior, str):
        return parse_prior(prior)
    if not isinstance(prior, Prior):
        raise InputError(f'prior must be a string such as "normal:1.0" or a credo prior, got {prior!r}.')
    return prior


def make_likelihood(likelihood: Any, kind: str, num_classes: int | None = None, method: Any = METHOD) -> Any:
    """A likelihood from its name or itself, checked to describe the targets of a "regressor" or "classifier"."""
    names = LIKELIHOODS[kind]
    if likelihood is None and kind == "regressor" and recipe(method).likelihood:
        return parse_likelihood(recipe(method).likelihood)
    if likelihood is None:
        likelihood = names[0] if num_classes in (None, 2) else "categorical"
    if isinstance(likelihood, str):
        return parse_likelihood(likelihood, kind, num_classes or 0, names)
    if not isinstance(likelihood, Likelihood) or (likelihood.kind == "classes") != (kind == "classifier"):
        targets = "classes" if kind == "classifier" else "numbers"
        raise InputError(f"A {kind} takes a likelihood for {targets}, such as {', '.join(names)}; got {likelihood!r}.")
    return likelihood


def make_method(method: Any, settings: dict[str, Any] | None) -> Any:
    """A method from its name, class or itself, with some of its hyper-parameters set.

    Example:
        >>> make_method("hmc", {"chains": 2}).chains
        2
    """
    if isinstance(method, str):
        method = find(method).load()
    target = method if isinstance(method, type) else type(method)
    if not dataclasses.is_dataclass(target):
        raise InputError(f"method must be a method of credo or its name, got {method!r}.")
    names = [field.name for field in dataclasses.fields(target)]
    for name in settings or {}:
        if name not in names:
            hint = did_you_mean(str(name), names)
            raise InputError(f"{target.__name__} has no setting {name!r}.{hint} It has {', '.join(names)}.")
    if isinstance(method, type):
        return method(**(settings or {}))
    return dataclasses.replace(method, **(settings or {}))
