"""Weighted statistics in float64, where a weight of two counts as two rows."""

from __future__ import annotations

import numpy as np


def mean_and_std(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return mean and standard deviation in two passes, so that a large offset costs no digits."""
    values = np.asarray(values, np.float64)
    if values.min() == values.max():
        return float(values[0]), 0.0
    # Squares of very large or very small numbers leave the range of float64.
    unit = float(np.abs(values).max())
    unit = unit if not 1e-100 < unit < 1e100 else 1.0
    scaled = values / unit if unit != 1.0 else values
    mean = np.average(scaled, weights=weights)
    variance = np.average(np.square(scaled - mean), weights=weights)
    return float(mean * unit), float(np.sqrt(variance) * unit)


def median(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the median of the rows repeated by their weights."""
    if weights is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    ordered, mass = values[order], np.cumsum(weights[order], dtype=np.float64)
    half = mass[-1] / 2
    middle = min(int(np.searchsorted(mass, half, side="left")), len(ordered) - 1)
    if mass[middle] == half and middle + 1 < len(ordered):
        return float((ordered[middle] + ordered[middle + 1]) / 2)
    return float(ordered[middle])


def totals(codes: np.ndarray, size: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the total weight of each code in `0 … size - 1`; negative codes are left out."""
    present = codes >= 0
    mass = None if weights is None else weights[present]
    return np.bincount(codes[present], weights=mass, minlength=size)
