"""The outcome of a fit in sentences."""

import dataclasses
from collections.abc import Callable, Iterable
from functools import cached_property


@dataclasses.dataclass(frozen=True)
class Status:
    """Did the fit work? `outcome` is "finished", "interrupted", "stopped by a callback", "stopped by the
    disk" (it is full; what was drawn is kept) or "failed".

    `ok` is False for failed fits alone. `notes` say what happened during the fit; `alarms` say why the result may be
    wrong, and are computed when first read.
    """

    ok: bool
    outcome: str
    notes: tuple[str, ...] = ()
    find_alarms: Callable[[], tuple[str, ...]] = dataclasses.field(default=tuple, repr=False, compare=False)

    @staticmethod
    def of(outcome: str, notes: Iterable[str], find_alarms: Callable[[], tuple[str, ...]] = tuple) -> "Status":
        """A status from the loop's outcome, notes, and a function that computes the alarms."""
        return Status(outcome != "failed", outcome, tuple(dict.fromkeys(notes)), find_alarms)

    @cached_property
    def alarms(self) -> tuple[str, ...]:
        """Signs that the posterior should not be believed, each with what to do."""
        return self.find_alarms()

    def __str__(self) -> str:
        first = f"The fit {self.outcome if self.outcome == 'finished' else 'was ' + self.outcome}."
        return " ".join(dict.fromkeys([first, *self.notes, *self.alarms]))
