"""What `method="auto"` does with the training rows of a split: its choice by their number, then its pilot."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.side_by_side import from_words
from benchmarks.uci_data import Arrays, Task
from credo.tables.auto import Choice, choose, pilot


def choice_of(data: Arrays, seconds: float | None = None) -> Choice:
    """The choice for so many rows and inputs on this machine."""
    rows, features = data["train_idx"].shape[1], data["X"].shape[1]
    return choose("regression", rows, features, seconds=seconds)


def words_of(choice: Choice, settings: dict[str, Any], steps: int | None) -> dict[str, Any]:
    """The choice as words, with what the user said in its place."""
    return choice.words(None, settings, steps, None, None)


def run_pilots(
    choice: Choice, tasks: Sequence[Task], settings: dict[str, Any], steps: int | None, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The same for each of several tasks after pilots on their training rows, with what they took as "pilot"."""
    words = words_of(choice, settings, steps)
    if "prior" in settings or not choice.rivals:
        return [words | {"pilot": None}] * len(tasks)

    def model_with(rival: dict[str, Any]) -> Any:
        return from_words(words | {"settings": words["settings"] | rival}).model

    tables = [(one.x, one.y[:, 0], np.ones(len(one.y), np.float32)) for one in tasks]
    choices = pilot(choice, model_with, tables, seeds)
    return [words_of(one, settings, steps) | {"pilot": _rival(choice, one)} for one in choices]


def _rival(choice: Choice, decided: Choice) -> dict[str, Any] | None:
    return next((rival for rival in choice.rivals if rival.items() <= decided.settings.items()), None)


def describe(why: str, pilots: list[dict[str, Any] | None]) -> str:
    """The sentence of the choice, and what pilots took.

    Example:
        >>> describe("map, because.", [{"prior": "normal:1"}, {"prior": "normal:1"}, {"prior": "normal:3"}])
        'map, because. Pilots on the training rows took normal:1 on 2 splits, normal:3 on 1.'
    """
    words = [" ".join(map(str, pilot.values())) for pilot in pilots if pilot]
    if not words:
        return why
    counts = {word: words.count(word) for word in sorted(set(words), key=lambda word: (-words.count(word), word))}
    (first, number), *rest = counts.items()
    more = "".join(f", {word} on {count}" for word, count in rest)
    return f"{why} Pilots on the training rows took {first} on {number} split{'s' if number > 1 else ''}{more}."
