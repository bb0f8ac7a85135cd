"""Ctrl-C as a request."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, FunctionType, MethodType
from typing import Any

_unheard = False  # a Ctrl-C came through `listen`, and nobody has acted on it for sure
_sweeping = False  # the garbage collector runs, and with it callbacks of weak references and destructors


def listen() -> None:
    """From now on a request to end (SIGTERM) is a Ctrl-C, and no Ctrl-C is lost.

    Python raises KeyboardInterrupt wherever it happens to be. Where nobody can catch it, as in a callback of the
    garbage collector (JAX has one), it would be printed and forgotten: there it waits, and the next fit asks whether
    there was one.
    """
    if threading.current_thread() is threading.main_thread():
        if _sweep not in gc.callbacks:
            gc.callbacks.append(_sweep)
        signal.signal(signal.SIGINT, _note)
        signal.signal(signal.SIGTERM, _as_ctrl_c)


def _sweep(phase: str, info: Any) -> None:
    global _sweeping
    _sweeping = phase == "start"


def _note(number: int, frame: FrameType | None) -> None:
    global _unheard
    _unheard = True
    if not _collecting(frame):
        raise KeyboardInterrupt
    main = threading.main_thread().ident
    again = threading.Timer(0.02, signal.pthread_kill, (main, signal.SIGINT))
    again.daemon = True
    again.start()


def _collecting(frame: FrameType | None) -> bool:
    """Is the garbage collector running, or one of its callbacks before or after it?"""
    if _sweeping:
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
    """For fits that are one step of many: Ctrl-C ends the whole, and no half of a fit is taken for one."""
    token = _PART.set(True)
    try:
        yield
    finally:
        _PART.reset(token)


class Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current block; the second one interrupts at once.

    While there is `nothing` to lose, because no block has run yet, the first one interrupts at once, too.
    """

    def __init__(self) -> None:
        self.asked = False
        self.nothing = True
        self._part = _PART.get()

    def _ask(self, *_: Any) -> None:
        at_once, self.asked = self.asked or self.nothing or self._part, True
        if at_once:
            raise KeyboardInterrupt

    def __enter__(self) -> "Interrupt":
        if _unheard:
            raise KeyboardInterrupt
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._old = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._old)
