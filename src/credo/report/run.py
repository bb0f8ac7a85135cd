"""What a report needs to know about one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.core.predictive import Predictive
from credo.core.short import fields_in_short
from credo.evaluation.metrics import summarise
from credo.report.views import View, views
from credo.storage.run_directory.write import installed
from credo.tables.encode.scale import true_targets
from credo.tables.encode.unseen import fill_gaps
from credo.tables.score import predictive_at

if TYPE_CHECKING:
    import pandas as pd

    from credo.tables.encode.encoder import TableEncoder
    from credo.training.fit import Fit

PACKAGES = ("credo", "jax", "jaxlib", "optax", "blackjax", "numpy")


@dataclass(frozen=True)
class RunData:
    """One run of a report.

    Attributes:
        name: what the page calls it.
        fit: the result of `credo.fit` or `credo.load`; None for predictions alone.
        metrics: scores and timings under the names of `metrics.json`.
        predictive: predictions at the scored rows, on the scale of the table.
        targets: observed values at these rows on the same scale; class indices for classes.
        inputs: encoded inputs of these rows.
        feature_names: names of the inputs.
        encoder: the table's encoder.
        notes: sentences to show with the status.
        versions: package → version of the run.
        rows: what the scored rows are: "held-out", "training", "new".
        row_numbers: the index of each scored row in its table, from 0.
        source: a digest of that table.
        split_by: the column whose groups were held out whole.
        groups: a number for the group of each scored row, or None.
        seed: decides which weights are drawn.
    """

    name: str
    fit: Fit | None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    predictive: Predictive | None = None
    targets: np.ndarray | None = None
    inputs: np.ndarray | None = None
    feature_names: Sequence[str] = ()
    encoder: TableEncoder | None = None
    notes: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: str = "held-out"
    row_numbers: np.ndarray | None = None
    source: str | None = None
    split_by: str | None = None
    groups: np.ndarray | None = None
    seed: int = 0

    __repr__ = fields_in_short

    @classmethod
    def from_predictions(
        cls,
        name: str,
        fit: Fit | None,
        predictive: Predictive,
        targets: Any,
        *,
        metrics: Mapping[str, Any] | None = None,
        encoder: TableEncoder | None = None,
        versions: Mapping[str, str] | None = None,
        **others: Any,
    ) -> RunData:
        """A run from its predictions; scores, timings, names and versions that are not given are filled in.

        Args:
            name, fit, predictive, targets, metrics, encoder, versions, others: as in `RunData`.
        """
        targets = np.asarray(targets)
        if metrics is None:
            scores = {f"test_{name}": value for name, value in summarise(predictive, targets).items()}
            metrics = scores | (dict(fit.timing) if fit is not None else {})
        if encoder is not None:
            others = {"feature_names": encoder.feature_names} | others
        versions = installed(*PACKAGES) if versions is None else versions
        return cls(name, fit, metrics, predictive, targets, encoder=encoder, versions=versions, **others)

    @classmethod
    def from_table(
        cls,
        name: str,
        fit: Fit,
        encoder: TableEncoder,
        frame: pd.DataFrame,
        *,
        seed: int = 0,
        num_samples: int | None = None,
        **others: Any,
    ) -> RunData:
        """A run scored on the rows of a table.

        Args:
            name, fit, encoder, others: as in `from_predictions`.
            frame: the rows to score, with their targets.
            seed: decides which weights are drawn, as that of a run does.
            num_samples: how many draws; None takes what `credo.predict` takes.
        """
        arrays = encoder.arrays(frame, unseen="zeros")
        return cls.from_encoded(
            name, fit, encoder, arrays.inputs, arrays.targets, seed=seed, num_samples=num_samples, **others
        )

    @classmethod
    def from_encoded(
        cls,
        name: str,
        fit: Fit,
        encoder: TableEncoder,
        inputs: np.ndarray,
        targets: np.ndarray,
        *,
        seed: int = 0,
        num_samples: int | None = None,
        **others: Any,
    ) -> RunData:
        """A run scored on rows that its encoder has already turned into inputs and targets.

        Args:
            name, fit, encoder, seed, num_samples, others: as in `from_table`.
            inputs, targets: what `encoder.arrays` gave.
        """
        predictive, truth = predictive_at(fit, encoder, inputs, seed, num_samples), true_targets(encoder, targets)
        return cls.from_predictions(
            name, fit, predictive, truth, encoder=encoder, inputs=fill_gaps(encoder, inputs), seed=seed, **others
        )

    @cached_property
    def views(self) -> list[View]:
        """The predictions, output by output."""
        return [] if self.predictive is None else views(self.predictive, self.targets, self.encoder, self.row_numbers)
