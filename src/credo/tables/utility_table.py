"""A table of utilities: what each action is worth, as a person writes it in a spreadsheet."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.applications.decisions.utilities import NamedActions, class_utility, step_utility
from credo.errors import InputError
from credo.tables.encode.encoder import TableEncoder
from credo.tables.read import parse
from credo.tables.read.source import read_source, table_name

STEPS = ("action", "threshold", "utility_below", "utility_above")


def read_utility(utility: Any, encoder: TableEncoder) -> Any:
    """The utilities of a table, with one row for each action; whatever is no table is returned as it is.

    For classes, the first column names the action and each other column is a class. For numbers, the columns are
    action, threshold, utility_below and utility_above.

    Args:
        utility: a path, a data frame, or else what `credo.decide` takes.
        encoder: of the run, which knows its classes.
    """
    import pandas as pd

    if not isinstance(utility, str | os.PathLike | pd.DataFrame):
        return utility
    frame, name = parse.named_frame(read_source(utility).frame), table_name(utility)
    return _steps(frame, name) if encoder.classes is None else _classes(frame, name, encoder.classes)


def _classes(frame: Any, path: str, classes: Sequence[Any]) -> NamedActions:
    names = [parse.text_key(label) for label in classes]
    first, *columns = list(frame.columns)
    if columns == list(STEPS[1:]):
        raise InputError(
            f"{path} has thresholds, but this run predicts classes: give it one column for each of "
            f"{parse.listed(names)}."
        )
    column_of: dict[str, str] = {}
    for column in columns:
        label = _label(column, names)
        if label is None:
            raise InputError(
                f"{path} has a column '{column}', which is no class of this run; the classes are {parse.listed(names)}."
            )
        if label in column_of:
            raise InputError(f"{path} has two columns for the class '{label}'; remove one.")
        column_of[label] = column
    missing = [name for name in names if name not in column_of]
    if missing:
        raise InputError(
            f"{path} has no column for the class {parse.listed(missing)}; its first column names actions, and every "
            "class needs a column of utilities."
        )
    values = np.stack([_numbers(frame[column_of[name]], path) for name in names], 1)
    return class_utility(values, _actions(frame[first], path), names)


def _label(column: str, names: list[str]) -> str | None:
    """The class that a column names: by its text, or by it without regard to case where that is one class."""
    text = column.strip()
    if text in names:
        return text
    near = [name for name in names if name.lower() == text.lower()]
    return near[0] if len(near) == 1 else None


def _steps(frame: Any, path: str) -> NamedActions:
    missing = [name for name in STEPS if name not in frame.columns]
    if missing:
        raise InputError(
            f"{path} has no column '{missing[0]}'; for a number its columns are {', '.join(STEPS)} "
            "(or use --newsvendor UNDER,OVER)."
        )
    columns = [_numbers(frame[name], path) for name in STEPS[1:]]
    actions = _actions(frame["action"], path)
    return step_utility({name: tuple(map(float, row)) for name, *row in zip(actions, *columns)})  # type: ignore[misc]


def _numbers(series: Any, path: str) -> np.ndarray:
    """A column of finite numbers, or a sentence."""
    missing = parse.missing_mask(series)
    values = parse.numbers(series, f"utilities (numbers) in {path}", "correct it")
    missing = missing | np.isnan(values)
    if missing.any():
        raise InputError(
            f"Column '{series.name}' of {path} is empty or not a number in "
            f"{parse.row_name(series, int(missing.argmax()))}; give a number."
        )
    return values


def _actions(series: Any, path: str) -> list[str]:
    """Names of the actions, each once."""
    missing = parse.missing_mask(series)
    if missing.any():
        raise InputError(f"An action of {path} has no name ({parse.row_name(series, int(missing.argmax()))}); name it.")
    names = [parse.text_key(value).strip() for value in series]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"{path} has the action '{twice[0]}' twice; give each action one row.")
    return names
