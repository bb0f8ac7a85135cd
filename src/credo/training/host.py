"""The position of a fit, without its arrays."""

import dataclasses
from typing import Any


@dataclasses.dataclass
class Host:
    """Everything about a fit under way that is not an array (JSON, part of every checkpoint)."""

    stage: int = 0
    phase: int = 0
    step: int = 0
    steps: int = 0  # length of the phase; under a budget the current estimate
    lowered: int = 0  # how often the step size was lowered in this stage
    seconds: float = 0.0  # of the processes before this one, all of them and those spent compiling
    compiling: float = 0.0
    before: float = 0.0  # seconds that had passed when the main phase began
    saves: int = 0  # how many checkpoints there were: a phase that starts again counts its steps anew, but not these
    notes: list[str] = dataclasses.field(default_factory=list)
    segments: list[str] = dataclasses.field(default_factory=list)
    outcome: str = "running"
    fingerprint: str = ""

    @staticmethod
    def of(document: dict[str, Any]) -> "Host":
        """The host of a checkpoint's record; TypeError where a field has another type."""
        host, defaults = Host(**document), Host()
        for field in dataclasses.fields(Host):
            value, kind = vars(host)[field.name], type(vars(defaults)[field.name])
            texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
            if not isinstance(value, kind) or (kind is list and not texts):
                raise TypeError(f"{field.name} is {value!r}")
        return host
