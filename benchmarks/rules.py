"""What a record depends on besides its own settings: the rules of `auto`, and what baselines choose from."""

from types import ModuleType
from typing import Any

from credo.evaluation.baselines import regression, tuning
from credo.tables.auto import choice, fit_set, model_set, pilots, speed

OF_CLASSES = "CLASSES"  # the rules that only tasks with classes know


def rules(task: str) -> list[tuple[str, Any]]:
    """All that `auto` decides by on a task: with other rules its records are others."""
    skipped = (OF_CLASSES,) if task in ("regression", "count") else ()
    return [pair for module in (choice, pilots, speed, model_set, fit_set) for pair in _constants(module, skipped)]


def baseline_rules(name: str, task: str) -> list[tuple[str, Any]]:
    """All that a baseline chooses from; a line chooses nothing."""
    if task != "regression" or name == "linear":
        return []
    return [(key, str(value)) for key, value in _constants(regression) + _constants(tuning)]


def _constants(module: ModuleType, skipped: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    return [
        (f"{module.__name__}.{name}", value)
        for name, value in sorted(vars(module).items())
        if name.isupper() and name not in ("TYPE_CHECKING", *skipped)
    ]
