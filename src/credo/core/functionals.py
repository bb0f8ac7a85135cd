"""Functionals of a predictive distribution on the scale of the targets, and as columns of a table.

Exported predictors take this module along: NumPy alone will do.
"""

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.errors import InputError, Refusal


class Functionals(abc.ABC):
    """Moments, probabilities and intervals from a summary on the likelihood's own scale; y = shift + scale · that."""

    _flat: bool  # targets are [n], not [n, 1]
    _shift: np.ndarray
    _scale: np.ndarray
    _summary: Any  # mean, aleatoric, epistemic; of classes also log_mean, probs_std, entropy

    _refusal: type[Exception] = Refusal

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """ "real", "counts" or "classes"."""

    @abc.abstractmethod
    def quantile(self, level: float) -> np.ndarray:
        """The value that y stays below with probability `level`, for each output."""

    def _shape(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self._flat else values

    def _real(self, values: np.ndarray) -> np.ndarray:
        """Canonical values [.., n, k] on the scale and in the shape of the user's targets."""
        if self.kind == "real":
            values = self._shift + self._scale * values.astype(np.float64)
        return self._shape(values)

    def _variance(self, values: np.ndarray) -> np.ndarray:
        return self._shape(values * self._scale**2 if self.kind == "real" else values)

    def _only(self, kinds: tuple[str, ...], what: str) -> None:
        if self.kind not in kinds:
            raise self._refusal(f"{what} is defined for {' and '.join(kinds)} targets; these are {self.kind}.")

    @property
    def mean(self) -> np.ndarray:
        """E[y]; class probabilities [n, C] for classes."""
        values = self._summary["mean"]
        return values if self.kind == "classes" else self._real(values)

    @property
    def aleatoric(self) -> np.ndarray:
        """Uncertainty from noise: E_θ[Var[y|θ]], or E_θ[H[p_θ]] for classes."""
        values = self._summary["aleatoric"]
        return values if self.kind == "classes" else self._variance(values)

    @property
    def epistemic(self) -> np.ndarray:
        """Uncertainty about θ: Var_θ[E[y|θ]], or the mutual information for classes."""
        values = self._summary["epistemic"]
        return values if self.kind == "classes" else self._variance(values)

    @property
    def variance(self) -> np.ndarray:
        """Var[y] = aleatoric + epistemic; p(1 − p) for classes."""
        if self.kind == "classes":
            return self.probs * _sum_of_others(self.probs)
        return self.aleatoric + self.epistemic

    @property
    def std(self) -> np.ndarray:
        """√Var[y]."""
        return np.sqrt(self.variance)

    @property
    def probs(self) -> np.ndarray:
        """Class probabilities [n, C]."""
        self._only(("classes",), "probs")
        return self._summary["mean"]

    @property
    def log_probs(self) -> np.ndarray:
        """log Σ_k w_k p_k(c) [n, C], finite where a probability is too small for its type."""
        self._only(("classes",), "log_probs")
        return self._summary["log_mean"]

    @property
    def probs_std(self) -> np.ndarray:
        """Std_θ[p_θ(c)] for every class [n, C]."""
        self._only(("classes",), "probs_std")
        return self._summary["probs_std"]

    def interval(self, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central interval with this probability."""
        return self.quantile(0.5 - coverage / 2), self.quantile(0.5 + coverage / 2)


def _sum_of_others(probs: np.ndarray) -> np.ndarray:
    """Σ_{d≠c} p_d of every class c [n, C]: 1 − p_c has no digits left where p_c is near 1."""
    zero = np.zeros_like(probs[..., :1])
    sum_before = np.concatenate([zero, np.cumsum(probs[..., :-1], -1)], -1)
    sum_after = np.concatenate([zero, np.cumsum(probs[..., :0:-1], -1)], -1)[..., ::-1]
    return sum_before + sum_after


def prediction_columns(
    predictive: Any, interval: float, targets: Sequence[str] | None = None, labels: Sequence[Any] | None = None
) -> dict[str, np.ndarray]:
    """The columns of `Predictive.to_pandas`, by name."""
    if predictive.kind == "classes":
        return _class_columns(predictive, labels)
    low, high = predictive.interval(interval)
    columns = {
        "mean": predictive.mean,
        "std": predictive.std,
        "aleatoric_std": np.sqrt(predictive.aleatoric),
        "epistemic_std": np.sqrt(predictive.epistemic),
        "lower": low,
        "upper": high,
    }
    if predictive.mean.ndim == 1:
        return columns
    outputs = predictive.mean.shape[1]
    names = [f"y{i}" for i in range(outputs)] if targets is None else list(targets)
    if len(names) != outputs:
        raise InputError(f"There are {outputs} targets to name, got {len(names)} names.")
    return {f"{target}_{name}": x[:, i] for i, target in enumerate(names) for name, x in columns.items()}


def _class_columns(predictive: Any, labels: Sequence[Any] | None) -> dict[str, np.ndarray]:
    probs = predictive.probs
    names = list(range(probs.shape[1])) if labels is None else list(labels)
    if len(names) != probs.shape[1]:
        raise InputError(f"There are {probs.shape[1]} classes to name, got {len(names)} labels.")
    has_text = any(isinstance(label, str) for label in names)
    columns = {"label": np.array(names, dtype=object if has_text else None)[probs.argmax(1)]}
    columns |= {f"p_{label}": probs[:, i] for i, label in enumerate(names)}
    return columns | {
        "entropy": predictive.entropy(),
        "aleatoric_entropy": predictive.aleatoric,
        "mutual_information": predictive.mutual_information(),
    }
