"""How far a fit is from the truth: numbers that are 0, 1 or 0.9 where it is exact."""

from typing import Any

import jax
import numpy as np

from credo.core.draws import function_draws
from credo.core.mixture import Flat, flatten
from credo.core.posterior import Draws
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.truth import LEVELS, Truth, function_values, on_grid, weighted_moments, weighted_quantiles

NUM_SAMPLES = 4000  # draws of a posterior that can make any number of them


def measure(key: jax.Array, fit: Any, problem: Problem) -> dict[str, float | None]:
    """The distances between a fit and the truth of its problem.

    With g the function values (class probabilities for classes), m, s their posterior mean and standard deviation by
    the fit and m*, s* the true ones, all averaged over the inputs of the problem:

    - mean_error: √ mean ((m − m*)/s*)², in posterior standard deviations; 0 is exact.
    - std_ratio: mean s/s*; 1 is exact, below 1 too sure, 0 for a point.
    - w1_function: ∫|Q_g(u) − Q*_g(u)| du / s*: W1 between the posteriors of g; 0 is exact.
    - w1: ∫|F(y) − F*(y)| dy / Std*[y]: W1 between the predictive distributions (Σ_c |p_c − p*_c|/2 for classes).
    - total_variation: ½ ∫|p(y) − p*(y)| dy; 0 is exact.
    - agreement (classes): the share of inputs where both name the same class.
    - coverage_90: the true probability of the fit's 90 % predictive interval; for classes the true posterior
      probability of its 90 % credible interval of p(c|x); 0.9 is exact.
    - credible_90: the true posterior probability of the fit's 90 % credible interval of g.
    - regret: E_{y ~ p*}[log p*(y) − log p(y)], the mean loss of log score, in nats; 0 is exact.
    - std_ratio_<region>: std_ratio on a part of the inputs.
    """
    draws = function_draws(key, fit, problem.places, NUM_SAMPLES if fit.posterior.num_draws(None)[1] > 1 else None)
    return measure_draws(fit.model.likelihood, draws, problem)


def measure_draws(likelihood: Any, draws: Draws, problem: Problem) -> dict[str, float | None]:
    """`measure` for draws of the network's outputs at the problem's places."""
    truth, flat = problem.truth, flatten(draws)
    values, weights = function_values(likelihood, flat)
    mean, std = weighted_moments(values, weights)
    gaps: dict[str, float | None] = {
        "mean_error": float(np.sqrt((((mean - truth.mean) / truth.std) ** 2).mean())),
        "std_ratio": _ratio(std, truth.std),
    }
    quantiles = weighted_quantiles(values, weights)
    gaps["w1_function"] = float((np.abs(quantiles - truth.quantiles).mean(0) / truth.std).mean())
    gaps["credible_90"] = _credible(values, weights, truth)
    gaps |= _classes(mean, truth, gaps["credible_90"]) if truth.kind == "classes" else _real(likelihood, flat, truth)
    for name, rows in problem.regions.items():
        gaps[f"std_ratio_{name}"] = _ratio(std[rows], truth.std[rows])
    return gaps


def _ratio(std: np.ndarray, true: np.ndarray) -> float:
    ratio = std / true
    return float(np.where(ratio > 1e-6, ratio, 0.0).mean())  # a point has no spread at all, up to rounding


def _credible(values: np.ndarray, weights: np.ndarray, truth: Truth) -> float:
    low, high = weighted_quantiles(values, weights, np.array([0.05, 0.95]))
    columns = truth.quantiles.reshape(len(LEVELS), -1)
    below = [
        [np.interp(end, column, LEVELS, left=0.0, right=1.0) for end, column in zip(ends.ravel(), columns.T)]
        for ends in (low, high)
    ]
    return float(np.subtract(below[1], below[0]).mean())


def _classes(probs: np.ndarray, truth: Truth, credible: float | None) -> dict[str, float | None]:
    true = truth.mean / truth.mean.sum(-1, keepdims=True)
    probs = np.maximum(probs, 1e-30)
    distance = float(0.5 * np.abs(probs - true).sum(-1).mean())
    return {
        "w1": distance,
        "total_variation": distance,
        "agreement": float((probs.argmax(-1) == true.argmax(-1)).mean()),
        "coverage_90": credible,
        "regret": float((true * (np.log(np.maximum(true, 1e-30)) - np.log(probs))).sum(-1).mean()),
    }


def _real(likelihood: Any, flat: Flat, truth: Truth) -> dict[str, float | None]:
    assert truth.grid is not None
    assert truth.cdf is not None
    assert truth.log_density is not None
    log_density, cdf = on_grid(likelihood, flat, truth.grid)
    width = truth.grid[:, 1] - truth.grid[:, 0]
    inside = [
        np.interp(np.interp([0.05, 0.95], ours, grid), grid, true)
        for ours, true, grid in zip(cdf, truth.cdf, truth.grid)
    ]
    density = truth.density
    regret = density * (truth.log_density - np.maximum(log_density, -200.0))
    return {
        "w1": float((np.abs(cdf - truth.cdf).sum(1) * width / truth.noise).mean()),
        "total_variation": float((0.5 * np.abs(np.exp(log_density) - density).sum(1) * width).mean()),
        "agreement": None,
        "coverage_90": float(np.diff(inside).mean()),
        "regret": float((regret.sum(1) * width).mean()),
    }
