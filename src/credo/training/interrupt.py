"""Ctrl-C as a request."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, FunctionType, MethodType
from typing import Any

_pending = False  # a Ctrl-C arrived after `listen`, and may not have been acted on
_collector_runs = False  # the garbage collector runs, and with it callbacks of weak references and destructors


def listen() -> None:
    """From now on a request to end (SIGTERM) is a Ctrl-C, and no Ctrl-C is lost.

    Python raises KeyboardInterrupt wherever it happens to be. In a callback of the garbage collector (JAX has one)
    nobody can catch it, and Python would print and forget it: so it is raised again later, and the next fit checks for
    it.
    """
    if threading.current_thread() is threading.main_thread():
        if _track_collector not in gc.callbacks:
            gc.callbacks.append(_track_collector)
        signal.signal(signal.SIGINT, _on_interrupt)
        signal.signal(signal.SIGTERM, _as_ctrl_c)


def _track_collector(phase: str, info: Any) -> None:
    global _collector_runs
    _collector_runs = phase == "start"


def _on_interrupt(number: int, frame: FrameType | None) -> None:
    global _pending
    _pending = True
    if not _collecting(frame):
        raise KeyboardInterrupt
    main = threading.main_thread().ident
    again = threading.Timer(0.02, signal.pthread_kill, (main, signal.SIGINT))
    again.daemon = True
    again.start()


def _collecting(frame: FrameType | None) -> bool:
    """Is the garbage collector running, or one of its callbacks before or after it?"""
    if _collector_runs:
        return True
    callbacks = {call.__code__ for call in gc.callbacks if isinstance(call, FunctionType | MethodType)}
    while frame is not None:
        if frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


def _as_ctrl_c(*where: Any) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(*where)


_PART = ContextVar("part", default=False)


@contextmanager
def part_of_more() -> Iterator[None]:
    """For fits inside a larger job: Ctrl-C ends the job at once, so that no partial fit counts as a result."""
    token = _PART.set(True)
    try:
        yield
    finally:
        _PART.reset(token)


class Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current block; the second one interrupts at once.

    While there is `nothing_to_lose`, because no block has run yet, the first one interrupts at once, too.
    """

    def __init__(self) -> None:
        self.requested = False
        self.nothing_to_lose = True
        self._part = _PART.get()

    def _request(self, *_: Any) -> None:
        at_once, self.requested = self.requested or self.nothing_to_lose or self._part, True
        if at_once:
            raise KeyboardInterrupt

    def __enter__(self) -> "Interrupt":
        if _pending:
            raise KeyboardInterrupt
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._old = signal.signal(signal.SIGINT, self._request)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._old)
