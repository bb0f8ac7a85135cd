"""How the target becomes what a likelihood reads: standardised numbers, class indices or counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from credo.errors import InputError
from credo.tables.columns import kinds
from credo.tables.encode import config, weighted
from credo.tables.encode.far import check_scale, far_note
from credo.tables.encode.features import category_places
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("auto", "regression", "classification", "binary", "multiclass", "count")
MOST_CODES = 10
ROWS_PER_CODE = 10
FEWEST_GRADES = 3
MOST_SPREAD = 1.5  # places from the first to the last grade, for each grade that is there
# Float32 holds whole numbers exactly up to here.
LARGEST_COUNT = 2**24


def choose_task(frame: pd.DataFrame, target: str | list[str], task: str = "auto") -> tuple[str, str]:
    """Return "regression", "classification" or "count" and a sentence that says why.

    With "auto", text, categories and truth values are classes. Numbers are classes where they are whole and

    - there are two of them, or
    - there are up to 10, they run without a gap from 0 or 1, there are 10 rows for each on average, and the rarest has
      at least a tenth of the rows of the most common (counts and ratings thin out at their ends).

    All other numbers are regression, and the sentence says which of these conditions fails. Counts are never guessed.
    """
    if task not in TASKS:
        raise InputError(f"Unknown task '{task}'; {_task_hint(task)}.")
    if task != "auto":
        return ("classification" if task in ("binary", "multiclass") else task), ""
    if isinstance(target, list):
        return "regression", "Several targets are fitted together, so this is regression."
    series = parse.find_column(parse.named_frame(frame), target, "the target")
    held, classes = _describe(series)
    chosen = "classification" if classes else "regression"  # counts look like other numbers
    others = [other for other in ("regression", "classification", "count") if other != chosen]
    note = f"The target '{target}' holds {held}, so this is {chosen}"
    return chosen, f"{note}; use --task {others[0]} or --task {others[1]} to change that."


def _task_hint(task: str) -> str:
    hint = parse.did_you_mean(task, TASKS)
    return hint if hint.startswith("did") else "use auto, regression, classification or count"


def _describe(series: pd.Series) -> tuple[str, bool]:
    """Return what the target holds, in words, and whether these are classes."""
    import pandas as pd

    parse.refuse_odd(series)
    if parse.missing_mask(series).all():
        raise InputError(f"The target '{series.name}' has no values; choose another target.")
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "categories", True
    kind = kinds.find_kind(series, ids=False).kind
    if kind == "boolean":
        return "true and false", True
    if kind == "date":
        raise InputError(f"The target '{series.name}' holds dates; turn it into a number first, such as days.")
    if parse.is_text(series) and kind != "numeric":
        return "text", True
    values = parse.numbers(series, form=parse.number_form(series) or number_forms.PLAIN)
    values = values[~np.isnan(values)]
    distinct, counts = np.unique(values, return_counts=True)
    if not np.all(distinct == np.round(distinct)):
        return f"{len(distinct)} distinct numbers, not all of them whole", False
    if len(distinct) == 2:
        return f"two whole numbers, {distinct[0]:g} and {distinct[1]:g}", True
    held = f"{len(distinct)} distinct whole numbers"
    return (held, False) if len(distinct) == 1 else _codes(held, distinct, counts)


def _codes(held: str, distinct: np.ndarray, counts: np.ndarray) -> tuple[str, bool]:
    """Whether several whole numbers name classes, with the condition that decides."""
    if len(distinct) > MOST_CODES:
        return f"{held}, more than {MOST_CODES}", False
    if distinct[0] not in (0, 1) or distinct[-1] - distinct[0] != len(distinct) - 1:
        return f"{held}, which do not run without a gap from 0 or 1", False
    if counts.sum() < ROWS_PER_CODE * len(distinct):
        return f"{held} on {counts.sum()} rows, fewer than {ROWS_PER_CODE} rows for each", False
    if counts.min() * 10 < counts.max():
        rare, common = distinct[counts.argmin()], distinct[counts.argmax()]
        return f"{held}, of which {rare:g} has fewer than a tenth of the rows of {common:g}", False
    return f"the whole numbers {distinct[0]:g} to {distinct[-1]:g}, none of them rare", True


@dataclass(frozen=True)
class RegressionTarget:
    """One or several numbers, each standardised over the training rows."""

    kind: ClassVar[str] = "regression"
    names: tuple[str, ...]
    shift: tuple[float, ...]
    scale: tuple[float, ...]
    forms: tuple[str, ...] = config.added(())  # how texts write the numbers; empty: all plain
    lowest: tuple[float, ...] = config.added(())  # of the training rows; empty: not known

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.shift) == len(self.scale) > 0:
            raise ValueError("has settings of unequal lengths")
        if len(self.forms) not in (0, len(self.names)) or not set(self.forms) <= set(number_forms.FORMS):
            raise ValueError("has unknown forms of numbers")
        if not all(scale > 0.0 for scale in self.scale):
            raise ValueError("has a scale that is not positive")
        if len(self.lowest) not in (0, len(self.names)):
            raise ValueError("has settings of unequal lengths")

    @property
    def task(self) -> str:
        """Always "regression"."""
        return "regression"

    @property
    def positive(self) -> bool:
        """Is every number of the training rows above 0?"""
        return bool(self.lowest) and min(self.lowest) > 0

    @classmethod
    def learn(cls, frame: pd.DataFrame, names: tuple[str, ...], weights: np.ndarray | None) -> RegressionTarget:
        """Learn mean, standard deviation and smallest number in float64."""
        statistics = []
        forms = _target_forms(frame, names)
        for name, form in zip(names, forms):
            values = _target_numbers(frame, name, form)
            shift, scale = weighted.mean_and_std(values, weights)
            if not scale > 0.0:
                raise _constant(name, f"{shift:g}")
            check_scale(name, scale)
            statistics.append((float(shift), float(scale), float(values.min())))
        shifts, scales, lowest = zip(*statistics)
        return cls(names, shifts, scales, () if set(forms) == {number_forms.PLAIN} else forms, lowest)

    def notes(self, frame: pd.DataFrame) -> list[str]:
        """Sentences on rows of this table that lie far from all others."""
        forms = self.forms or (number_forms.PLAIN,) * len(self.names)
        sentences = (far_note(name, _target_numbers(frame, name, form)) for name, form in zip(self.names, forms))
        return [note for note in sentences if note]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return float32 of shape [rows], or [rows, targets] if there are several."""
        forms = self.forms or (number_forms.PLAIN,) * len(self.names)
        columns = [
            ((_target_numbers(frame, name, form) - shift) / scale).astype(np.float32)
            for name, shift, scale, form in zip(self.names, self.shift, self.scale, forms)
        ]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


