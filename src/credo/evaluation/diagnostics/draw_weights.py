"""Weights of stored draws: whose they are, and what they leave of the draws."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from credo.core.capabilities import StoredPosterior, ask
from credo.posteriors import Particles, SubsetPosterior

UNHEARD = 0.01  # of an equal share: chains that weigh less leave no trace in predictions


class Importance(NamedTuple):
    """What importance sampling found out about its weights: their k̂, 1/Σw², and how many draws there are."""

    k: float
    worth: float
    draws: int


def importance(posterior: Any) -> Importance | None:
    """As the posterior tells it, also where draws were chosen by weight and have none any more; None for all others."""
    sample = posterior.inner if isinstance(posterior, SubsetPosterior) else posterior
    if not isinstance(sample, Particles) or sample.pareto_k is None:
        return None
    return Importance(float(sample.pareto_k), float(sample.effective), int(sample.members * sample.available))


def one_measure(posterior: Any) -> bool:
    """Are the draws in no order, hence no chains?

    Those of importance sampling are, and particles that say so by weights that are there and equal. All other weights
    are those of chains: of steps that become shorter, or of chains that were stacked.
    """
    weights = ask(posterior, StoredPosterior).log_weights
    equal = weights is not None and not np.ptp(np.asarray(weights)) > 0
    return equal or importance(posterior) is not None


def heard_chains(posterior: Any) -> np.ndarray | None:
    """Which chains have weight enough to be judged; None where all have."""
    if ask(posterior, StoredPosterior).log_weights is None:
        return None
    each = logsumexp(np.asarray(posterior.log_weights, np.float64), axis=1)
    heard = np.exp(each - logsumexp(each)) >= UNHEARD / len(each)
    return None if heard.all() else np.flatnonzero(heard)


def kish(log_weights: Any) -> float:
    """1/(S Σw²): the share of S draws that unequal weights leave; 1 for None. Kish (1965), Survey Sampling.

    It multiplies the effective size of a chain, too: where weights change slowly, the variance of a weighted mean is
    τ Σw² for draws that are worth S/τ.
    """
    if log_weights is None:
        return 1.0
    flat = np.asarray(log_weights, np.float64).ravel()
    return float(np.exp(2 * logsumexp(flat) - logsumexp(2 * flat)) / flat.size)
