"""The table of a study: model × score × attack × size, with intervals and the comparison with a baseline."""

import dataclasses
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.applications.detection.attacks import Attack
from credo.applications.detection.detect import MEASURES, Detection, detection_of, verdict
from credo.applications.detection.rates import gaps

if TYPE_CHECKING:
    import pandas as pd

Scores = dict[str, np.ndarray]


@dataclasses.dataclass
class Study:
    """The result of `credo.applications.detection.study`.

    Attributes:
        baseline: the model that the others are compared with.
        rows: for each model, attack and score: model, attack, epsilon (None for another data set), score, success_rate,
            positives, tpr, fpr and auroc with their intervals, and win, tie or loss against the baseline with the
            interval of the difference.
        detections: the same by (model, name of the attack, score).
    """

    baseline: str
    rows: list[dict[str, Any]]
    detections: dict[tuple[str, str, str], Detection]

    @staticmethod
    def of(
        key: jax.Array, measured: dict[str, dict[str, Scores]], hows: dict[str, Attack | None], scores: list[str],
        baseline: str, *, max_fpr: float, level: float, resamples: int,
    ) -> "Study":  # fmt: skip
        """The table of scores by model and attack; those of the attack "" are the clean ones."""
        detections = {}
        for model, cells in measured.items():
            for name in hows:
                for score in scores:
                    clean, cell = cells[""], cells[name]
                    rows = np.flatnonzero(cell["success"]) if "success" in cell else None
                    positive = cell[score] if rows is None else cell[score][rows]
                    detections[model, name, score] = detection_of(
                        key, clean[f"validation {score}"], clean[score], positive, rows=rows, score=score,
                        max_fpr=max_fpr, level=level, resamples=resamples,
                    )  # fmt: skip
        lines = []
        for (model, name, score), detection in detections.items():
            how, cell = hows[name], measured[model][name]
            line: dict[str, Any] = {
                "model": model, "attack": name if how is None else how.kind,
                "epsilon": None if how is None else how.epsilon, "name": name, "score": score,
                "success_rate": _success(cell), "positives": len(detection.positive), "threshold": detection.threshold,
            }  # fmt: skip
            for measure in ("tpr", "fpr", "auroc"):
                interval = vars(detection)[measure]
                line |= {measure: interval.value, f"{measure}_low": interval.low, f"{measure}_high": interval.high}
            line |= _verdicts(key, detection, detections[baseline, name, score], model == baseline, level, resamples)
            lines.append(line)
        return Study(baseline, lines, detections)

    def to_pandas(self) -> "pd.DataFrame":
        """The table."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def summary(self) -> str:
        """The table as text."""
        lines = [
            f"{'model':<18} {'attack':<24} {'score':<20} {'success %':>9} {'TPR %':>7} {'FPR %':>6} {'AUROC':>7}  "
            f"against {self.baseline}"
        ]
        for row in self.rows:
            rate = f"{100 * row['success_rate']:.1f}" if row["success_rate"] is not None else "–"
            lines.append(
                f"{row['model']:<18.18} {row['name']:<24.24} {row['score']:<20} {rate:>9} {100 * row['tpr']:>7.1f} "
                f"{100 * row['fpr']:>6.1f} {row['auroc']:>7.4f}  {row['against_tpr'] or '–'}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def _success(cell: Scores) -> float | None:
    if "success" not in cell:
        return None
    return float(cell["success"].sum() / max(1, cell["open"].sum()))


def _verdicts(
    key: jax.Array, detection: Detection, base: Detection, same: bool, level: float, resamples: int
) -> dict[str, Any]:
    """Against the baseline: the verdict, the difference and its ends, for each measure; None for itself."""
    blank = same or len(detection.positive) == 0 or len(base.positive) == 0
    differences = None if blank else gaps(detection.columns, base.columns, key, level, resamples)
    line: dict[str, Any] = {}
    for measure in MEASURES:
        gap = (None, None, None) if differences is None else tuple(differences[measure])
        line[f"against_{measure}"] = None if differences is None else verdict(differences[measure])
        line |= dict(zip((f"gap_{measure}", f"gap_{measure}_low", f"gap_{measure}_high"), gap))
    return line
