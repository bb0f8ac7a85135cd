"""log p(y | M) of a shallow network of M nodes under normal priors and known noise, by Sequential Monte Carlo.

The coefficients are integrated in closed form, y | γ ~ N(0, σ² I + τ² H Hᵀ) with H = [1, x, expit(γ_j · [1, x])], so
only the 2M numbers γ are left to a population: Del Moral, Doucet and Jasra (2006), tempered from the prior of γ,
each move a random walk of one node at a random scale or one node drawn anew.
"""

import numpy as np
from scipy.special import expit, logsumexp


def log_likelihood(gamma, x, y, scale, noise):
    """log p(y | γ) for γ [particles, M, 2], by the normal equations of the 2 + M coefficients."""
    design = np.broadcast_to(x, (len(gamma), *x.shape))
    design = np.concatenate([design, expit(np.einsum("nd,kmd->knm", x, gamma))], axis=2)
    precision = np.swapaxes(design, 1, 2) @ design / noise**2 + np.eye(design.shape[2]) / scale**2
    chol = np.linalg.cholesky(precision)
    b = np.linalg.solve(chol, (y @ design)[..., None] / noise**2)[..., 0]
    log_det = 2 * np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(1) + 2 * design.shape[2] * np.log(scale)
    constant = len(y) * np.log(2 * np.pi * noise**2) + (y**2).sum() / noise**2
    return -0.5 * (constant + log_det - (b**2).sum(1))


def next_power(power, value):
    """The power t' > t at which the population keeps nine tenths of its effective size."""

    def effective(step):
        w = np.exp(step * (value - value.max()))
        return w.sum() ** 2 / (w**2).sum() / len(w)

    low, high = 0.0, 1.0 - power
    if effective(high) > 0.9:
        return 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) > 0.9 else (low, middle)
    return power + low


def log_evidence(x, y, num_nodes, scale, noise, particles=1000, moves=40, seed=0):
    """The estimate of one population."""
    rng = np.random.default_rng(seed)
    x, y = np.column_stack([np.ones(len(x)), x]).astype(np.float64), y.astype(np.float64)
    gamma = scale * rng.normal(size=(particles, num_nodes, 2))
    value = log_likelihood(gamma, x, y, scale, noise)
    if num_nodes == 0:
        return value[0]
    power, total, rows = 0.0, 0.0, np.arange(particles)
    while power < 1:
        new = next_power(power, value)
        log_weight = (new - power) * value
        total += logsumexp(log_weight) - np.log(particles)
        share = np.cumsum(np.exp(log_weight - logsumexp(log_weight)))
        chosen = np.searchsorted(share, (rng.random() + rows) / particles).clip(0, particles - 1)
        gamma, value, power = gamma[chosen], value[chosen], new
        for _ in range(moves * num_nodes):
            node, anew = rng.integers(0, num_nodes, particles), rng.random(particles) < 0.1
            old = gamma[rows, node]
            walk = old + scale * 10 ** rng.uniform(-2.5, 0, (particles, 1)) * rng.normal(size=(particles, 2))
            moved = np.where(anew[:, None], scale * rng.normal(size=(particles, 2)), walk)
            proposal = gamma.copy()
            proposal[rows, node] = moved
            there = log_likelihood(proposal, x, y, scale, noise)
            prior = np.where(anew, 0.0, ((moved**2).sum(1) - (old**2).sum(1)) / (2 * scale**2))
            yes = np.log(rng.random(particles)) < power * (there - value) - prior
            gamma[yes], value[yes] = proposal[yes], there[yes]
    return total
