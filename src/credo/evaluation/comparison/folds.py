"""Which rows are held out together, and whether every fold can be fitted and scored."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.encode.encoder import Arrays, TableEncoder
from credo.tables.read import parse
from credo.tables.rows.copies import copies_of

if TYPE_CHECKING:
    import pandas as pd

Folds = list[tuple[np.ndarray, np.ndarray]]


def find_folds(frame: pd.DataFrame, target: Any, task: str, folds: int, seed: int, groups: str | None) -> Folds:
    """Training and held-out rows of each fold: every row is held out once. Classes keep their shares, groups stay
    whole, and copies of a row are held out with it."""
    copies = copies_of(frame) if groups is None else None
    if copies is not None:
        first = np.unique(copies)
        held_out = [first[held] for _, held in _folds(frame.iloc[first], target, task, folds, seed, None)]
        return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in (np.isin(copies, one) for one in held_out)]
    return _folds(frame, target, task, folds, seed, groups)


def _folds(frame: pd.DataFrame, target: Any, task: str, folds: int, seed: int, groups: str | None) -> Folds:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if not 2 <= folds <= len(frame):
        raise InputError(f"Folds are at least 2 and at most the {len(frame)} rows of the table, got {folds}.")
    if groups is not None:
        codes = group_codes(frame, groups)
        if codes.max() + 1 < folds:
            raise InputError(f"Column '{groups}' has {codes.max() + 1} groups, fewer than the {folds} folds.")
        return list(GroupKFold(folds).split(frame, groups=codes))
    if task == "classification":
        advice = "fill it in, or leave these rows out with --missing auto"
        codes = _codes(frame, target, "the target", advice)
        if np.bincount(codes).max() >= folds:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="The least populated class")  # `check_folds` judges that
                return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(frame, codes))
    return list(KFold(folds, shuffle=True, random_state=seed).split(frame))


def group_codes(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A number for the group of each row, from 0; rows without a group are an `InputError`."""
    return _codes(frame, name, "--split-by", "fill it in or remove these rows")


def _codes(frame: pd.DataFrame, name: str, purpose: str, advice: str) -> np.ndarray:
    series = parse.find_column(frame, name, purpose)
    codes, _ = parse.text_keys(series)
    if (codes < 0).any():
        first = parse.row_name(series, int((codes < 0).argmax()))
        raise InputError(
            f"Column '{name}', {purpose}, is missing in {int((codes < 0).sum())} row(s), the first of them {first}; "
            f"{advice}."
        )
    return codes


def encode_fold(
    frame: pd.DataFrame, rows: tuple[np.ndarray, np.ndarray], how: dict[str, Any], codes: bool = False
) -> tuple[TableEncoder, Arrays, Arrays]:
    """What a fold's training rows teach about the table, and its training and held-out rows as arrays; with `codes`,
    many categories are codes."""
    train, held = (frame.iloc[part] for part in rows)
    encoder = TableEncoder.learn(train, how["target"], how["task"], how["missing"], codes=codes)
    return encoder, encoder.arrays(train), encoder.arrays(held, unseen="zeros")


def check_folds(frame: pd.DataFrame, folds: Folds, how: dict[str, Any]) -> TableEncoder:
    """The encoder of the whole table; a fold that could not be fitted or scored is an `InputError`.

    Args:
        frame: the table, without a column of groups.
        folds: from `find_folds`.
        how: "target", "task" and "missing".
    """
    encoder = TableEncoder.learn(frame, how["target"], how["task"], how["missing"])
    if encoder.classes is not None:
        _check_classes(frame[how["target"]], folds, encoder.keep(frame))
    for i, rows in enumerate(folds):
        try:
            _, _, scored = encode_fold(frame, rows, how)
        except InputError as error:
            raise InputError(
                f"Fold {i + 1} of {len(folds)} cannot be fitted (try another --folds or --seed): {error}"
            ) from error
        if len(scored.rows) == 0:
            raise InputError(
                f"Every row that fold {i + 1} of {len(folds)} holds out has a missing cell; use --missing auto or "
                "fewer --folds."
            )
    return encoder


def _check_classes(series: pd.Series, folds: Folds, usable: np.ndarray) -> None:
    """Raise a sentence where the training rows of a fold have fewer than two rows of a class."""
    codes, keys = parse.text_keys(series)
    used = np.isin(np.arange(len(codes)), usable)
    sizes = np.bincount(codes[used], minlength=len(keys))
    for i, (train, _) in enumerate(folds):
        counts = np.bincount(codes[train[used[train]]], minlength=len(keys))
        counts[sizes == 0] = 2  # all its rows have missing cells: no fold knows such a class
        if counts.min() < 2:
            lonely = int(counts.argmin())
            more = ", remove it or use another number of folds" if sizes[lonely] > 2 else " or remove it"
            raise InputError(
                f"Class '{keys[lonely]:.60}' of the target '{series.name}' has {sizes[lonely]} rows, of which fold "
                f"{i + 1} of {len(folds)} leaves {counts[lonely]} to learn from where two are needed; add rows of it, "
                f"merge it with another class{more}."
            )
