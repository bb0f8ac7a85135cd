"""A clock that tests set, so that what is said of seconds does not depend on how busy the machine is."""

import time

import pytest

from credo.training.clock import COMPILING


class FakeClock:
    """`time.perf_counter` and the seconds of compilation. Every look at the clock takes `tick` seconds, and every
    stretch of tracing, lowering or compiling that JAX reports takes `compilation`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: float = 0.0, compilation: float = 0.0) -> None:
        self.now, self.tick, self.compilation, self.compiled = 0.0, tick, compilation, 0.0
        monkeypatch.setattr(time, "perf_counter", self._look)
        seconds = property(lambda _: self.compiled, lambda _, __: self.wait(self.compilation, compiling=True))
        monkeypatch.setattr(type(COMPILING), "seconds", seconds, raising=False)

    def _look(self) -> float:
        self.now += self.tick
        return self.now

    def wait(self, seconds: float, *, compiling: bool = False) -> None:
        """Seconds go by."""
        self.now += seconds
        self.compiled += seconds if compiling else 0.0
