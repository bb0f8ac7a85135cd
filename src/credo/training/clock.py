"""Seconds spent compiling, apart from seconds spent running."""

from typing import Any

import jax


class _CompileClock:
    """Adds up what JAX reports of tracing, lowering and compiling in this process."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.programs = 0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            self.programs += 1


COMPILING = _CompileClock()
