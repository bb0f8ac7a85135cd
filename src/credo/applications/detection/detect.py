"""Detection: a threshold fixed on clean rows, then what is caught of the suspicious ones."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from credo.applications.detection.attacks import Attacked
from credo.applications.detection.rates import Columns, checked_scores, gaps, rates, threshold
from credo.applications.detection.scores import default_score, suspicion
from credo.core.predict import predict
from credo.core.short import fields_in_short
from credo.errors import InputError
from credo.evaluation.metrics.bootstrap import Interval

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("tpr", "auroc")


@dataclasses.dataclass
class Detection:
    """The result of `credo.applications.detection.detect`.

    Attributes:
        score: what makes a row suspicious.
        threshold: rows with a larger score are flagged; fixed on clean validation rows.
        max_fpr: the share of clean validation rows that may be flagged.
        tpr: share of positive rows that are flagged.
        fpr: share of clean test rows that really are flagged.
        auroc: the chance that a positive row is more suspicious than a clean one, ties half.
        validation, clean, positive: scores of the rows.
        rows: the clean test row that each positive was made from; None where positives are other rows.
    """

    score: str
    threshold: float
    max_fpr: float
    tpr: Interval
    fpr: Interval
    auroc: Interval
    validation: np.ndarray
    clean: np.ndarray
    positive: np.ndarray
    rows: np.ndarray | None = None

    __repr__ = fields_in_short

    @property
    def columns(self) -> Columns:
        """Scores by image, for the bootstrap."""
        return Columns(self.clean, self.positive, self.rows, self.threshold)

    def __str__(self) -> str:
        if len(self.positive) == 0:
            return f"{self.score}: there are no positives, so nothing can be detected."
        return (
            f"{self.score} > {self.threshold:.4g} (FPR ≤ {100 * self.max_fpr:g} % on {len(self.validation)} clean "
            f"rows): catches {_percent(self.tpr)} of {len(self.positive)} positives, flags {_percent(self.fpr)} of "
            f"{len(self.clean)} clean rows; AUROC {self.auroc.value:.4f} ({self.auroc.low:.4f} to "
            f"{self.auroc.high:.4f})."
        )

    def to_pandas(self) -> "pd.DataFrame":
        """One line for each row: group (clean or positive), row, score, flagged."""
        import pandas as pd

        rows = np.arange(len(self.positive)) if self.rows is None else self.rows
        scores = np.concatenate([self.clean, self.positive])
        return pd.DataFrame(
            {
                "group": ["clean"] * len(self.clean) + ["positive"] * len(self.positive),
                "row": np.concatenate([np.arange(len(self.clean)), rows]),
                "score": scores,
                "flagged": scores > self.threshold,
            }
        )

    def plot(self, *others: "Detection", names: Any = None) -> Any:
        """A figure of the ROC, of this and others, and of this one's scores (`credo.report.detection`)."""
        from credo.report.detection import plot

        return plot([self, *others], names)


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})"


class DetectorDifference(NamedTuple):
    """One detector minus another, with its interval, and "win", "tie" or "loss" of the first."""

    measure: str
    difference: Interval
    verdict: str

    def __str__(self) -> str:
        low, high = self.difference.low, self.difference.high
        return f"{self.measure} {self.difference.value:+.4f} ({low:+.4f} to {high:+.4f}): {self.verdict}"


