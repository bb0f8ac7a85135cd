"""Is it right? Scores, diagnostics, recalibration, the audit, comparisons and baselines."""

from typing import Any

_MODULES = ("audit", "baselines", "comparison", "diagnostics", "metrics", "recalibration")


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module 'credo.evaluation' has no attribute {name!r}; it has {', '.join(_MODULES)}")
    return importlib.import_module(f"credo.evaluation.{name}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
