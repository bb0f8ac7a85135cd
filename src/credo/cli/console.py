"""Where words go: data on stdout, messages on stderr."""

import json
import math
import sys
from typing import Any


def say(*sentences: str) -> None:
    """A message for the person, one line for each sentence."""
    for sentence in sentences:
        print(sentence, file=sys.stderr)


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
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
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
