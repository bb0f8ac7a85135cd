"""The weights of a mixture of predictive distributions that predicts given rows best."""

import numpy as np

from credo.errors import InputError

TURNS = 200
SMALLEST_GAIN = 1e-12  # nats a row: below it a turn changes nothing
JITTER = 1e-10  # of the largest curvature: columns may be alike
HALVINGS = 40


def best_mixture(
    log_density: np.ndarray, *, weights: np.ndarray | None = None, pseudo_rows: float = 0.0,
    favoured: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The weights w that maximise Σ_n v_n log Σ_c w_c p_cn + a Σ_c q_c log w_c: a concave problem.

    Few rows name a winner by chance; a pseudo-rows, which split as q does, keep every w_c at a q_c/(a + Σ v) or above
    (the mode under a Dirichlet prior). Rows that no component can explain say nothing. Newton steps on the quadrant
    w ≥ 0, where the penalty Σ_c w_c makes the sum 1: Kim, Carbonetto, Stephens and Anitescu (2020), A fast algorithm
    for maximum likelihood estimation of mixture proportions using sequential quadratic programming.

    Args:
        log_density: log p_cn [component, row]; −∞ or NaN is a row that the component holds to be impossible.
        weights: v of each row; 1 where None.
        pseudo_rows: a, at least 0.
        favoured: q, of which only the proportions matter; equal where None.

    Example:
        >>> import numpy as np
        >>> log_density = np.log([[0.9, 0.8, 0.1], [0.2, 0.1, 0.6]])
        >>> best_mixture(log_density).round(2).tolist(), best_mixture(log_density, pseudo_rows=9).round(2).tolist()
        ([0.73, 0.27], [0.53, 0.47])
    """
    density, rows = _explained(np.asarray(log_density, np.float64), weights)
    count = len(density)
    if not pseudo_rows >= 0:
        raise InputError(f"The number of pseudo_rows is at least 0, got {pseudo_rows}.")
    if pseudo_rows:
        density, rows = np.c_[density, np.eye(count)], np.r_[rows, pseudo_rows * _proportions(favoured, count)]
    if not rows.sum() > 0:
        return _proportions(favoured, count)
    return _newton(density[:, rows > 0], rows[rows > 0] / rows.sum())


def _explained(log_density: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Densities relative to the best component's, and weights, of the rows that some component explains."""
    row_weights = np.ones(log_density.shape[1]) if weights is None else np.asarray(weights, np.float64)
    if row_weights.shape != log_density.shape[1:] or not (np.isfinite(row_weights) & (row_weights >= 0)).all():
        raise InputError(f"{log_density.shape[1]} rows have as many weights of at least 0, got {weights}.")
    cleaned = np.nan_to_num(log_density, nan=-np.inf, posinf=np.finfo(float).max, neginf=-np.inf)
    top = cleaned.max(0)
    possible = top > -np.inf
    return np.exp(cleaned[:, possible] - top[possible]), row_weights[possible]


def _proportions(favoured: np.ndarray | None, count: int) -> np.ndarray:
    shares = np.ones(count) if favoured is None else np.asarray(favoured, np.float64)
    if shares.shape != (count,) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum() > 0:
        raise InputError(f"favoured are {count} numbers of at least 0, not all 0, got {favoured}.")
    return shares / shares.sum()


def _newton(density: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The w ≥ 0 that minimise Σ_c w_c − Σ_n v_n log Σ_c w_c p_cn, for Σ v = 1; their sum is 1."""
    weights = np.full(len(density), 1 / len(density))
    value = _loss(weights, density, rows)
    for _ in range(TURNS):
        scaled = density * (np.sqrt(rows) / (weights @ density))
        curvature = np.einsum("cn,dn->cd", scaled, scaled)  # threads of a BLAS would wait longer than they compute
        slope = 2 * (scaled @ np.sqrt(rows)) - 1
        step = _best_of_quadratic(curvature, slope) - weights
        length, before = 1.0, value
        for _ in range(HALVINGS):
            moved = np.maximum(weights + length * step, 0.0)
            value = _loss(moved, density, rows)
            if value <= before:
                break
            length /= 2
        if not before - value > SMALLEST_GAIN:
            break
        weights = moved
    return weights / weights.sum()


def _best_of_quadratic(curvature: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The x ≥ 0 that minimise ½ x'Hx − s'x."""
    from scipy.linalg import LinAlgError, cholesky, solve_triangular
    from scipy.optimize import nnls

    jitter = JITTER * np.diagonal(curvature).max()
    try:
        root = cholesky(curvature + jitter * np.eye(len(slope)), lower=True)
    except LinAlgError:
        root = cholesky(curvature + 1e4 * jitter * np.eye(len(slope)), lower=True)
    return nnls(root.T, solve_triangular(root, slope, lower=True))[0]


def _loss(weights: np.ndarray, density: np.ndarray, rows: np.ndarray) -> float:
    with np.errstate(divide="ignore"):  # a long step may leave a row without density
        return float(weights.sum() - rows @ np.log(weights @ density))
