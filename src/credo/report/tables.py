"""Scores and settings as rows of text."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from credo.report.words import number, percent


class Meaning(NamedTuple):
    """What a score is: its name, what it says, which way is better (+1, −1 or 0) and whether it is a share."""

    label: str
    says: str
    better: int = 0
    share: bool = False


MEANINGS = {
    "test_log_likelihood": Meaning("Log-likelihood", "mean log density of the rows (nats); higher is better", 1),
    "test_rmse": Meaning("RMSE", "typical size of an error, in units of the target; lower is better", -1),
    "test_mae": Meaning("MAE", "mean size of an error, in units of the target; lower is better", -1),
    "test_crps": Meaning("CRPS", "distance between prediction and observation; lower is better", -1),
    "test_coverage_90": Meaning("90 % coverage", "share of rows inside their 90 % interval; wanted: 90 %", 0, True),
    "test_accuracy": Meaning("Accuracy", "share of rows whose class was named right; higher is better", 1, True),
    "test_majority_accuracy": Meaning("Accuracy of the majority class", "always naming the commonest class", 0, True),
    "test_brier": Meaning("Brier score", "squared error of the probabilities; lower is better", -1),
    "test_ece": Meaning("Calibration error", "mean gap between confidence and accuracy; lower is better", -1, True),
    "test_auroc": Meaning("Area under ROC", "chance that a row of a class outranks another one; higher is better", 1),
    "test_recall": Meaning("Recall", "share of the second class that the threshold picks out", 1, True),
    "test_precision": Meaning("Precision", "share of the second class among the rows picked out", 1, True),
    "test_threshold": Meaning("Threshold", "probability of the second class with the best expected F1"),
    "test_lift_10": Meaning("Lift", "how much more frequent the second class is in the tenth that ranks first", 1),
    "seconds_fit": Meaning("Seconds", "wall-clock time of the whole fit"),
    "seconds_compile": Meaning("Seconds compiling", "part of it spent compiling"),
    "seconds_run": Meaning("Seconds running", "part of it spent computing"),
    "steps": Meaning("Steps", "steps of the last phase, per chain or member"),
}  # fmt: skip


def meaning(name: str) -> Meaning:
    """What a score is; unknown ones keep their own name."""
    return MEANINGS.get(name) or Meaning(name.replace("_", " ").capitalize(), "")


def in_order(metrics: Mapping[str, Any]) -> list[str]:
    """Names of the scores that are numbers, the known ones first."""
    usable = [k for k, v in metrics.items() if isinstance(v, int | float) and not isinstance(v, bool)]
    known = [name for name in MEANINGS if name in usable]
    return known + [name for name in usable if name not in MEANINGS]


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
    known = {k: v for k, v in config.items() if k != "key" and v is not None}
    return [(path, _plain(value)) for path, value in _flat(known, ()) if path not in ("settings", "model")]


def _flat(value: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and set(value) != {"array"} and value:
        return [pair for k, v in value.items() for pair in _flat(v, path if k == "type" else (*path, str(k)))]
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
