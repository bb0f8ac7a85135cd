"""A fit that should not be believed warns once, in the sentence that its status has."""

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from credo.errors import ConvergenceWarning

# Alarms about whether the draws are those of the posterior; the others judge the model, or how long to go on.
IDS = ("divergences", "energy", "modes", "unconverged", "unfinished", "weights")
_SILENT = ContextVar("silent", default=False)


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """For code that reports alarms itself: fits inside neither warn nor compute alarms."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def not_converged(fit: Any) -> str | None:
    """Alarms about the convergence of chains and weighted draws, in one line; None where there are none."""
    alarms = [str(alarm) for alarm in fit.alarms if alarm.id in IDS] if _has_draws(fit.posterior) else []
    return " ".join(alarms) or None


def warn(fit: Any, stacklevel: int = 3, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn of a fit that did not converge, as from the caller of the caller."""
    if _SILENT.get():
        return
    sentence = not_converged(fit)
    if sentence is not None:
        warnings.warn(sentence, category, stacklevel=stacklevel)


def _has_draws(posterior: Any) -> bool:
    """Are there stored draws in memory? Those on disk are read only when `status` is."""
    from credo.core.capabilities import StoredPosterior, ask

    stored = ask(posterior, StoredPosterior)
    return (stored.available or 0) > 1 and not stored.on_disk
