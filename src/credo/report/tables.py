"""Scores and settings as rows of text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from credo.registry import METRICS
from credo.report.words import number, percent


class Meaning(NamedTuple):
    """What a score is: its name, what it says, which way is better (+1, −1 or 0) and whether it is a share."""

    label: str
    says: str
    better: int = 0
    share: bool = False


MEANINGS = {
    **{f"test_{row.name}": Meaning(row.label, row.summary, row.better, row.share) for row in METRICS.values()},
    "seconds_fit": Meaning("Seconds", "wall-clock time of the whole fit"),
    "seconds_compile": Meaning("Seconds compiling", "part of it spent compiling"),
    "seconds_run": Meaning("Seconds running", "part of it spent computing"),
    "steps": Meaning("Steps", "steps of the last phase, per chain or member"),
}  # fmt: skip


def meaning(name: str) -> Meaning:
    """What a score is; unknown ones keep their own name."""
    return MEANINGS.get(name) or Meaning(name.replace("_", " ").capitalize(), "")


def in_order(metrics: Mapping[str, Any]) -> list[str]:
    """Names of the scores that are numbers, those of the registry first."""
    usable = [k for k, v in metrics.items() if isinstance(v, int | float) and not isinstance(v, bool)]
    registered = [name for name in MEANINGS if name in usable]
    return registered + [name for name in usable if name not in MEANINGS]


def cell(name: str, value: Any) -> str:
    """A score as text."""
    if value is None:
        return "–"
    return percent(float(value)) if meaning(name).share else number(float(value))


def score_rows(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(score, value, what it says) of one run."""
    return [(meaning(n).label, cell(n, metrics[n]), meaning(n).says) for n in in_order(metrics)]


def setting_rows(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(setting, value) of a whole configuration, nested settings by path."""
    settings = {k: v for k, v in config.items() if v is not None}
    return [(path, _plain(value)) for path, value in _flat(settings, ()) if path not in ("settings", "model")]


def _flat(value: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and set(value) != {"array"} and value:
        entries = {k: v for k, v in value.items() if k != "key"}
        return [pair for k, v in entries.items() for pair in _flat(v, path if k == "type" else (*path, str(k)))]
    if isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value):  # the parts of a stack
        return [pair for i, v in enumerate(value, 1) for pair in _flat(v, (*path, str(i)))]
    return [(" · ".join(path), value)]


def _plain(value: Any) -> str:
    if value is None:
        return "automatic"
    if isinstance(value, Mapping):
        return "none" if not value else f"array of shape {value['array']}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_plain(v) for v in value) or "none"
    return str(value)
