"""What is known of a search, and its file."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from credo.applications.optimise.space import Point, Space
from credo.errors import ArtifactError, CredoError
from credo.storage.archives import read_json
from credo.storage.atomic_write import write_file

FILE = "optimise.json"


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One evaluation.

    Attributes:
        point: where.
        value: of the objective; NaN where it failed.
        message: why it failed, where that is known.
    """

    point: Point
    value: float
    message: str = ""

    @property
    def failed(self) -> bool:
        """True where there is no value."""
        return not math.isfinite(self.value)


def write(folder: Path, settings: dict[str, Any], history: list[Evaluation], pending: list[Point]) -> None:
    """Save a search; the file appears whole or not at all."""
    told = [{"point": e.point, "value": None if e.failed else e.value, "message": e.message} for e in history]
    text = json.dumps({"settings": settings, "history": told, "pending": pending}, indent=1) + "\n"
    write_file(folder / FILE, text)


def read(folder: Path) -> tuple[Space, dict[str, Any], list[Evaluation], list[Point]]:
    """The space, settings, evaluations and pending points of a saved search."""
    place = folder / FILE
    try:
        known = read_json(place)
    except OSError as error:
        raise ArtifactError(f"Cannot read {place}: {error.strerror or error}.") from error
    except ValueError as error:
        raise _foreign(place) from error
    try:
        settings = dict(known["settings"])
        space = Space.from_data(settings["space"])
        history = []
        for item in known["history"]:
            value = math.nan if item["value"] is None else float(item["value"])
            history.append(Evaluation(space.checked(item["point"]), value, str(item["message"])))
        pending = [space.checked(point) for point in known["pending"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, CredoError) as error:
        raise _foreign(place) from error
    return space, settings, history, pending


def _foreign(place: Path) -> ArtifactError:
    return ArtifactError(f"{place} is not a record of a search: remove it or name another folder.")
