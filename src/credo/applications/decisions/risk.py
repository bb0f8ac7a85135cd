"""How a lottery of utilities becomes one number: its mean, its worst part, or its certainty equivalent."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from credo.core.checks import finite
from credo.errors import InputError


@dataclasses.dataclass(frozen=True)
class Mean:
    """Expected utility: Σ_j p_j u_j."""

    def value(self, utilities: np.ndarray, probs: np.ndarray) -> np.ndarray:
        """The value of lotteries along the last axis."""
        return np.asarray((utilities * probs).sum(-1))

    def __str__(self) -> str:
        return "expected utility"


@dataclasses.dataclass(frozen=True)
class CVaR:
    """The mean of the worst share α of a lottery: max_c c − E[(c − u)⁺]/α (Rockafellar and Uryasev, 2000).

    An outcome at the border counts with the part of its probability that belongs to the share. α = 1 is the mean.
    """

    share: float

    def value(self, utilities: np.ndarray, probs: np.ndarray) -> np.ndarray:
        """The value of lotteries along the last axis."""
        order = np.argsort(utilities, -1, kind="stable")
        sorted_u, mass = (np.take_along_axis(x, order, -1) for x in np.broadcast_arrays(utilities, probs))
        before = np.cumsum(mass, -1) - mass
        used = np.clip(self.share - before, 0.0, mass)
        return np.asarray((sorted_u * used).sum(-1) / used.sum(-1))

    def __str__(self) -> str:
        return f"mean of the worst {100 * self.share:g} %"


@dataclasses.dataclass(frozen=True)
class Exponential:
    """The sure utility that is as good as the lottery for constant risk aversion λ: −(1/λ) log E[exp(−λu)].

    λ → 0 is the mean, λ → ∞ the worst outcome; for a normal u it is mean − λ variance/2 (Pratt, 1964).
    """

    aversion: float

    def value(self, utilities: np.ndarray, probs: np.ndarray) -> np.ndarray:
        """The value of lotteries along the last axis."""
        mean = (utilities * probs).sum(-1, keepdims=True)
        if self.aversion == 0:
            return np.asarray(mean[..., 0])
        gap = -self.aversion * (utilities - mean)
        top = np.where(probs > 0, gap, -np.inf).max(-1, keepdims=True)
        # Near 0 the logarithm of a mean of ones has no digits; expm1 and log1p keep them.
        near = np.log1p((probs * np.expm1(np.minimum(gap, 1.0))).sum(-1))
        far = np.log((probs * np.exp(np.minimum(gap - top, 0.0))).sum(-1)) + top[..., 0]
        return np.asarray(mean[..., 0] - np.where(top[..., 0] < 1.0, near, far) / self.aversion)

    def __str__(self) -> str:
        return f"certainty equivalent at risk aversion {self.aversion:g}"


Risk = Mean | CVaR | Exponential


def cvar(share: float) -> CVaR:
    """Conditional value at risk: the mean of the worst `share` of utilities; see `CVaR`.

    Args:
        share: between 0 and 1; 1 is the mean.

    Example:
        >>> import numpy as np
        >>> from credo.applications import cvar
        >>> float(cvar(0.5).value(np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 0.25)))
        0.5
    """
    if not 0 < finite(share, "The share of CVaR") <= 1:
        raise InputError(f"The share of CVaR lies above 0 and at most at 1, got {share:g}.")
    return CVaR(float(share))


def exponential(aversion: float) -> Exponential:
    """Constant risk aversion; see `Exponential`.

    Args:
        aversion: λ of at least 0, in 1/units of utility; 0 is the mean.

    Example:
        >>> import numpy as np
        >>> from credo.applications import exponential
        >>> sure = exponential(1.0).value(np.array([0.0, 2.0]), np.array([0.5, 0.5]))
        >>> round(float(sure), 4)
        0.5662
    """
    if finite(aversion, "Risk aversion") < 0:
        raise InputError(f"Risk aversion is a finite number of at least 0, got {aversion:g}.")
    return Exponential(float(aversion))


def risk_of(risk: Any) -> Risk:
    """A criterion from what a user gave: None or "mean", "cvar:0.1", "exponential:2", or the object itself.

    Example:
        >>> from credo.applications.decisions.risk import risk_of
        >>> risk_of("cvar:0.1")
        CVaR(share=0.1)
    """
    if risk is None or risk == "mean":
        return Mean()
    if isinstance(risk, Mean | CVaR | Exponential):
        return risk
    kind, _, number = str(risk).partition(":")
    makers: dict[str, Callable[[float], Risk]] = {"cvar": cvar, "exponential": exponential}
    words = f'risk is "mean", "cvar:0.1" or "exponential:2" (with your own number), got {risk!r}.'
    if kind.strip().lower() not in makers:
        raise InputError(words)
    try:
        value = float(number)
    except ValueError as error:
        raise InputError(words) from error
    return makers[kind.strip().lower()](value)
