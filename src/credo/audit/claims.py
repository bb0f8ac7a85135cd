"""What a method claims to be exact on, and whether a row of the audit bears it out."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from credo.audit.problem import Problem
from credo.audit.truth import Truth, function_values
from credo.core.mixture import flatten
from credo.core.posterior import Draws
from credo.diagnostics.chains import chain_stats

FALSE_ALARMS = 1e-3  # of the z-tests of one method on one problem, all inputs together
FLAGGED = 1.01  # R-hat of functions above which chains do not claim to have found everything
MEAN, SPREAD = 0.2, 0.05  # bounds on mean_error and on |log std_ratio| for answers that are not chains


class Chains(NamedTuple):
    """What chains say about themselves, in function space."""

    z: float  # the largest |z| of means and variances of function values against the truth
    bound: float  # what it stays below with probability 1 − FALSE_ALARMS
    rhat: float
    effective: float


def judge_chains(likelihood: Any, draws: Draws, truth: Truth) -> Chains | None:
    """z = (estimate − truth) / √(Monte-Carlo error² + error of the reference²) for the means of g and of (g − m*)².

    Function values that never move (probabilities at 0 or 1 to the last digit) are left out. None for single draws.
    """
    members, each = draws.values.shape[:2]
    if each < 8 or draws.log_weights is not None:
        return None
    values = function_values(likelihood, flatten(draws))[0]
    chains = values.reshape(members, each, *values.shape[1:])
    first, second = chain_stats(chains), chain_stats((chains - truth.mean) ** 2)
    own = truth.std / np.sqrt(truth.effective)
    own_square = np.sqrt(2 / truth.effective) * truth.std**2
    shift = chains.mean((0, 1)) - truth.mean
    excess = ((chains - truth.mean) ** 2).mean((0, 1)) - truth.std**2
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.stack([shift / np.hypot(first.mcse_mean, own), excess / np.hypot(second.mcse_mean, own_square)])
    z = z[np.isfinite(z)]
    bound = float(stats.norm.isf(FALSE_ALARMS / 2 / max(1, len(z))))
    return Chains(float(np.abs(z).max()), bound, float(np.nanmax(first.rhat)), float(np.nanmin(first.ess_bulk)))


class Claim(NamedTuple):
    """A claim: in words, where it is made, and the test that a row must pass there."""

    words: str
    made: Callable[[Problem], bool]
    met: Callable[[Problem, dict[str, Any]], bool]


def _chain_met(problem: Problem, row: dict[str, Any]) -> bool:
    if row["z"] is None:
        return False
    return row["z"] < row["z_bound"] or (not problem.unimodal and row["rhat"] > FLAGGED)


def _spread_met(problem: Problem, row: dict[str, Any]) -> bool:
    return row["mean_error"] < MEAN and row["std_ratio"] > 0 and abs(np.log(row["std_ratio"])) < SPREAD


def _point_met(problem: Problem, row: dict[str, Any]) -> bool:
    return row["mean_error"] < MEAN and row["std_ratio"] == 0.0


CLAIMS = {
    "posterior": Claim("exact in the limit of many draws", lambda problem: True, _chain_met),
    "gaussian": Claim("exact where the posterior is Gaussian", lambda problem: problem.gaussian, _spread_met),
    "mean_field": Claim("exact where the posterior is a product", lambda problem: problem.factorised, _spread_met),
    "mode": Claim("the mode, which is the mean of a Gaussian posterior", lambda p: p.gaussian, _point_met),
    "least_squares": Claim("the best fit, which no posterior is", lambda problem: False, lambda problem, row: False),
}


def judge(exact_on: str, problem: Problem, row: dict[str, Any]) -> bool | None:
    """True or False where the method claims to be exact on this problem, None where it does not."""
    claim = CLAIMS[exact_on]
    return bool(claim.met(problem, row)) if claim.made(problem) else None
