"""The evaluations of a search, and its file."""

import dataclasses
import math
from pathlib import Path
from typing import Any

from credo.applications.optimise.space import Point, Space
from credo.errors import ArtifactError
from credo.storage.store import Store, write_document

FILE = "optimise.json"


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One evaluation.

    Attributes:
        point: where.
        value: of the objective; NaN where it failed.
        message: why it failed, or empty.
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
    evaluations = [{"point": e.point, "value": None if e.failed else e.value, "message": e.message} for e in history]
    write_document(folder / FILE, settings, {"history": evaluations, "pending": pending})


def read(folder: Path) -> tuple[Space, dict[str, Any], list[Evaluation], list[Point]]:
    """The space, settings, evaluations and pending points of a saved search."""
    if not (folder / FILE).exists():
        raise ArtifactError(f"Cannot read {folder / FILE}: there is no such file.")
    store = Store(folder, FILE, "a search")
    with store.understood():
        space = Space.from_data(store.settings["space"])
        history = []
        for item in store.content["history"]:
            value = math.nan if item["value"] is None else float(item["value"])
            history.append(Evaluation(space.checked(item["point"]), value, str(item["message"])))
        pending = [space.checked(point) for point in store.content["pending"]]
    return space, store.settings, history, pending
