"""Where words go: data on stdout, messages on stderr."""

import codecs
import ctypes
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

SPELLED = "credo.spelled"  # the name of a way to write what an encoding lacks
PLAIN = {
    "…": "...", "–": "-", "—": "-", "−": "-", "×": "x", "·": "*", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~", "∞": "inf",
    "√": "sqrt", "²": "^2", "°": " degrees", "→": "->", "━": "#", "─": "-", "│": "|", "█": "#", "“": '"',
    "”": '"', "’": "'",
    "σ": "sigma", "θ": "theta", "β": "beta", "λ": "lambda", "ε": "epsilon", "ν": "nu", "\u2009": " ", "\u202f": " ",
    "\xa0": " ",
}  # fmt: skip
MOST_CLASSES, WIDTH = 8, 16  # classes whose confusions fit on a screen, and letters of their names


def say(*sentences: str) -> None:
    """A message for the person, one line for each sentence."""
    for sentence in sentences:
        print(sentence, file=sys.stderr)


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """What others print (Python, C libraries, child processes) goes to stderr: stdout is for one document alone."""
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
    codecs.register_error(SPELLED, _spelled)
    for stream in streams:
        with suppress(OSError, ValueError, AttributeError):
            stream.reconfigure(errors=SPELLED)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(
        PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in found
    ), error.end


def emit(document: Any) -> None:
    """A document for a program, as JSON."""
    print(json.dumps(plain(document), indent=2))


def plain(value: Any) -> Any:
    """The value with null where a number is not finite: JSON has no word for that."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


WORDS = {
    "log_likelihood": "log likelihood",
    "rmse": "RMSE",
    "crps": "CRPS",
    "coverage_90": "90 % intervals cover",
    "accuracy": "accuracy",
    "majority_accuracy": "  of the majority class",
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
    "auroc": "area under ROC curve",
    "recall": "recall",
    "precision": "precision",
    "lift_10": "lift in the top tenth",
}


def in_words(scores: dict[str, Any], ends: dict[str, list[float]] | None = None) -> list[str]:
    """One line for each score, with or without the prefix `test_`, and its interval where that is known."""
    lines = []
    for name, value in scores.items():
        words = WORDS.get(name.removeprefix("test_"))
        if words is not None and value is not None:
            low, high = (ends or {}).get(name, (None, None))
            between = "" if low is None else f"   ({low:.4g} to {high:.4g})"
            lines.append(f"  {words:<26}{value:.4g}{between}")
    return lines


def of_classes(scores: dict[str, Any], classes: Sequence[str], confusion: Any) -> list[str]:
    """Which class recall, precision and lift are about, and which class is named instead of which."""
    threshold = scores.get("threshold", scores.get("test_threshold"))
    lines = []
    if threshold is not None:
        lines.append(
            f"Recall, precision and lift are those of {classes[1]!r}; a row is picked out where its probability is at "
            f"least {threshold:.3g}, the threshold of best expected F1."
        )
    if confusion is None or len(classes) > MOST_CLASSES:
        return lines
    names = [f"{name[:WIDTH]}" for name in map(str, classes)]
    cells = [[f"{count:,.4g}" if count % 1 else f"{count:,.0f}" for count in row] for row in confusion]
    first = max(len("true \\ named"), *map(len, names))
    widths = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(names)]
    table = [["true \\ named", *names], *([name, *row] for name, row in zip(names, cells))]
    lines.append("Rows of each class, by the class that was named:")
    for head, *row in table:
        lines.append(f"  {head:<{first}}  " + "  ".join(f"{x:>{w}}" for x, w in zip(row, widths)))
    return lines