def detect(
    key: jax.Array,
    fit: Any,
    clean_validation: Any,
    clean_test: Any,
    positives: Any,
    score: str | None = None,
    *,
    max_fpr: float = 0.05,
    num_samples: int | None = None,
    mode: str | None = None,
    level: float = 0.9,
    resamples: int = 1000,
) -> Detection:
    """How well a model notices inputs that are not like those it was trained on.

    The threshold t is the smallest score with a share of at most `max_fpr` of clean validation rows above it. Then
    TPR = P(s(x₊) > t); the FPR is measured on clean test rows and may differ from `max_fpr`.

    Args:
        key: a JAX key, for draws of θ and the bootstrap.
        fit: the result of `credo.fit`.
        clean_validation: inputs on which the threshold is fixed, and nothing else.
        clean_test: other clean inputs.
        positives: inputs that should be flagged, such as rows of another data set; or an `Attacked` made of
            `clean_test`, of which only the rows where the attack succeeded count.
        score: see `suspicion`.
        max_fpr: share of clean validation rows that may be flagged.
        num_samples: draws of θ.
        mode: how the posterior predicts, as in `credo.predict`.
        level: probability of the intervals.
        resamples: of the bootstrap.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(200, 1)).astype("float32")
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "laplace", steps=300)
        >>> detection = credo.applications.detection.detect(jax.random.key(1), fit, x[:100], x[100:], x[:100] + 9)
        >>> detection.tpr.value, detection.fpr.value < 0.15
        (1.0, True)
    """
    key_draws, key_boot = jax.random.split(key)
    name = score or default_score(fit.model.likelihood)

    def scores(inputs: Any) -> np.ndarray:
        return suspicion(predict(key_draws, fit, inputs, num_samples=num_samples, mode=mode), name)

    clean, rows = scores(clean_test), None
    if isinstance(positives, Attacked):
        if len(positives.success) != len(clean):
            raise InputError(
                f"The attack was made of {len(positives.success)} rows and clean_test has {len(clean)}: attack the "
                "rows of clean_test."
            )
        rows = np.flatnonzero(positives.success)
        positive = scores(positives.inputs[rows]) if len(rows) else np.empty(0)
    else:
        positive = scores(positives)
    return detection_of(
        key_boot, scores(clean_validation), clean, positive, rows=rows, score=name, max_fpr=max_fpr, level=level,
        resamples=resamples,
    )  # fmt: skip


def detection_of(
    key: jax.Array, validation: Any, clean: Any, positive: Any, *, rows: Any = None, score: str = "score",
    max_fpr: float = 0.05, level: float = 0.9, resamples: int = 1000,
) -> Detection:  # fmt: skip
    """`detect` from scores that were computed before.

    Args:
        key: a JAX key for the bootstrap.
        validation, clean, positive: scores of clean validation rows, clean test rows and positives.
        rows: the clean test row that each positive was made from; None where positives are other rows.
        score, max_fpr, level, resamples: as in `detect`.

    Example:
        >>> import jax, credo, numpy as np
        >>> clean, positive = np.arange(100.0), np.arange(90.0, 190)
        >>> detection = credo.applications.detection.detection_of(jax.random.key(0), clean, clean, positive)
        >>> detection.threshold, detection.tpr.value, detection.fpr.value
        (94.0, 0.95, 0.05)
    """
    validation, clean = checked_scores(validation, "validation"), checked_scores(clean, "clean")
    positive = np.asarray(positive, np.float64)
    origins = None if rows is None else np.asarray(rows, int)
    at = threshold(validation, max_fpr)
    measured = rates(Columns(clean, positive, origins, at), key, level, resamples)
    return Detection(
        score, at, max_fpr, measured["tpr"], measured["fpr"], measured["auroc"], validation, clean, positive, origins
    )


def compare(
    key: jax.Array, first: Detection, second: Detection, measure: str = "tpr", *, level: float = 0.9,
    resamples: int = 1000,
) -> DetectorDifference:  # fmt: skip
    """The difference between two detectors of the same images: two models, or two scores of one.

    Each resample takes the same images for both, so what makes images hard for both cancels. A "win" has an interval
    above 0, a "loss" one below; all else is a "tie".

    Args:
        key: a JAX key for the bootstrap.
        first, second: detections with the same clean test rows and, but for attacks, the same positives.
        measure: "tpr" at the threshold of each, or "auroc".
        level: probability of the interval.
        resamples: of the bootstrap.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.applications.detection import compare, detection_of
        >>> clean, key = np.arange(100.0), jax.random.key(0)
        >>> good, bad = (detection_of(key, clean, clean, clean + shift) for shift in (50, 0))
        >>> compare(key, good, bad).verdict
        'win'
    """
    if measure not in MEASURES:
        raise InputError(f"measure is one of {', '.join(MEASURES)}; got {measure!r}.")
    one, other = first.columns, second.columns
    if one.images != other.images or len(first.clean) != len(second.clean):
        raise InputError("Two detections are compared on the same images, and these have other numbers of them.")
    gap = gaps(one, other, key, level, resamples)[measure]
    return DetectorDifference(measure, gap, verdict(gap))


def verdict(gap: Interval) -> str:
    """A "win" where the whole interval is above 0, a "loss" where it is below, else a "tie"."""
    return "win" if gap.low > 0 else "loss" if gap.high < 0 else "tie"
