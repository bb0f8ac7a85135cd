"""DataFrames among the inputs of estimators: which of them need a table encoder, and predictions at their rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.core.predictive import Predictive
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.unseen import predict_unseen, unseen_notes
from credo.tables.encode.weighted import median
from credo.tables.read.source import read_source

if TYPE_CHECKING:
    import pandas as pd


def is_frame(X: Any) -> bool:
    """Is it a table of pandas, polars or Arrow, rather than an array?"""
    return hasattr(X, "columns") and hasattr(X, "shape")


def densify(X: Any) -> Any:
    """A data frame without sparse columns; anything else as it is."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame) or not any(isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes):
        return X
    return X.apply(lambda column: column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column)


def is_numeric(frame: pd.DataFrame) -> bool:
    """Does a table hold numbers and truth values alone, none of them missing? Then it is an array with names."""
    from pandas.api.types import is_numeric_dtype

    return all(is_numeric_dtype(dtype) for dtype in frame.dtypes) and not frame.isna().any(axis=None)


def medians(inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What a missing cell of each column [n, columns] is taken to be."""
    mass = None if (weight == 1).all() else weight
    return np.array([median(column, mass) for column in inputs.T])


def fill_missing(X: Any, cells: np.ndarray) -> Any:
    """A table of numbers whose missing cells are those of `cells`, one for each column."""
    frame = read_source(X).frame
    if is_numeric(frame) or frame.shape[1] != len(cells):
        return X
    values = frame.to_numpy(np.float64, na_value=np.nan)
    return type(frame)(np.where(np.isnan(values), cells, values), columns=frame.columns)


def target_names(y: Any, outputs: int) -> tuple[str, ...]:
    """The names of targets, "y" where they have none."""
    if is_frame(y):
        return tuple(map(str, read_source(y).frame.columns))
    name = getattr(y, "name", None)
    name = "y" if name is None else str(name)
    return (name,) if outputs == 1 else tuple(f"{name}{i}" for i in range(outputs))


def frame_like(X: Any, names: Any) -> pd.DataFrame:
    """Rows as a table of pandas, an array with these names."""
    import pandas as pd

    if is_frame(X):
        return read_source(X).frame
    return pd.DataFrame(np.asarray(X, object), columns=names).infer_objects()


def predict_rows(at: Callable[[np.ndarray], Predictive], encoder: TableEncoder, frame: Any) -> Predictive:
    """The predictive at the rows of a table; a new category is averaged over those of training, with a warning."""
    inputs = encoder.inputs(frame, unseen="zeros")
    for note in unseen_notes(encoder, inputs):
        warnings.warn(note, UserWarning, stacklevel=3)
    return predict_unseen(at, encoder, inputs)
