"""What a reader can point at in a figure: more about a line, points or bars than matplotlib knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Readout:
    """What a figure's author adds to an artist; see `add_readout`."""

    name: str | None = None
    about: Mapping[str, Sequence[str]] = field(default_factory=dict)
    points: tuple[Any, Any] | None = None
    silent: bool = False


def add_readout(artist: Any, name: str | None = None, **more: Any) -> None:
    """Say what the read-out of an artist should show beside its x and y.

    Args:
        artist: what a method of `Axes` gave.
        name: what the read-out calls it; its label in the legend where None.
        more: `about`, words for each point by heading; `points`, x and y of what to read where the artist has none;
            `silent`, to leave it out of the read-out.
    """
    artist.credo_readout = Readout(name, **more)


def readout_of(artist: Any) -> Readout | None:
    """What the read-out of an artist shows beside its x and y."""
    return vars(artist).get("credo_readout")


def spans(low: Any, high: Any) -> list[str]:
    """Intervals in words, for `about`.

    Example:
        >>> spans([1, 2.5], [2, 30000])
        ['1 to 2', '2.5 to 30000']
    """
    return [f"{digits(a)} to {digits(b)}" for a, b in zip(np.asarray(low, float), np.asarray(high, float))]


def digits(value: float) -> str:
    """A number with the four digits that a read-out shows."""
    long = 1e4 <= abs(value) < 1e7
    return (f"{value:.0f}" if long else f"{value:.4g}").replace("-", "−")
