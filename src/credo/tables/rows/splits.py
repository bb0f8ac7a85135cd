"""Which rows are held out to be scored on: at random, by whole groups, or the latest in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from credo.errors import InputError
from credo.tables.columns import kinds
from credo.tables.read import number_forms, parse
from credo.tables.rows.copies import copies_of

if TYPE_CHECKING:
    import pandas as pd

Split = tuple[np.ndarray, np.ndarray]


def split_rows(
    frame: pd.DataFrame,
    holdout: float = 0.1,
    seed: int = 0,
    split_by: str | None = None,
    time: str | None = None,
    stratify: str | Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the training rows and of the held-out rows, both in rising order.

    Copies of one row stay on one side.

    Args:
        frame: the whole table.
        holdout: the share of rows to hold out; 0 holds out none.
        seed: the same seed gives the same rows.
        split_by: a column whose groups are held out whole.
        time: a column of dates or numbers; the latest rows are held out.
        stratify: a column, or one label per row, whose classes keep their shares;
            two rows of each class stay in training.
    """
    frame = parse.named_frame(frame)
    split = _split_with_copies(frame, holdout, seed, stratify) if split_by is None and time is None else None
    if split is not None:
        return split
    if isinstance(holdout, bool) or not isinstance(holdout, (int, float)) or not 0.0 <= holdout < 1.0:
        raise InputError(f"The hold-out share is {holdout} but must be at least 0 and below 1; try --holdout 0.1.")
    if split_by is not None and time is not None:
        raise InputError("Rows are held out either by group or by time; use --split-by or --time, not both.")
    count = _held_out_count(len(frame), float(holdout))
    if count == 0:
        held = np.zeros(len(frame), bool)
    elif split_by is not None:
        held = _by_group(parse.find_column(frame, split_by, "--split-by"), count, seed)
    elif time is not None:
        held = _by_time(parse.find_column(frame, time, "--time"), count)
    elif stratify is not None:
        held = _by_class(_labels(frame, stratify), count, seed)
    else:
        held = np.zeros(len(frame), bool)
        held[np.random.default_rng(seed).permutation(len(frame))[:count]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _split_with_copies(frame: pd.DataFrame, holdout: float, seed: int, stratify: Any) -> Split | None:
    """The split of a table with copies: one row of each kind is split, and copies follow it. None without copies."""
    codes = copies_of(frame)
    if codes is None:
        return None
    first = np.unique(codes)
    if stratify is not None and not isinstance(stratify, str):
        stratify = np.asarray(stratify)[first]
    _, held = split_rows(frame.iloc[first], holdout, seed, stratify=stratify)
    chosen = np.isin(codes, first[held])
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def _held_out_count(rows: int, holdout: float) -> int:
    if rows < 2:
        raise InputError(f"The table has {rows} row{'s' * (rows != 1)}, which is too few to learn from; add rows.")
    if holdout == 0.0:
        return 0
    count = max(1, round(rows * holdout))
    if rows - count < 2:
        raise InputError(
            f"Holding out {holdout:g} of {rows} rows leaves fewer than two to learn from; use a smaller --holdout."
        )
    return count


def _by_group(series: pd.Series, count: int, seed: int) -> np.ndarray:
    """Hold out groups in random order as long as they fit, or else the smallest one."""
    _refuse_missing(series, "--split-by")
    codes, keys = parse.text_keys(series)
    if len(keys) < 2:
        raise InputError(
            f"Column '{series.name}' has one group ('{keys[0]:.60}'), and --split-by holds out whole groups; "
            "choose a column with two or more."
        )
    # Sorted first, so that the order of the rows does not change which groups are drawn.
    order = np.argsort(np.array(keys, dtype=object), kind="stable")
    order = order[np.random.default_rng(seed).permutation(len(keys))]
    sizes = np.bincount(codes)
    chosen: list[int] = []
    room = count
    for group in order:
        if sizes[group] <= room and len(chosen) < len(keys) - 1:
            chosen.append(int(group))
            room -= int(sizes[group])
    chosen = chosen or [int(order[np.argmin(sizes[order])])]
    held = np.isin(codes, chosen)
    if (~held).sum() < 2:
        raise InputError(
            f"Holding out groups of column '{series.name}' leaves fewer than two rows to learn from; "
            "use a smaller --holdout."
        )
    return held


def _by_time(series: pd.Series, count: int) -> np.ndarray:
    """Hold out the latest rows; rows of the same time stay together."""
    _refuse_missing(series, "--time")
    when = _times(series)
    cut = np.sort(when)[-count]
    choices = [held for held in (when >= cut, when > cut) if held.any() and (~held).sum() >= 2]
    if not choices:
        raise InputError(
            f"Column '{series.name}' has too few different times to hold out the latest rows; "
            "choose another column for --time."
        )
    return min(choices, key=lambda held: abs(int(held.sum()) - count))


def _times(series: pd.Series) -> np.ndarray:
    kind = kinds.find_kind(series, ids=False)
    if kind.kind == "date":
        return parse.days(series, kind.form)
    if kind.kind == "numeric":
        return parse.numbers(series, form=kind.form or number_forms.PLAIN)
    if kind.kind == "category" and parse.is_text(series):
        return parse.days(series, None)  # raises, naming the first cell that is no date
    raise InputError(
        f"Column '{series.name}' should hold dates or numbers for --time but holds {series.dtype} values; "
        "choose another column."
    )


def _by_class(labels: pd.Series, count: int, seed: int) -> np.ndarray:
    """Hold out each class in proportion, by largest remainders, but leave two rows of each."""
    _refuse_missing(labels, "classes")
    codes, keys = parse.text_keys(labels)
    sizes = np.bincount(codes, minlength=len(keys))
    spare = np.maximum(sizes - 2, 0)
    if not spare.any():
        raise InputError("No class has more than two rows, so none can be held out; use --holdout 0 or add rows.")
    share = count * sizes / len(codes)
    take = np.minimum(np.floor(share).astype(int), spare)
    rng = np.random.default_rng(seed)
    # Ties between equal remainders are broken at random, not by the order of the classes.
    order = np.lexsort((rng.random(len(keys)), -(share - np.floor(share))))
    while take.sum() < min(count, spare.sum()):
        open_codes = order[take[order] < spare[order]]
        take[open_codes[: count - take.sum()]] += 1
    held = np.zeros(len(codes), bool)
    for code in range(len(keys)):
        held[rng.permutation(np.flatnonzero(codes == code))[: take[code]]] = True
    return held


def _labels(frame: pd.DataFrame, stratify: Any) -> pd.Series:
    import pandas as pd

    if isinstance(stratify, str):
        return parse.find_column(frame, stratify, "the classes to balance")
    labels = np.asarray(stratify)
    if labels.shape != (len(frame),):
        raise InputError(f"The classes have the shape {labels.shape} for {len(frame)} rows; give one per row.")
    return pd.Series(labels, index=frame.index, name="classes")


def _refuse_missing(series: pd.Series, purpose: str) -> None:
    missing = parse.missing_mask(series)
    if missing.any():
        first = parse.row_name(series, int(missing.argmax()))
        raise InputError(
            f"Column '{series.name}' is missing in {int(missing.sum())} row(s), the first of them {first}, "
            f"so it cannot serve as {purpose}; fill it in or remove these rows."
        )
