"""A problem whose posterior is known."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from credo.core.model import Model
from credo.evaluation.audit.truth import Truth


@dataclasses.dataclass(frozen=True)
class Problem:
    """Data, a model, inputs to predict at, and the true posterior there.

    Attributes:
        name: what tables call it.
        shows: one sentence on what it tells about a method.
        model: the model whose posterior is meant.
        inputs, targets: the data.
        places: inputs to predict at [n, d].
        find_truth: gives the truth; called once.
        unimodal: the posterior of functions has one mode, so a converged chain must match.
        gaussian: the posterior of the weights is Gaussian, so a Gaussian approximation can be exact.
        factorised: the posterior of the weights is a product, so mean field can be exact.
        stored: the truth comes from long chains that are stored with the package.
        quick: a chain gets there in about a second, so quick audits keep it.
        regions: names of parts of `places` that are judged on their own, with masks [n].
    """

    name: str
    shows: str
    model: Model
    inputs: np.ndarray
    targets: np.ndarray
    places: np.ndarray
    find_truth: Callable[[], Truth]
    unimodal: bool = True
    gaussian: bool = False
    factorised: bool = False
    stored: bool = False
    quick: bool = True
    regions: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    @cached_property
    def truth(self) -> Truth:
        """The true posterior at `places`."""
        return self.find_truth()

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """(inputs, targets)."""
        return self.inputs, self.targets

    @property
    def kind(self) -> str:
        """ "real" or "classes"."""
        return self.model.likelihood.kind
