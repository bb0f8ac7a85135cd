"""Ctrl-C as a request."""

import signal
import threading
from typing import Any


class Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current block; the second one interrupts at once."""

    def __init__(self) -> None:
        self.asked = False

    def _ask(self, *_: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __enter__(self) -> "Interrupt":
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._old = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._old)
