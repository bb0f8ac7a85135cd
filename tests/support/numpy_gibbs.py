"""The sweep of `credo.shallow.gibbs` once more, in plain NumPy: an oracle for its draws and the slow side of a race.

Only what a careful programmer would do by hand: one column of Z and one row of Z'Z at a time, Cholesky factors from
LAPACK, no copies that can be avoided. One output, the logistic node hierarchy, inverse-gamma noise.
"""

import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit


@dataclass
class Hyper:
    """Numbers of the prior; see `credo.priors.node_hierarchy`."""

    output_mean: float = 1.0
    output_shape: float = 2.0
    output_rate: float = 2.0
    hidden_mean: float = 1.0
    hidden_scale: float = 3.0
    freedom: float = 4.0
    linear_scale: float = 1.0
    noise_shape: float = 2.0
    noise_rate: float = 0.1


@dataclass
class State:
    """A chain: nodes, coefficients (constant, linear, nodes), hyper-parameters and the adaptive walk."""

    gamma: np.ndarray
    coefs: np.ndarray
    beta_mean: float
    beta_std: float
    gamma_mean: np.ndarray
    root: np.ndarray  # of S_γ⁻¹ = LL'
    sigma: float
    log_scale: np.ndarray
    walk_root: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    count: int = 0


def solve(square, cross, mean, precision):
    """log p(y | γ), the Cholesky factor of A and L⁻¹h."""
    root = cholesky(square + np.diag(precision), lower=True, check_finite=False)
    half = solve_triangular(root, cross + precision * mean, lower=True, check_finite=False)
    value = 0.5 * np.log(precision).sum() - np.log(np.diag(root)).sum() + 0.5 * half @ half
    return value - 0.5 * (precision * mean**2).sum(), root, half


def sweep(v, x, y, state, hyper, *, passes, fresh, warmup):
    """One sweep with the variates `v` on inputs with a leading 1 [n, d]; changes a copy of the state."""
    s = copy.deepcopy(state)
    nodes, dims = s.gamma.shape
    mean = np.concatenate([np.zeros(dims), np.full(nodes, s.beta_mean)])
    precision = np.concatenate([np.full(dims, hyper.linear_scale**-2.0), np.full(nodes, s.beta_std**-2.0)])
    w = s.sigma**-2.0
    z = np.concatenate([x, expit(x @ s.gamma.T)], axis=1).T.copy()
    square, cross = w * z @ z.T, w * z @ y
    value, root, half = solve(square, cross, mean, precision)
    for i in range(passes):
        is_fresh = np.exp(v["fresh"][i]) < fresh
        drawn = s.gamma_mean + solve_triangular(s.root.T, v["walk"][i].T, lower=False).T
        steps = s.gamma + np.exp(s.log_scale)[:, None] * np.einsum("jkl,jl->jk", s.walk_root, v["walk"][i])
        proposals = np.where(is_fresh[:, None], drawn, steps)
        moved = np.zeros(nodes)
        for j in range(nodes):
            at, node = dims + j, proposals[j]
            column = expit(x @ node)
            row = w * (z @ column)
            row[at] = w * column @ column
            new_square, new_cross = square.copy(), cross.copy()
            new_square[at], new_square[:, at], new_cross[at] = row, row, w * column @ y
            new = solve(new_square, new_cross, mean, precision)
            ratio = new[0] - value
            if not is_fresh[j]:
                ahead, back = ((g - s.gamma_mean) @ s.root for g in (node, s.gamma[j]))
                ratio += 0.5 * (back @ back - ahead @ ahead)
            if v["log_u"][i, j] < ratio:
                s.gamma[j], z[at], square, cross, moved[j] = node, column, new_square, new_cross, 1
                value, root, half = new
        _learn(s, moved, ~is_fresh, passes * warmup)
    s.coefs = solve_triangular(root.T, half + v["coefs"][0], lower=False, check_finite=False)
    residual = y - z.T @ s.coefs
    _hyper(v, s, hyper)
    s.sigma = np.sqrt((hyper.noise_rate + 0.5 * residual @ residual) / v["noise_gamma"][0])
    return s


def _learn(s, moved, walked, warmup):
    if s.count >= warmup:
        return
    count = s.count + 1
    s.log_scale = s.log_scale + walked * max(2.0 * count**-0.6, 0.02) * (moved - 0.3)
    off = s.gamma - s.mean
    s.mean = s.mean + 0.02 * off
    s.covariance = 0.98 * (s.covariance + 0.02 * off[:, :, None] * off[:, None, :])
    if count % 20 == 0:
        dims = s.gamma.shape[1]
        floor = 1e-4 * np.trace(s.covariance, axis1=1, axis2=2)[:, None, None] / dims + 1e-8
        s.walk_root = np.linalg.cholesky(s.covariance + floor * np.eye(dims))
    s.count = count


def _hyper(v, s, hyper):
    nodes, dims = s.gamma.shape
    beta = s.coefs[dims:]
    precision = hyper.output_mean**-2.0 + nodes / s.beta_std**2
    s.beta_mean = beta.sum() / s.beta_std**2 / precision + v["output_mean"] / np.sqrt(precision)
    rate = hyper.output_rate + 0.5 * ((beta - s.beta_mean) ** 2).sum()
    s.beta_std = ((v["output_gamma"] + 0.5 * (v["output_scale"] ** 2).sum()) / rate) ** -0.5
    inverse = s.root @ s.root.T
    chol = np.linalg.cholesky(hyper.hidden_mean**-2.0 * np.eye(dims) + nodes * inverse)
    half = solve_triangular(chol, inverse @ s.gamma.sum(0), lower=True) + v["hidden_mean"]
    s.gamma_mean = solve_triangular(chol.T, half, lower=False)
    off = s.gamma - s.gamma_mean
    squares = 2 * v["hidden_gamma"] + (v["hidden_scale"] ** 2).sum(0)
    below = np.tril(v["hidden_root"], -1) + np.diag(np.sqrt(squares))
    scale = (hyper.freedom - 1) * hyper.hidden_scale**2 * np.eye(dims) + off.T @ off
    part = solve_triangular(np.linalg.cholesky(scale).T, below, lower=False)
    s.root = np.linalg.cholesky(part @ part.T)
