"""The outcome of a fit in sentences."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Status:
    """Did the fit work? `outcome` is "finished", "interrupted", "stopped by a callback" or "failed"."""

    ok: bool
    outcome: str
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(outcome: str, notes: list[str]) -> "Status":
        """A status from the loop's outcome and everything there is to say."""
        return Status(outcome != "failed", outcome, tuple(dict.fromkeys(notes)))

    def __str__(self) -> str:
        return " ".join(
            [f"The fit {self.outcome if self.outcome == 'finished' else 'was ' + self.outcome}.", *self.notes]
        )
