"""Is a Gaussian approximation where it has to be, at a mode?"""

from typing import Any

import numpy as np

from credo.core.tree import by_paths
from credo.evaluation.diagnostics.alarms import Alarm
from credo.posteriors import GaussianWeights

LEAST = 1.0  # nats: a Bayes factor of e is not worth more than a mention (Kass and Raftery, 1995)
SHARE = 0.05  # of the number of weights, in nats


def off_mode(fit: Any) -> list[Alarm]:
    """An alarm where one Newton step would raise the log posterior by more than max(1, 0.05 P) nats.

    A draw of an exact Gaussian lies P/2 nats below its mode on average; where the decrement is a tenth of that, the
    centre is √0.1 = 0.3 standard deviations off in every direction, and the log evidence lacks as many nats.
    """
    decrements = [np.asarray(t["newton_decrement"])[:, -1] for t in fit.phases.values() if "newton_decrement" in t]
    if not decrements:
        return []
    # A decrement that is no number comes from a covariance that is none.
    decrement = float(np.max(np.nan_to_num(decrements[-1].astype(np.float64), nan=np.inf)))
    limit = max(LEAST, SHARE * _size(fit.posterior))
    if decrement <= limit:
        return []
    return [
        Alarm(
            "off_mode",
            f"The Gaussian is not at a mode: one Newton step would raise the log posterior by {decrement:.3g} nats "
            f"(more than {limit:.3g}), and covariance and log evidence are those of a mode",
            "run more steps, or raise learning_rate; with train=False start from a fit that has converged",
        )
    ]


def _size(posterior: Any) -> int:
    """How many weights have a spread, for each member; 0 for functions, which Newton's method brings to the mode."""
    if not isinstance(posterior, GaussianWeights):
        return 0
    every = by_paths(posterior.mean["network"])
    return sum(int(np.prod(x.shape[1:])) for path, x in every.items() if path in posterior.spread.paths)
