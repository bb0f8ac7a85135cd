"""Checks of bounds and of information: what must be equal, or on one side, wherever the truth is known."""

from typing import Any, NamedTuple

import jax
import numpy as np

from credo.evaluation.audit.conjugate import Conjugate, design
from credo.evaluation.diagnostics.pareto import log_weights


class Bound(NamedTuple):
    """A Monte-Carlo estimate of E_q[log p(D, θ) − log q(θ)] and its standard error."""

    value: float
    error: float

    def below(self, log_evidence: float, errors: float = 4.0) -> bool:
        """Is it a bound: not above the log evidence by more than so many standard errors?"""
        return self.value <= log_evidence + errors * self.error


def elbo(key: jax.Array, fit: Any, data: Any, num: int = 4000) -> Bound:
    """E_q[log p(D, θ) − log q(θ)] ≤ log p(D) for any posterior with a density, from `num` draws of q.

    It does not use the method's own loss, so it also checks that. Members of a mixture count as one q. Where a
    parameter is a point beside q (learned noise), it bounds the evidence at that point.

    Args:
        key: a JAX key.
        fit: a fit whose posterior has `sample` and `log_prob`.
        data: the training data, (inputs, targets) or with weights.
        num: draws of q.
    """
    gaps = log_weights(key, fit, data, num)
    return Bound(float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))))


def gaussian_kl(mean: np.ndarray, std: np.ndarray, exact: Conjugate) -> float:
    """KL[Π N(m_i, s_i²) ‖ p(θ|D)] on the conjugate model: the gap between ELBO and log evidence."""
    precision, shift = exact.precision, np.asarray(mean, np.float64) - exact.mean
    _, log_det = np.linalg.slogdet(precision)
    trace = np.diag(precision) @ np.asarray(std, np.float64) ** 2
    return float(0.5 * (trace + shift @ precision @ shift - len(shift) - log_det) - np.log(std).sum())


def mutual_information(exact: Conjugate, inputs: np.ndarray) -> np.ndarray:
    """I[y*; θ | x*, D] = H[y*] − E_θ H[y*|θ] = ½ log(1 + s²(x*)/σ²) at every input [n]."""
    _, std = exact.predict(inputs)
    return 0.5 * np.log1p(std**2 / exact.noise**2)


def information_gain(exact: Conjugate, inputs: np.ndarray, nodes: int = 20) -> np.ndarray:
    """The same by its other form, E_{p(y*|x*, D)} KL[p(θ|D, x*, y*) ‖ p(θ|D)], by Gauss–Hermite quadrature over y*.

    Houlsby et al. (2011), Bayesian active learning for classification and preference learning.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    prior_precision, prior_mean = exact.precision, exact.mean
    gains = []
    for row, mean, std in zip(design(inputs), *exact.predict(inputs)):
        total = np.hypot(std, exact.noise)
        precision = prior_precision + np.outer(row, row) / exact.noise**2
        covariance = np.linalg.inv(precision)
        log_dets = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(prior_precision)[1]
        fixed = 0.5 * (np.trace(prior_precision @ covariance) - len(row) + log_dets)
        divergences = []
        for y in mean + total * points:
            after = covariance @ (prior_precision @ prior_mean + row * y / exact.noise**2)
            shift = after - prior_mean
            divergences.append(fixed + 0.5 * shift @ prior_precision @ shift)
        gains.append(weights @ np.array(divergences))
    return np.array(gains)
