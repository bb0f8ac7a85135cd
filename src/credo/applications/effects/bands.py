"""Means and quantiles over posterior draws, by their weights."""

import numpy as np


def mean_over(draws: np.ndarray, log_weights: np.ndarray | None) -> np.ndarray:
    """Σ_k w_k v_k over the leading axis.

    Args:
        draws: [draws, ...].
        log_weights: [draws], or None where all weigh the same.
    """
    return np.average(draws, axis=0, weights=None if log_weights is None else _weights(log_weights))


def quantile_over(draws: np.ndarray, log_weights: np.ndarray | None, level: float) -> np.ndarray:
    """The quantile of every entry over the leading axis.

    Weighted draws have the quantile where the line through (Σ_{j<k} w_j + w_k/2, v_k), in the order of v, reaches the
    level.

    Args:
        draws: [draws, ...].
        log_weights: [draws], or None where all weigh the same.
        level: between 0 and 1.
    """
    if log_weights is None:
        return np.quantile(draws, level, axis=0)
    flat = draws.reshape(len(draws), -1)
    weights = _weights(log_weights)
    orders = np.argsort(flat, axis=0, kind="stable")
    quantiles = []
    for column, order in zip(flat.T, orders.T):
        mass = weights[order]
        quantiles.append(np.interp(level, np.cumsum(mass) - mass / 2, column[order]))
    return np.reshape(quantiles, draws.shape[1:])


def _weights(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(np.asarray(log_weights, np.float64) - np.max(log_weights))
    return weights / weights.sum()
