"""The likelihood protocol: a density of targets given network outputs, with its moments and draws."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from credo.core.capabilities import InferredLikelihood, ask
from credo.core.typing import Entries, Outputs, PerRow, PyTree, Scalar, Targets


@runtime_checkable
class Likelihood(Protocol):
    """p(y | f, ν) with outputs f [n, out] and unconstrained parameters ν (noise, dispersion; a dict, maybe empty).

    `kind` is "real" (y is [n, k]), "classes" (y is [n], class indices) or "counts" (y is [n, k]). What else a
    likelihood may offer is in `credo.core.capabilities`.
    """

    @property
    def kind(self) -> str:
        """The kind of its targets."""
        ...

    @property
    def point(self) -> bool:
        """True where ν is learned as a point by methods that optimise (it has no prior)."""
        ...

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Targets checked and in canonical shape and dtype; raises `credo.errors.InputError` with a sentence."""
        ...

    def num_outputs(self, targets: Any) -> int:
        """How many outputs the network needs for canonical targets."""
        ...

    def init(self, targets: Targets, weight: PerRow) -> PyTree:
        """Start values of ν."""
        ...

    def log_prior(self, params: PyTree) -> Scalar:
        """log p(ν), Jacobian included; 0 where ν is known or a point."""
        ...

    def sample_prior(self, key: jax.Array, targets: Targets) -> PyTree:
        """One draw of ν from its prior; raises `credo.errors.Refusal` where ν is a point."""
        ...

    def inferring(self) -> "Likelihood":
        """The same likelihood with its learned point put under its default prior."""
        ...

    def log_prob(self, params: PyTree, outputs: Outputs, targets: Targets) -> PerRow:
        """log p(y_n | f_n, ν) [n], summed over the entries of y_n."""
        ...

    def mean(self, params: PyTree, outputs: Outputs) -> Entries:
        """E[y | f, ν] [n, k]; class probabilities [n, C] for classes."""
        ...

    def variance(self, params: PyTree, outputs: Outputs) -> Entries:
        """Var[y | f, ν] [n, k]; p(1 − p) for classes."""
        ...

    def cdf(self, params: PyTree, outputs: Outputs, targets: Targets) -> Entries:
        """P(Y ≤ y | f, ν) [n, k] (not for classes)."""
        ...

    def sample(self, key: jax.Array, params: PyTree, outputs: Outputs) -> Targets:
        """One draw of y for every row."""
        ...


def has_posterior(likelihood: Likelihood) -> bool:
    """Has ν a posterior of its own? False where it is known, empty or a point, and by default."""
    return bool(ask(likelihood, InferredLikelihood).inferred)
