"""The table of scores that runs report."""

from dataclasses import dataclass
from typing import Any

from credo.registry.table import Entry, Table


@dataclass(frozen=True)
class MetricRow(Entry):
    """One score; `summary` says what it is and which way is better.

    Attributes:
        label: its name on a page.
        words: its name on the command line; "" where it has no line of its own.
        kinds: the likelihoods' kinds that it is reported for: "real", "counts", "classes".
        when: "always"; for classes also "several" (the rows have more than one class) or "two" (and there are but two);
            "asked": not by itself.
        better: 1 where more is better, −1 where less is, 0 where neither.
        share: is it a share, shown in per cent?
        given: options of the builder.
    """

    label: str
    words: str
    kinds: tuple[str, ...]
    when: str = "always"
    better: int = 0
    share: bool = False
    given: tuple[tuple[str, Any], ...] = ()


MODULE = "credo.evaluation.metrics."
NUMBERS, CLASSES = ("real", "counts"), ("classes",)
METRICS = Table("metric", (
    MetricRow("log_likelihood", f"{MODULE}numbers:log_likelihood",
              "mean log density of the rows (nats); higher is better",
              "Log-likelihood", "log likelihood", NUMBERS + CLASSES, better=1),
    MetricRow("rmse", f"{MODULE}numbers:rmse", "typical size of an error, in units of the target; lower is better",
              "RMSE", "RMSE", NUMBERS, better=-1),
    MetricRow("mae", f"{MODULE}numbers:mae", "mean size of an error, in units of the target; lower is better",
              "MAE", "", NUMBERS, "asked", -1),
    # Of counts it is left out: their draws are slow to compile and to make.
    MetricRow("crps", f"{MODULE}numbers:crps", "distance between prediction and observation; lower is better",
              "CRPS", "CRPS", ("real",), better=-1),
    MetricRow("coverage_90", f"{MODULE}numbers:coverage", "share of rows inside their 90 % interval; wanted: 90 %",
              "90 % coverage", "90 % intervals cover", NUMBERS, share=True, given=(("level", 0.9),)),
    MetricRow("accuracy", f"{MODULE}classes:accuracy", "share of rows whose class was named right; higher is better",
              "Accuracy", "accuracy", CLASSES, better=1, share=True),
    MetricRow("majority_accuracy", f"{MODULE}threshold:majority_accuracy", "always naming the commonest class",
              "Accuracy of the majority class", "  of the majority class", CLASSES, share=True),
    MetricRow("brier", f"{MODULE}classes:brier", "squared error of the probabilities; lower is better",
              "Brier score", "Brier score", CLASSES, better=-1),
    MetricRow("ece", f"{MODULE}classes:ece", "mean gap between confidence and accuracy; lower is better",
              "Calibration error", "calibration error (ECE)", CLASSES, better=-1, share=True),
    MetricRow("auroc", f"{MODULE}classes:auroc", "chance that a row of a class outranks another one; higher is better",
              "Area under ROC", "area under ROC curve", CLASSES, "several", 1),
    MetricRow("recall", f"{MODULE}threshold:recall", "share of the second class that the threshold picks out",
              "Recall", "recall", CLASSES, "two", 1, True),
    MetricRow("precision", f"{MODULE}threshold:precision", "share of the second class among the rows picked out",
              "Precision", "precision", CLASSES, "two", 1, True),
    MetricRow("threshold", f"{MODULE}threshold:threshold", "probability of the second class with the best expected F1",
              "Threshold", "", CLASSES, "two"),
    MetricRow("lift_10", f"{MODULE}threshold:lift",
              "how much more frequent the second class is in the tenth that ranks first",
              "Lift", "lift in the top tenth", CLASSES, "two", 1, given=(("share", 0.1),)),
))  # fmt: skip
