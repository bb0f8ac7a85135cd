"""A fit on a table: what it predicts, how well, and what follows from it, from and to its run directory."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import numpy as np

from credo.applications import decide
from credo.applications.active import acquisition_scores, choose
from credo.applications.decisions.chosen import Decisions
from credo.applications.decisions.utilities import Amount
from credo.applications.effects.effects import Effects
from credo.core.predictive import Predictive
from credo.errors import ArtifactError, InputError
from credo.storage.run_directory.read import SavedRun, open_run
from credo.storage.run_directory.write import save_fit
from credo.tables import detection
from credo.tables.effects import effect_key, table_effects
from credo.tables.encode.unseen import fill_gaps, unseen_notes
from credo.tables.read.source import read_source, table_name
from credo.tables.score import prediction_frame, predictive_at, scores_with_intervals
from credo.tables.summary import finite, summary_lines
from credo.tables.utility_table import read_utility
from credo.training.placement import on_one_device

if TYPE_CHECKING:
    import pandas as pd

Tell = Callable[[str], Any] | None


class UsableRows(NamedTuple):
    """The rows of a table that a run can predict: the whole table, their places in it, and their encoded inputs."""

    frame: pd.DataFrame
    places: np.ndarray
    inputs: np.ndarray

    @property
    def used(self) -> pd.DataFrame:
        """These rows alone."""
        return self.frame if len(self.places) == len(self.frame) else self.frame.iloc[self.places]


@dataclasses.dataclass(frozen=True, repr=False)
class Run(SavedRun):
    """What `credo.tables.fit` gives and `credo.tables.load` reads.

    Wherever a method takes a table it may be a path or a data frame of pandas, polars or Arrow, and `tell` is called
    with sentences about it: unusual files, rows that are left out, categories that training did not have.

    Attributes:
        folder: the run directory, or None.
        fit: the `credo.Fit` of encoded rows.
        encoder: how rows are encoded.
        metrics: scores of held-out rows, and times.
        table: what was asked for and decided, as config.json has it.
        heldout: encoded rows that were held out.
        versions: of what computed it.
        notes: sentences about the table and its fit.
    """

    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.fit.posterior = on_one_device(self.fit.posterior)  # where a run that is loaded has it: to the last digit

    def save(self, folder: str | os.PathLike[str], keep: tuple[str, ...] = ()) -> Self:
        """Write the run directory, and return the run that lies there.

        Args:
            folder: where; an earlier run of that name is replaced.
            keep: names inside the earlier folder that stay.
        """
        save_fit(
            self.fit, folder, encoder=self.encoder, metrics=finite(self.metrics), extra=self.table,
            heldout=self.heldout, keep=keep,
        )  # fmt: skip
        return dataclasses.replace(self, folder=Path(folder))

    @property
    def status(self) -> Any:
        """Did the fit work, in sentences."""
        return self.fit.status

    @property
    def why(self) -> str:
        """What "auto" chose and why; empty where a method was named."""
        return self.table.get("why", "").removeprefix("Method: ")

    @property
    def seed(self) -> int:
        """Decides which weights predictions draw."""
        return self.table.get("seed", 0)

    def facts(self) -> dict[str, Any]:
        """What `credo fit --json` prints."""
        return {
            "run": None if self.folder is None else str(self.folder), "task": self.encoder.task,
            "target": self.encoder.target, "classes": self.encoder.classes, "method": self.fit.config["method"],
            "features": len(self.encoder.feature_names), "ok": self.status.ok, "status": str(self.status),
            "notes": list(self.notes), "metrics": self.metrics,
        }  # fmt: skip

    def summary(self) -> str:
        """What was learned from how many rows, how long it took, and scores of held-out rows."""
        return "\n".join(summary_lines(self.facts()))

    def __repr__(self) -> str:
        target = self.encoder.target
        names = target if isinstance(target, str) else ", ".join(target)
        return f"<Run of {self.fit.config['method']} on {names}: {self.status}>"

    def rows(
        self,
        table: Any,
        *,
        target: bool = False,
        fate: str = " and are left out",
        what: str = "rows",
        tell: Tell = None,
    ) -> UsableRows:
        """The rows of a table that can be predicted, encoded. All methods that take a table take these, too.

        Args:
            table: the table.
            target: only rows whose target is known.
            fate: what becomes of the others, for `tell`.
            what: these rows are called, for `tell`.
            tell: called with sentences.
        """
        if isinstance(table, UsableRows):
            return table
        say = tell or (lambda sentence: None)
        frame = self._read(table, say)
        places = np.asarray(self.encoder.keep(frame, target=target))
        if len(places) == 0:
            raise InputError(f"Every row of {table_name(table)} has a missing cell, and this run leaves such rows out.")
        if len(places) < len(frame):
            say(f"{len(frame) - len(places)} of {len(frame)} {what} have missing cells{fate}.")
        used = frame if len(places) == len(frame) else frame.iloc[places]
        inputs = self.encoder.inputs(used, unseen="zeros")
        for note in unseen_notes(self.encoder, inputs):
            say(note)
        return UsableRows(frame, places, inputs)

    def _read(self, table: Any, say: Callable[[str], Any]) -> pd.DataFrame:
        frame, notes = read_source(table, self.encoder.text_columns)
        for note in notes:
            say(note)
        return frame

    def predictive(self, table: Any, *, tell: Tell = None) -> Predictive:
        """The predictive distribution at the rows that can be predicted, on the table's own scale."""
        return predictive_at(self.fit, self.encoder, self.inputs(table, tell=tell), self.seed)

    def predict(self, table: Any, *, interval: float = 0.9, tell: Tell = None) -> pd.DataFrame:
        """Predictions with their uncertainty, one row for each of the table, with its index.

        Numbers get the columns mean, std, aleatoric_std, epistemic_std, lower and upper; classes get label, p_CLASS for
        each class, entropy, aleatoric_entropy and mutual_information. Rows that cannot be predicted are empty.

        Args:
            table: rows with the input columns.
            interval: probability of the interval from lower to upper.
            tell: called with sentences.
        """
        if not 0 < interval < 1:
            raise InputError(f"--interval lies between 0 and 1, got {interval:g}.")
        rows = self.rows(table, fate="; their predictions are left empty", tell=tell)
        return prediction_frame(self.predictive(rows), self.encoder, interval, rows.places, rows.frame.index)

    def score(self, table: Any, *, tell: Tell = None) -> dict[str, Any]:
        """Scores on rows whose targets are known, with 90 % bootstrap intervals under "intervals"; what
        `credo evaluate --json` prints."""
        say = tell or (lambda sentence: None)
        frame = self._read(table, say)
        arrays = self.encoder.arrays(frame, unseen="zeros")
        for note in unseen_notes(self.encoder, arrays.inputs):
            say(note)
        if len(arrays.rows) == 0:
            raise InputError(f"No row of {table_name(table)} can be scored: all have missing cells or no weight.")
        if len(arrays.rows) < len(frame):
            say(f"{len(frame) - len(arrays.rows)} of {len(frame)} rows cannot be scored and are left out.")
        return scores_with_intervals(self.fit, self.encoder, arrays, self.seed)

    def effects(self, table: Any = None, *, level: float = 0.9, tell: Tell = None) -> Effects:
        """What each input does: how strongly, along which curve, and whether it matters.

        Args:
            table: rows to average over, or what `inputs` gave; None is those that were held out.
            level: probability of bands and intervals.
            tell: called with sentences.
        """
        if not 0 < level < 1:
            raise InputError(f"--level lies between 0 and 1, got {level:g}.")
        return table_effects(effect_key(), self.fit, self.encoder, self.inputs(table, tell=tell), level=level)

    def inputs(self, table: Any = None, *, tell: Tell = None) -> np.ndarray:
        """Encoded inputs of a table, which all that takes a table takes, too, but for columns to show; None is those of
        the rows that were held out."""
        if table is not None:
            return table if isinstance(table, np.ndarray) else self.rows(table, tell=tell).inputs
        held = self.heldout.get("inputs", np.empty(0))
        if len(held) < 2:
            raise InputError(
                f"{self._name()} kept {'one row' if len(held) else 'no rows'} to average over (it held out no more, "
                "and training rows are not saved): give some with --rows FILE, such as the training table."
            )
        return held

    def _name(self) -> str:
        return "The run" if self.folder is None else f"The run {self.folder}"

    def decide(
        self,
        table: Any,
        utility: Any,
        *,
        risk: Any = "mean",
        over: str = "outcomes",
        abstain: float | tuple[float, float] | None = None,
        tell: Tell = None,
    ) -> Decisions:
        """The action of largest expected utility for every row that can be predicted.

        Args:
            table: rows with the input columns.
            utility: a table of utilities as `credo decide` reads it (a path or a data frame), or what `credo.decide`
                takes: a dictionary, a function, `newsvendor(under, over)` and others.
            risk, over, abstain: as in `credo.decide`.
            tell: called with sentences.
        """
        if not isinstance(self.encoder.target, str):
            raise InputError("Decisions are about one outcome, and this run predicts several; fit one target.")
        if isinstance(utility, Amount) and self.encoder.classes is not None:
            raise InputError("--newsvendor needs a run on numbers, and this one predicts classes; use --utility FILE.")
        worth = read_utility(utility, self.encoder)
        rows = self.rows(table, fate="; their decisions are left empty", tell=tell)
        return decide(self.predictive(rows), worth, risk=risk, over=over, abstain=abstain)

    def suggest(self, table: Any, n: int = 10, *, acquisition: str = "batch_bald", tell: Tell = None) -> pd.DataFrame:
        """The rows of a table without labels that are most worth a label, best first: rank, row (counted from 1), value
        and the columns of the table.

        Args:
            table: rows with the input columns.
            n: how many rows.
            acquisition: "bald", "batch_bald", "power_bald", "epig", "variance", "entropy" or "random".
            tell: called with sentences.
        """
        rows = self.rows(table, tell=tell)
        if n > len(rows.places) and tell is not None:
            tell(f"{table_name(table)} has {len(rows.places)} rows to choose from: all are suggested.")
        key = jax.random.fold_in(jax.random.key(self.seed), 4)
        inputs = fill_gaps(self.encoder, rows.inputs)
        chosen = choose(key, self.fit, inputs, min(n, len(rows.places)), acquisition)
        values = acquisition_scores(key, self.fit, inputs, acquisition)[chosen]
        if not values.any():
            raise InputError(
                f"The posterior of {self.folder or 'this run'} is a point, so a label would tell it nothing: fit with "
                "a method that has a spread, such as deep_ensemble, or take --acquisition entropy."
            )
        places = rows.places[chosen]
        columns = {"rank": np.arange(1, len(chosen) + 1), "row": places + 1, "value": values}
        return detection.beside(columns, rows.frame.iloc[places])

    def detect(
        self, table: Any, *, clean: Any = None, score: str | None = None, fpr: float = 0.05, tell: Tell = None
    ) -> pd.DataFrame:
        """Rows on which the model knows less than on all but a few clean rows: row (counted from 1), score, threshold,
        flagged and the columns of the table.

        Args:
            table: rows with the input columns.
            clean: a table of rows that are as they should be; None is those that were held out.
            score: "entropy", "conditional_entropy", "mutual_information" or "max_probability" for classes, "variance"
                or "epistemic" for numbers.
            fpr: share of clean rows that may be flagged.
            tell: called with sentences.
        """
        return detection.flagged(self, table, clean, score, fpr, tell or (lambda sentence: None))

    def report(self, out: str | os.PathLike[str] | None = None) -> Path:
        """Write a self-contained HTML page, by default report.html in the run directory, and return where it is."""
        from credo.report import run_data, write_report

        if out is None and self.folder is None:
            raise InputError("This run has no folder: say where the page goes, run.report('report.html').")
        return write_report([run_data(self)], Path(out or Path(str(self.folder)) / "report.html"))

    def export(
        self,
        folder: str | os.PathLike[str],
        form: str = "numpy",
        *,
        num_samples: int | None = None,
        levels: Sequence[float] = (0.05, 0.5, 0.95),
    ) -> Path:
        """Write a folder that predicts without credo; see `credo.export`."""
        from credo.storage.export import export

        return export(self, folder, form, num_samples=num_samples, levels=levels)


def load(folder: str | os.PathLike[str]) -> Run:
    """Read the run directory of a fit on a table, whoever wrote it: `credo fit`, `credo.tables.fit` or `Run.save`.

    Args:
        folder: the run directory.
    """
    saved = open_run(folder)
    if saved.encoder is None:
        raise ArtifactError(
            f"The run {folder} was made from arrays, not from a table; use credo.load and credo.predict in Python."
        )
    why = saved.table.get("why", "")
    return Run(**vars(saved), notes=(*saved.encoder.notes, *([why] if why else [])))
