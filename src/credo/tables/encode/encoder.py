"""A table as arrays and back: learned on the training rows, saved as JSON and used unchanged ever after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credo.errors import ArtifactError, InputError
from credo.tables.encode.columns import CodeColumn, Column, DateColumn, NumericColumn, column_from_config
from credo.tables.encode.config import check_names, checked, to_plain
from credo.tables.encode.cuts import coarser
from credo.tables.encode.gaps import MISSING
from credo.tables.encode.learning import learn_parts, plain_target, read_weights, target_names
from credo.tables.encode.targets import ClassTarget, CountTarget, RegressionTarget, target_from_config
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "credo-table-encoder"
VERSION = 1
SETTINGS = ["format", "version", "missing", "weight_column", "columns", "target", "notes"]


class Arrays(NamedTuple):
    """The usable rows of a table as arrays; `rows` are their places in the table."""

    inputs: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class TableEncoder:
    """Turns the rows of a table into inputs and targets, the same way at every time.

    Example:
        >>> import pandas as pd
        >>> train = pd.DataFrame({"dose": [1.0, 2.0, 3.0, 4.0], "progression": [2.0, 3.0, 5.0, 4.0]})
        >>> encoder = TableEncoder.learn(train, target="progression")
        >>> encoder.arrays(train).inputs.shape
        (4, 1)
        >>> TableEncoder.from_config(encoder.to_config()) == encoder
        True
    """

    columns: tuple[Column, ...]
    target_encoder: RegressionTarget | ClassTarget | CountTarget
    missing: str = "error"
    weight_column: str | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        target: str | Sequence[str],
        task: str = "auto",
        missing: str = "error",
        weights: str | None = None,
        ignore: Iterable[str] = (),
        codes: bool = False,
    ) -> TableEncoder:
        """Learn the encoding from training rows.

        Args:
            frame: the training rows and nothing else.
            target: the column to predict, or several for a regression with several outputs.
            task: "auto", "regression", "classification" (or "binary", "multiclass") or "count".
            missing: what to do with missing cells: "error", "drop" the row, "impute" the training median or most
                common value and add an indicator, or "auto": the same for numbers, and a category of its own for
                categories, while gaps in columns where training had none are averaged over its values. A target is
                never filled in: its row is left out.
            weights: a column of weights; a weight of 2 counts as two rows, rows of weight 0 are left out.
            ignore: columns that are neither inputs nor targets.
            codes: a column of many categories becomes one feature, a code, for networks that know them
                (`credo.networks.embedded`); else one feature for each of the common ones.
        """
        frame = parse.named_frame(frame)
        names = target_names(target)
        columns, encoder, notes = learn_parts(frame, names, task, missing, weights, ignore, codes)
        return cls(columns, encoder, missing, weights, notes)

    @property
    def task(self) -> str:
        """One of "regression", "binary", "multiclass" and "count"."""
        return self.target_encoder.task

    @property
    def target(self) -> str | list[str]:
        """The target column, or a list of them if there are several."""
        return plain_target(_names_of(self.target_encoder))

    @property
    def classes(self) -> tuple[str | int | float | bool, ...] | None:
        """The classes in the order of their indices; None where there are none."""
        return self.target_encoder.classes if isinstance(self.target_encoder, ClassTarget) else None

    @property
    def ordered(self) -> bool:
        """Do the classes look like grades (see `ClassTarget.ordered`)? False where there are none."""
        return isinstance(self.target_encoder, ClassTarget) and self.target_encoder.ordered

    @property
    def positive(self) -> bool:
        """Are all targets of the training rows numbers above 0? False for classes and counts."""
        return isinstance(self.target_encoder, RegressionTarget) and self.target_encoder.positive

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the input features, in order."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def codes(self) -> tuple[tuple[int, int], ...]:
        """Place and number of levels of each feature that is a code."""
        code_features, start = [], 0
        for column in self.columns:
            code_features += [(start, column.levels)] if isinstance(column, CodeColumn) else []
            start += len(column.names)
        return tuple(code_features)

    @property
    def levels(self) -> tuple[int, ...]:
        """How many levels each feature that is a code has."""
        return tuple(levels for _, levels in self.codes)

    def knots(self, parts: int) -> tuple[tuple[int, ...], np.ndarray]:
        """Places of the features that are numbers of more than two values, and quantiles that cut them into parts."""
        places, knots, start = [], [], 0
        for column in self.columns:
            cuts = column.cuts if isinstance(column, NumericColumn | DateColumn) else ()
            if len(set(cuts)) > 2:
                places.append(start)
                knots.append(coarser(cuts, parts))
            start += len(column.names)
        return tuple(places), np.asarray(knots, np.float32).reshape(len(places), parts + 1)

    @property
    def target_shift(self) -> np.ndarray:
        """What to add to scaled targets, in float64, to be on the original scale; 0 if no regression."""
        return _by_output(self.target_encoder.shift if isinstance(self.target_encoder, RegressionTarget) else (0.0,))

    @property
    def target_scale(self) -> np.ndarray:
        """What to multiply standardised targets by, in float64; 1 if no regression."""
        return _by_output(self.target_encoder.scale if isinstance(self.target_encoder, RegressionTarget) else (1.0,))

    @property
    def count_mean(self) -> float:
        """Mean count of the training rows; 1 where the target is no count."""
        return self.target_encoder.mean if isinstance(self.target_encoder, CountTarget) else 1.0

    @property
    def text_columns(self) -> list[str]:
        """Columns whose cells must be read as they are written: "1.234" is 1234 where a comma is decimal."""
        forms = {column.name: column.form for column in self.columns if isinstance(column, NumericColumn | DateColumn)}
        target = self.target_encoder
        if isinstance(target, RegressionTarget):
            forms |= dict(zip(target.names, target.forms))
        elif isinstance(target, CountTarget):
            forms[target.name] = target.form
        return [name for name, form in forms.items() if form == number_forms.COMMA]

    def inputs(self, frame: pd.DataFrame, *, unseen: str = "error") -> np.ndarray:
        """Return float32 inputs of shape [rows, features].

        A category that training did not have is an `InputError`; with `unseen="zeros"` it is no category at
        all, which is what a held-out row with a rare category should be. Under "auto" so is a gap in a column where
        training had none, whose features are then NaN.
        """
        if unseen not in ("error", "zeros"):
            raise ValueError(f"unseen must be 'error' or 'zeros', not {unseen!r}")
        frame = parse.named_frame(frame)
        out = np.empty((len(frame), len(self.feature_names)), np.float32)
        start = 0
        for column in self.columns:
            stop = start + len(column.names)
            series = parse.find_column(frame, column.name, "an input of the model")
            column.encode(series, out[:, start:stop], unseen=unseen)
            start = stop
        return out

    def targets(self, frame: pd.DataFrame) -> np.ndarray:
        """Return standardised float32 numbers, int32 class indices or float32 counts."""
        return self.target_encoder.encode(parse.named_frame(frame))

    def weights(self, frame: pd.DataFrame) -> np.ndarray:
        """Return float32 weights as given, or ones if there is no column of weights."""
        frame = parse.named_frame(frame)
        values = read_weights(frame, self.weight_column)
        return np.ones(len(frame), np.float32) if values is None else values.astype(np.float32)

    def keep(self, frame: pd.DataFrame, *, target: bool = True) -> np.ndarray:
        """Return the places of the rows that can be used.

        These are the rows without missing cells where `missing="drop"`, else all rows; with `target`, rows of weight
        0 are left out, and those without a target unless `missing="error"`.
        """
        frame = parse.named_frame(frame)
        mask = np.ones(len(frame), bool)
        names = [column.name for column in self.columns] if self.missing == "drop" else []
        names += _names_of(self.target_encoder) if target and self.missing != "error" else ()
        for name in names:
            mask &= ~parse.missing_mask(parse.find_column(frame, name, "the model"))
        if target and self.weight_column is not None:
            mask &= self.weights(frame) > 0.0
        return np.flatnonzero(mask)

    def arrays(self, frame: pd.DataFrame, *, unseen: str = "error") -> Arrays:
        """Return inputs, targets and weights of the rows that can be used."""
        rows = self.keep(frame)
        used = frame if len(rows) == len(frame) else frame.iloc[rows]
        return Arrays(self.inputs(used, unseen=unseen), self.targets(used), self.weights(used), rows)

    def labels(self, indices: np.ndarray) -> np.ndarray:
        """Return the classes that class indices stand for, as they were in the table."""
        if self.classes is None:
            raise InputError(f"There are no class labels in a {self.task} task; use --task classification.")
        text = any(isinstance(label, str) for label in self.classes)
        return np.array(self.classes, dtype=object if text else None)[np.asarray(indices)]

    def to_config(self) -> dict[str, Any]:
        """Return everything that was learned as plain JSON types."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "missing": self.missing,
            "weight_column": self.weight_column,
            "columns": [to_plain(column) for column in self.columns],
            "target": to_plain(self.target_encoder),
            "notes": list(self.notes),
        }

    @classmethod
    def from_config(cls, config: Any) -> TableEncoder:
        """Build the encoder that `to_config` described, or raise `ArtifactError`."""
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise ArtifactError("This is not the saved encoder of a credo run; check the run directory.")
        if config.get("version") != VERSION:
            raise ArtifactError(
                f"The saved encoder has format version {config.get('version')!r} but this credo reads "
                f"version {VERSION}; install the credo that wrote it or fit again."
            )
        check_names(config, SETTINGS, "the table encoder")
        missing = checked(config["missing"], str, "setting 'missing'")
        if missing not in MISSING or not isinstance(config["columns"], list) or not config["columns"]:
            raise ArtifactError("The saved encoder is damaged: it has no columns or no policy; fit again.")
        return cls(
            tuple(column_from_config(plain) for plain in config["columns"]),
            target_from_config(config["target"]),
            missing,
            checked(config["weight_column"], str | None, "setting 'weight_column'"),
            list(checked(config["notes"], tuple[str, ...], "setting 'notes'")),
        )


def _by_output(numbers: tuple[float, ...]) -> np.ndarray:
    values = np.asarray(numbers, np.float64)
    return values if len(values) > 1 else values.reshape(())


def _names_of(target: RegressionTarget | ClassTarget | CountTarget) -> tuple[str, ...]:
    return target.names if isinstance(target, RegressionTarget) else (target.name,)