@dataclass(frozen=True)
class ClassTarget:
    """One of several classes, as its place in `classes`."""

    kind: ClassVar[str] = "classes"
    name: str
    classes: tuple[str | int | float | bool, ...]

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(map(parse.text_key, self.classes))) < len(self.classes):
            raise ValueError("needs two or more distinct classes")

    @property
    def task(self) -> str:
        """With two classes "binary", else "multiclass"."""
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def numbers(self) -> bool:
        """Are all classes numbers, whose order is that of their places?"""
        return all(isinstance(label, int | float) and not isinstance(label, bool) for label in self.classes)

    @property
    def ordered(self) -> bool:
        """Do the classes look like grades: at least 3 whole numbers that follow one another, with few gaps?

        Example:
            >>> [ClassTarget("y", c).ordered for c in ((3, 4, 5, 7), (1, 10, 100), ("a", "b", "c"), (0, 1))]
            [True, False, False, False]
        """
        if len(self.classes) < FEWEST_GRADES or not self.numbers or any(float(c) != int(c) for c in self.classes):
            return False
        return float(self.classes[-1]) - float(self.classes[0]) + 1 <= MOST_SPREAD * len(self.classes)

    @classmethod
    def learn(cls, frame: pd.DataFrame, name: str) -> ClassTarget:
        """Learn the classes in their natural order; each needs two rows."""
        series = _target_column(frame, name)
        codes, values = parse.distinct(series)
        labels = [_plain_label(value) for value in values]
        if len({type(label) is str for label in labels}) > 1:
            labels = [parse.text_key(label) for label in labels]
        if len(labels) == 1:
            raise _constant(name, labels[0])
        counts = weighted.totals(codes, len(labels))
        if counts.min() < 2:
            lonely = labels[int(counts.argmin())]
            raise InputError(
                f"Class '{lonely}' of the target '{name}' has only one training row; add rows of it, "
                "merge it with another class or remove it (for numbers, use --task regression)."
            )
        return cls(name, tuple(sorted(labels)))

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return int32 class indices; a class that training did not have is an `InputError`."""
        series = _target_column(frame, self.name)
        codes, keys = parse.text_keys(series)
        positions = category_places(keys, [parse.text_key(label) for label in self.classes], parse.is_text(series))
        index = np.array([*positions, -1], np.int32)[codes]
        if (index < 0).any():
            row = int(np.argmax(index < 0))
            raise InputError(
                f"The target '{self.name}' has the class '{parse.text_key(series.iloc[row]):.60}' in "
                f"{parse.row_name(series, row)}, which no training row had; the classes are "
                f"{parse.listed(self.classes)}: correct it or fit again with rows that have it."
            )
        return index


@dataclass(frozen=True)
class CountTarget:
    """A number of events, as it is."""

    kind: ClassVar[str] = "count"
    name: str
    form: str = config.added(number_forms.PLAIN)
    mean: float = config.added(1.0)  # of the training rows

    def __post_init__(self) -> None:
        if not self.mean > 0:
            raise ValueError("has a mean that is not positive")
        if self.form not in number_forms.FORMS:
            raise ValueError("has an unknown form of numbers")

    @property
    def task(self) -> str:
        """Always "count"."""
        return "count"

    @classmethod
    def learn(cls, frame: pd.DataFrame, name: str, weights: np.ndarray | None = None) -> CountTarget:
        """Check that the counts are counts and vary; learn their mean."""
        learned = cls(name, form=_target_forms(frame, (name,))[0])
        values = learned.encode(frame)
        if values.min() == values.max():
            raise _constant(name, f"{values[0]:g}")
        return replace(learned, mean=float(np.average(values.astype(np.float64), weights=weights)))

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return float32 counts, which are exact up to 2²⁴."""
        values = _target_numbers(frame, self.name, self.form)
        bad = (values < 0) | (values != np.round(values)) | (values > LARGEST_COUNT)
        if bad.any():
            row = int(bad.argmax())
            where = parse.row_name(frame[self.name], row)
            raise InputError(
                f"The target '{self.name}' has {values[row]:g} in {where}, but counts are whole numbers "
                f"from 0 to {LARGEST_COUNT}; correct it or use --task regression."
            )
        return values.astype(np.float32)


