"""What `method="auto"` does with the training rows of a split: its choice by their number, then its pilot."""

from typing import Any

import numpy as np

from credo.auto import Choice, choose, compete, settle
from credo.benchmarks.side_by_side import from_words
from credo.benchmarks.uci_data import Arrays, Task


def choice_of(data: Arrays, seconds: float | None = None) -> Choice:
    """The choice for so many rows and inputs on this machine."""
    rows, features = data["train_idx"].shape[1], data["X"].shape[1]
    return choose("regression", rows, features, seconds=seconds)


def settled(choice: Choice, settings: dict[str, Any], steps: int | None) -> dict[str, Any]:
    """The choice as words, with what the user said in its place."""
    return settle(choice, None, settings, steps, None, None)


def piloted(choice: Choice, one: Task, settings: dict[str, Any], steps: int | None, seed: int) -> dict[str, Any]:
    """The same after the pilot has looked at the training rows, with the settings that it took as "pilot"."""
    if "prior" in settings or not choice.rivals:
        return settled(choice, settings, steps) | {"pilot": None}
    said = settled(choice, settings, steps)

    def model_with(rival: dict[str, Any]) -> Any:
        return from_words(said | {"settings": said["settings"] | rival}).model

    rows = (one.x, one.y[:, 0], np.ones(len(one.y), np.float32))
    found = compete(choice, model_with, rows, seed)
    taken = [rival for rival in choice.rivals if rival.items() <= found.settings.items()]
    return settled(found, settings, steps) | {"pilot": taken[0] if taken else None}


def told(why: str, pilots: list[dict[str, Any] | None]) -> str:
    """The sentence of the choice, and what pilots took.

    Example:
        >>> told("map, because.", [{"prior": "normal:1"}, {"prior": "normal:1"}, {"prior": "normal:3"}])
        'map, because. Pilots on the training rows took normal:1 on 2 splits, normal:3 on 1.'
    """
    words = [" ".join(map(str, pilot.values())) for pilot in pilots if pilot]
    if not words:
        return why
    counts = {word: words.count(word) for word in sorted(set(words), key=lambda word: (-words.count(word), word))}
    (first, number), *rest = counts.items()
    more = "".join(f", {word} on {count}" for word, count in rest)
    return f"{why} Pilots on the training rows took {first} on {number} split{'s' if number > 1 else ''}{more}."
