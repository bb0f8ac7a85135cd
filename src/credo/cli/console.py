"""Where words go: data on stdout, messages on stderr."""

import atexit
import codecs
import ctypes
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from credo.tables.summary import finite

SPELLED = "credo.spelled"  # the name of a way to write what an encoding lacks
PLAIN = {
    "…": "...", "–": "-", "—": "-", "−": "-", "×": "x", "·": "*", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~", "∞": "inf",
    "√": "sqrt", "²": "^2", "°": " degrees", "→": "->", "━": "#", "─": "-", "│": "|", "█": "#", "“": '"',
    "”": '"', "’": "'",
    "σ": "sigma", "θ": "theta", "β": "beta", "λ": "lambda", "ε": "epsilon", "ν": "nu", "\u2009": " ", "\u202f": " ",
    "\xa0": " ",
}  # fmt: skip


def say(*sentences: str) -> None:
    """A message for the person, one line for each sentence."""
    for sentence in sentences:
        print(sentence, file=sys.stderr)


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """What others print (Python, C libraries, child processes) goes to stderr: stdout is for one document alone.

    So does what they print when the process exits. Functions of `atexit` run last in, first out: ours goes before
    theirs.
    """
    standard = _descriptor(sys.__stdout__)
    aside = None if standard is None else os.dup(standard)
    try:
        if standard is not None:
            _flush()
            os.dup2(2, standard)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if standard is not None and aside is not None:
            _flush()
            os.dup2(aside, standard)
            os.close(aside)
            atexit.register(_close, standard)


def _close(standard: int) -> None:
    """Nothing more goes to stdout."""
    _flush()
    with suppress(OSError):
        os.dup2(2, standard)


def _descriptor(stream: Any) -> int | None:
    """The file descriptor of a stream, where it has one and stderr is open, too."""
    try:
        os.fstat(2)
        return None if stream is None else int(stream.fileno())
    except (OSError, ValueError):
        return None


def _flush() -> None:
    """Write out what Python and C libraries hold back for stdout."""
    with suppress(OSError, ValueError, AttributeError):
        sys.__stdout__.flush()  # type: ignore[union-attr]
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)


def readable(*streams: Any) -> None:
    """Let streams of any encoding take every text: what an encoding lacks is written in words that it has."""
    codecs.register_error(SPELLED, _spell)
    for stream in streams:
        with suppress(OSError, ValueError, AttributeError):
            stream.reconfigure(errors=SPELLED)


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(
        PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in text
    ), error.end


def emit(document: Any) -> None:
    """A document for a program, as JSON."""
    print(json.dumps(finite(document), indent=2))
