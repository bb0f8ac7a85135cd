"""A method and a model as plain data, for `Fit.config` and for files."""

import dataclasses
from typing import Any

import jax
import numpy as np

from credo.core.short import name_of
from credo.core.tree import field_values
from credo.registry import method_name


def plain(value: Any) -> Any:
    """An object as JSON types: dataclasses by name and fields, arrays by shape where they are not single numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {name: plain(part) for name, part in field_values(value).items()}
        return {"type": type(value).__name__} | fields
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return value.item() if np.size(value) == 1 else {"array": list(np.shape(value))}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return name_of(value)


def beta_of(settings: Any) -> float:
    """β of the method that made the posterior, from its settings as `plain` gives them; combinators hold it inside."""
    while isinstance(settings, dict) and "beta" not in settings:
        settings = settings.get("second", settings.get("method"))
    # A chain that starts at q samples the posterior itself, whatever β was for q.
    if not isinstance(settings, dict) or settings.get("inference") == "chain":
        return 1.0
    return float(settings["beta"])


def describe(method: Any, model: Any) -> dict[str, Any]:
    """The settings of a method and a model. β and T are always there: 1 is Bayes."""
    settings = plain(method)
    return {
        "method": method_name(method),
        "settings": settings,
        "model": plain(model),
        "beta": beta_of(settings),
        "temperature": plain(model.temperature),
    }
