"""Learning how a table is encoded: the role of each column, the rows that count and the notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.columns import kinds
from credo.tables.columns.redundant import copies, numbers_rows
from credo.tables.columns.unused import left_out
from credo.tables.encode.columns import CategoryColumn, Column, learn_column
from credo.tables.encode.gaps import MISSING
from credo.tables.encode.targets import ClassTarget, CountTarget, RegressionTarget, choose_task, learn_target
from credo.tables.read import number_forms, parse

if TYPE_CHECKING:
    import pandas as pd

Parts = tuple[tuple[Column, ...], RegressionTarget | ClassTarget | CountTarget, list[str]]


def learn_parts(
    frame: pd.DataFrame,
    names: tuple[str, ...],
    task: str,
    missing: str,
    weights: str | None,
    ignore: Iterable[str],
    codes: bool = False,
) -> Parts:
    """Return the column encoders, the target encoder and the notes that training rows lead to; with `codes`, many
    categories become codes."""
    if missing not in MISSING:
        raise InputError(f"Unknown choice '{missing}' for --missing; use auto, error, drop or impute.")
    excluded = _excluded_columns(frame, names, weights, ignore)
    mass = read_weights(frame, weights)
    keep = np.ones(len(frame), bool) if mass is None else mass > 0.0
    if missing != "error":
        keep &= _complete(frame, names)
    _check_rows(keep)
    chosen, note = choose_task(frame.loc[keep, list(names)], plain_target(names), task)
    notes = [note] if note else []
    if chosen != "classification":
        notes += [note for note in (kinds.written_note(frame.loc[keep, name]) for name in names) if note]
    column_kinds = _find_kinds(frame, keep, excluded, notes)
    _without_row_numbers(frame, keep, column_kinds, names, notes)
    if missing == "drop":
        keep = _drop_rows(frame, keep, column_kinds, notes)
    training_mass = None if mass is None else mass[keep]
    exact = task if task in ("binary", "multiclass") else chosen
    target = learn_target(frame.loc[keep, list(names)], names, exact, training_mass)
    notes += target.notes(frame.loc[keep, list(names)]) if isinstance(target, RegressionTarget) else []
    outcome = _outcome(target, frame, keep) if codes else None
    columns = _learn_columns(frame, keep, column_kinds, training_mass, missing, notes, names, codes, outcome)
    return columns, target, notes


def learn_inputs(
    frame: pd.DataFrame, names: Iterable[str], weights: np.ndarray | None = None, codes: bool = False
) -> tuple[tuple[Column, ...], list[str]]:
    """Return the column encoders and the notes of a table of inputs alone, whose cells may be missing.

    Args:
        frame: the inputs of the training rows.
        names: of the targets, which are not in the table.
        weights: of the rows, all above 0; None: all the same.
        codes: many categories become codes.
    """
    notes: list[str] = []
    keep = np.ones(len(frame), bool)
    column_kinds = _find_kinds(frame, keep, set(), notes)
    return _learn_columns(frame, keep, column_kinds, weights, "auto", notes, names, codes), notes


def target_names(target: str | Sequence[str]) -> tuple[str, ...]:
    """Return the target columns as a tuple, each named once."""
    from credo.core.checks import names_of  # brings JAX along

    names = (target,) if isinstance(target, str) else tuple(names_of(target, "The target"))
    if not names or len(set(names)) < len(names):
        raise InputError("The targets must be one or more different columns; name each once.")
    return names


def plain_target(names: tuple[str, ...]) -> str | list[str]:
    """Return one target as text and several as a list."""
    return names[0] if len(names) == 1 else list(names)


def read_weights(frame: pd.DataFrame, name: str | None) -> np.ndarray | None:
    """Return float64 weights, finite and not negative, or None if there is no column of weights."""
    if name is None:
        return None
    series = parse.find_column(frame, name, "the weights")
    values = parse.numbers(series, "weights", form=parse.number_form(series) or number_forms.PLAIN)
    bad = ~(values >= 0.0)
    if bad.any():
        row = int(bad.argmax())
        held = "a missing weight" if np.isnan(values[row]) else f"the weight {values[row]:g}"
        raise InputError(f"Column '{name}' has {held} in {parse.row_name(series, row)}; weights must be 0 or more.")
    return values


def _excluded_columns(
    frame: pd.DataFrame, targets: tuple[str, ...], weights: str | None, ignore: Iterable[str]
) -> set[str]:
    """Return the columns that are no inputs, after checking that each exists and has one role."""
    for name in targets:
        parse.find_column(frame, name, "the target")
    if weights is not None:
        parse.find_column(frame, weights, "the weights")
        if weights in targets:
            raise InputError(f"Column '{weights}' is both target and weights; choose another for one of them.")
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    for name in ignored:
        parse.find_column(frame, name, "being ignored")
        if name in targets:
            raise InputError(f"Column '{name}' is the target and cannot be ignored; name another target.")
    return {*targets, *ignored, *([weights] if weights is not None else [])}


def _complete(frame: pd.DataFrame, names: Iterable[str]) -> np.ndarray:
    """Return True for the rows without a missing cell in these columns."""
    mask = np.ones(len(frame), bool)
    for name in names:
        mask &= ~parse.missing_mask(frame[name])
    return mask


def _check_rows(keep: np.ndarray) -> None:
    """Raise `InputError` unless two rows can be learned from."""
    count, total = int(keep.sum()), len(keep)
    if count >= 2:
        return
    if count == total:
        raise InputError(f"The training table has {count} row(s), which is too few to learn from; add rows.")
    raise InputError(
        f"Only {count} of {total} training rows can be used once missing cells and zero weights are left "
        "out; add rows, or use --missing auto."
    )


def _find_kinds(frame: pd.DataFrame, keep: np.ndarray, excluded: set[str], notes: list[str]) -> dict[str, kinds.Kind]:
    """Return the kind of each column that can be an input, and note the others."""
    column_kinds = {}
    for name in frame.columns:
        if name not in excluded:
            kind = kinds.find_kind(_rows(frame[name], keep))
            notes.extend([kind.note] if kind.note else [])
            if kind.kind != "none":
                column_kinds[name] = kind
    return column_kinds


def _without_row_numbers(
    frame: pd.DataFrame, keep: np.ndarray, column_kinds: dict[str, kinds.Kind], targets: Iterable[str], notes: list[str]
) -> None:
    """Leave out the columns that number the rows and say nothing about the targets, unless nothing else is left."""
    numeric = [name for name, kind in column_kinds.items() if kind.kind == "numeric"] if len(column_kinds) > 1 else []
    coded = [parse.distinct(_rows(frame[name], keep)) for name in targets] if numeric else []
    outcomes = [_ordered(codes, values) for codes, values in coded]
    for name in numeric:
        if len(column_kinds) > 1 and numbers_rows(_rows(frame[name], keep), outcomes):
            reason = "numbers the rows (whole numbers without gaps, on which the target does not depend)"
            notes.append(left_out(name, reason))
            del column_kinds[name]


def _ordered(codes: np.ndarray, values: list[Any]) -> np.ndarray:
    """Codes that rise with numbers; those of classes as they are."""
    if not all(isinstance(value, (int, float, np.number)) for value in values):
        return codes
    return np.argsort(np.argsort(values))[codes]


def _drop_rows(
    frame: pd.DataFrame, keep: np.ndarray, column_kinds: dict[str, kinds.Kind], notes: list[str]
) -> np.ndarray:
    """Leave out the rows with a missing cell, and note how many there are."""
    complete = keep & _complete(frame, column_kinds)
    _check_rows(complete)
    dropped, before = int(keep.sum() - complete.sum()), int(keep.sum())
    if dropped:
        notes.append(f"{dropped} of {before} training rows have missing cells and are left out.")
    return complete


def _learn_columns(
    frame: pd.DataFrame,
    keep: np.ndarray,
    column_kinds: dict[str, kinds.Kind],
    weights: np.ndarray | None,
    missing: str,
    notes: list[str],
    targets: Iterable[str],
    codes: bool = False,
    outcome: np.ndarray | None = None,
) -> tuple[Column, ...]:
    """Learn each column, and note those that do not vary or are copies, and those with very many categories."""
    columns = []
    for name, kind in column_kinds.items():
        column = learn_column(kind.kind, _rows(frame[name], keep), weights, missing, kind.form, codes, outcome)
        if column is None:
            notes.append(left_out(name, "has one value in all training rows"))
            continue
        if isinstance(column, CategoryColumn) and column.other:
            notes.append(
                f"Column '{name}' has very many categories; the {len(column.categories)} most common have a "
                "feature each and the rest share one."
            )
        columns.append(column)
    same = copies(columns, frame, keep)
    notes += [left_out(name, f"says the same as '{other}'") for name, other in same.items()]
    columns = [column for column in columns if column.name not in same]
    if not columns:
        raise InputError(
            f"No column is left to predict {parse.listed(targets)} from; add a column that varies between rows."
        )
    return tuple(columns)


def _outcome(target: Any, frame: pd.DataFrame, keep: np.ndarray) -> np.ndarray:
    """A number for each training row that rises with the target: the first of several, or the place of a class."""
    values = np.asarray(target.encode(frame[keep]), np.float64)
    return np.log1p(values) if isinstance(target, CountTarget) else values.reshape(len(values), -1)[:, 0]


def _rows(series: pd.Series, keep: np.ndarray) -> pd.Series:
    return series if keep.all() else series[keep]
