"""Draws with an estimate of the evidence, from sequential Monte Carlo or importance sampling."""

from typing import Any

import numpy as np

from credo.core.tree import leaf, struct
from credo.posteriors.samples import Samples


@struct
class Particles(Samples):
    """Draws θ_{c,k}, as in `Samples`, with an estimate of the evidence and diagnostics of the weights.

    Attributes:
        log_evidence: log p(D) as each member estimates it [member]; at a temperature T, log ∫ p(D, θ)^{1/T} dθ.
        pareto_k: k̂ of the importance weights, over all members; None where there are none.
        effective: 1/Σw² of the smoothed and normalised weights, over all members; None where there are none.
    """

    log_evidence: Any = leaf(default=None)
    pareto_k: Any = leaf(default=None)
    effective: Any = leaf(default=None)

    @property
    def mean_log_evidence(self) -> float:
        """log of the mean over members: each estimates p(D), not its logarithm."""
        values = np.asarray(self.log_evidence, np.float64)
        return float(np.logaddexp.reduce(values, axis=None) - np.log(values.size))
