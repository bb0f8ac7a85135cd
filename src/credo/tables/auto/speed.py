"""How long a gradient takes, by rule; `credo.tables.auto.probe` measures it."""

from __future__ import annotations

from typing import NamedTuple

# Seconds of a gradient: so many, and one for each RATES of rows times parameters. Measured on two cores of a processor
# and, for one table of 7,373 rows, on an H200; those of TPUs are a guess.
OVERHEAD = {"cpu": 3e-4, "gpu": 3e-5, "tpu": 3e-5}
RATES = {"cpu": 6e9, "gpu": 4e11, "tpu": 2e11}
BATCH = 128


class Speed(NamedTuple):
    """Seconds in which every one of `chains` chains gets one gradient, on all rows (`full`) and on a minibatch; and
    seconds that compiling took where this was measured."""

    full: float
    batch: float
    chains: int
    compiling: float = 0.0

    @staticmethod
    def by_rule(rows: int, size: int, device: str, chains: int) -> Speed:
        """What a gradient takes on the machines that the rule was measured on.

        Example:
            >>> round(Speed.by_rule(400, 3_000, "cpu", 1).full, 6)
            0.0005
        """

        def one(count: int) -> float:
            return chains * (OVERHEAD[device] + count * size / RATES[device])

        return Speed(one(rows), one(min(BATCH, rows)), chains)