TARGETS: dict[str, type[Any]] = {item.kind: item for item in (RegressionTarget, ClassTarget, CountTarget)}


def learn_target(
    frame: pd.DataFrame, names: tuple[str, ...], task: str, weights: np.ndarray | None
) -> RegressionTarget | ClassTarget | CountTarget:
    """Learn the target encoder of a task as `choose_task` names it, or of "binary" or "multiclass"."""
    if task == "regression":
        return RegressionTarget.learn(frame, names, weights)
    if len(names) > 1:
        raise InputError(f"Several targets need --task regression, not {task}; name one target.")
    if task == "count":
        return CountTarget.learn(frame, names[0], weights)
    learned = ClassTarget.learn(frame, names[0])
    if task != "classification" and task != learned.task:
        raise InputError(
            f"The target '{names[0]}' has {len(learned.classes)} classes, so the task is not {task}; "
            "use --task classification."
        )
    return learned


def target_from_config(plain: Any) -> RegressionTarget | ClassTarget | CountTarget:
    """Build a target encoder from saved settings, or raise `ArtifactError`."""
    target: RegressionTarget | ClassTarget | CountTarget = config.from_kinds(TARGETS, plain, "the target")
    return target


def _target_column(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the target column without missing cells, which no policy fills in."""
    series = parse.find_column(frame, name, "the target")
    missing = parse.missing_mask(series)
    if missing.any():
        first = parse.row_name(series, int(missing.argmax()))
        raise InputError(
            f"The target '{name}' is missing in {int(missing.sum())} row(s), the first of them {first}; "
            "fill it in, or leave these rows out with --missing auto."
        )
    return series


def _target_forms(frame: pd.DataFrame, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(parse.number_form(_target_column(frame, name)) or number_forms.PLAIN for name in names)


def _target_numbers(frame: pd.DataFrame, name: str, form: str) -> np.ndarray:
    series = _target_column(frame, name)
    return parse.numbers(series, "numbers, being the target,", "correct it or use --task classification", form)


def _plain_label(value: Any) -> str | int | float | bool:
    """Return a class as JSON can hold it, whole floats as integers."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise InputError("The target has an infinite value; replace it or leave the row out.")
        return int(value) if value == int(value) else float(str(value))
    return str(value)


def _constant(name: str, value: Any) -> InputError:
    return InputError(
        f"The target '{name}' is {value} in every training row, so there is nothing to learn; choose another target."
    )
