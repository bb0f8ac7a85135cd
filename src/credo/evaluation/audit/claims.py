"""What a method claims to be exact on, and whether a row of the audit bears it out."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from credo.core.mixture import flatten
from credo.core.posterior import Draws
from credo.evaluation.audit.measures import NUM_SAMPLES
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.truth import LEVELS, Truth, function_values
from credo.evaluation.diagnostics.chains import chain_stats
from credo.methods.population.pareto_smoothing import good_shape, shape_of_smoothed

FALSE_ALARMS = 1e-3  # of the z-tests of one method on one problem, all inputs together
FLAGGED = 1.01  # R-hat of functions above which chains do not claim to have found everything
AT = (0.1, 0.5, 0.9)  # levels of the quantiles at which chains are tested
NOTHING = 0.02  # members that optimised to one point differ by rounding
MEAN, SPREAD = 0.2, 0.05  # bounds on mean_error and on |log std_ratio| for answers that are not chains
NEAR_MEAN, NEAR_SPREAD = 0.1, 0.05  # of answers that are right to a tolerance: variances to 10 %
ERRORS = 4  # Monte-Carlo errors that such chains may be off beyond that: a false alarm in 10,000


class Chains(NamedTuple):
    """What chains say about themselves, in function space."""

    z: float  # the largest |z| of the shares of draws below true quantiles
    bound: float  # what it stays below with probability 1 − FALSE_ALARMS
    rhat: float
    effective: float


def judge_chains(likelihood: Any, draws: Draws, truth: Truth) -> Chains | None:
    """z = (share of draws with g ≤ Q*(u) − u) / √(Monte-Carlo error² + error of the reference²), for u near `AT`.

    Shares are bounded, so their errors are near normal even where g is skewed (a probability close to 1). They notice
    errors of location, of spread and of shape alike. None for single draws and for particles of equal weight.
    """
    members, each = draws.values.shape[:2]
    if each < 8:
        return None
    if draws.log_weights is not None:
        return _judge_weighted(likelihood, draws, truth)
    values = function_values(likelihood, flatten(draws))[0]
    chains = values.reshape(members, each, *values.shape[1:])
    z = []
    for u, quantile, reference_error in _tested_quantiles(truth):
        below = (chains <= quantile).astype(np.float64)
        # Draws that all lie on one side show no error of their own: that of as many independent ones is assumed.
        error = np.maximum(chain_stats(below).mcse_mean, np.sqrt(u * (1 - u) / (members * each)))
        z.append((below.mean((0, 1)) - u) / np.hypot(error, reference_error))
    statistics = chain_stats(chains)
    return _judged(z, float(np.nanmax(statistics.rhat)), float(np.nanmin(statistics.ess_bulk)))


def _tested_quantiles(truth: Truth) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """(u, Q*(u), standard error of the share below it in the reference) for u near `AT`."""
    for level in AT:
        index = int(np.abs(LEVELS - level).argmin())
        u = LEVELS[index]
        yield u, truth.quantiles[index], np.sqrt(u * (1 - u) / truth.effective)


def _judged(z: list[np.ndarray], rhat: float, effective: float) -> Chains:
    bound = float(stats.norm.isf(FALSE_ALARMS / 2 / np.size(z)))
    return Chains(float(np.abs(z).max()), bound, rhat, effective)


def _judge_weighted(likelihood: Any, draws: Draws, truth: Truth) -> Chains | None:
    """The same for independent draws of unequal weight, with the error √Σ w²(1[g ≤ Q*] − u)² of a weighted share.

    `effective` is 1/Σw², or 0 where k̂ says that the weights cannot be believed: then no claim is made.
    """
    values, weights = function_values(likelihood, flatten(draws))
    shape = shape_of_smoothed(np.log(np.maximum(weights, np.finfo(np.float64).tiny)))
    if np.ptp(weights) == 0:
        return None
    effective = 1 / (weights**2).sum()
    z = []
    for u, quantile, reference_error in _tested_quantiles(truth):
        below = (values <= quantile).astype(np.float64)
        share = np.tensordot(weights, below, 1)
        error = np.sqrt(np.tensordot(weights**2, (below - u) ** 2, 1))
        error = np.maximum(error, np.sqrt(u * (1 - u) / effective))
        z.append((share - u) / np.hypot(error, reference_error))
    return _judged(z, 1.0, float(effective) if shape < good_shape(len(weights)) else 0.0)


class Claim(NamedTuple):
    """A claim: in words, where it is made, and the test that a row must pass there."""

    words: str
    made: Callable[[Problem], bool]
    met: Callable[[Problem, dict[str, Any]], bool]


def _chain_met(problem: Problem, row: dict[str, Any]) -> bool:
    if row["z"] is None:
        return False
    flagged = row["effective"] == 0 or (not problem.unimodal and row["rhat"] > FLAGGED)
    return row["z"] < row["z_bound"] or flagged


def _near_met(problem: Problem, row: dict[str, Any]) -> bool:
    if row["std_ratio"] <= 0:
        return False
    effective = NUM_SAMPLES if row["effective"] is None else row["effective"]  # of a distribution, not of chains
    error = ERRORS / np.sqrt(max(effective, 1.0))
    near = row["mean_error"] < NEAR_MEAN + error
    return near and abs(np.log(row["std_ratio"])) < NEAR_SPREAD + error / np.sqrt(2)


def _spread_met(problem: Problem, row: dict[str, Any]) -> bool:
    return row["mean_error"] < MEAN and row["std_ratio"] > 0 and abs(np.log(row["std_ratio"])) < SPREAD


def _mean_met(problem: Problem, row: dict[str, Any]) -> bool:
    return row["mean_error"] < MEAN and 0 < row["std_ratio"] < 1 + SPREAD


def _point_met(problem: Problem, row: dict[str, Any]) -> bool:
    return row["mean_error"] < MEAN and row["std_ratio"] < NOTHING


CLAIMS = {
    "posterior": Claim("exact in the limit of many draws", lambda problem: True, _chain_met),
    "architectures": Claim("exact, which nodes there are included", lambda p: p.gaussian, _chain_met),
    "weighted": Claim("exact around one mode, unless its weights say otherwise", lambda p: p.unimodal, _chain_met),
    "near_posterior": Claim("right to a tenth where the posterior is Gaussian", lambda p: p.gaussian, _near_met),
    "gaussian": Claim("exact where the posterior is Gaussian", lambda problem: problem.gaussian, _spread_met),
    "functions": Claim("exact for linear and infinitely wide networks", lambda p: p.gaussian, _spread_met),
    "mean_field": Claim("exact where the posterior is a product", lambda problem: problem.factorised, _spread_met),
    "mean": Claim("right on the mean of a Gaussian posterior, if too sure", lambda p: p.gaussian, _mean_met),
    "mode": Claim("the mode, which is the mean of a Gaussian posterior", lambda p: p.gaussian, _point_met),
    "least_squares": Claim("the best fit, which no posterior is", lambda problem: False, lambda problem, row: False),
}


def judge(exact_on: str, problem: Problem, row: dict[str, Any]) -> bool | None:
    """True or False where the method claims to be exact on this problem, None where it does not."""
    claim = CLAIMS[exact_on]
    return bool(claim.met(problem, row)) if claim.made(problem) else None
