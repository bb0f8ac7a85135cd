"""A predictive distribution that was corrected after the fact, and says so."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.errors import Refusal
from credo.likelihoods import categorical

ROWS = 2**16  # rows of class probabilities in one chunk


class Recalibrated(Predictive):
    """A `Predictive` after recalibration: every score and figure takes it. `note` says what was done to it."""

    def __init__(self, corrected: Predictive, note: str):
        super().__init__(
            corrected.likelihood, corrected._chunks, len(corrected), corrected._flat, corrected._shift, corrected._scale
        )
        self.note = note

    def _facts(self) -> dict[str, str]:
        return super()._facts() | {"recalibration": self.note}

    def rescaled(self, shift: Any, scale: Any) -> "Recalibrated":
        """As `Predictive.rescaled`; it stays marked."""
        return Recalibrated(super().rescaled(shift, scale), self.note)

    def needs_parts(self, what: str) -> None:
        """Refuse what looks at the parts of the mixture, for classes."""
        if self.kind == "classes":
            raise Refusal(
                f"{what} is not defined after temperature scaling: it changes the probabilities of the mixture, "
                "not of its parts. Ask the predictive that was recalibrated."
            )

    @property
    def aleatoric(self) -> np.ndarray:
        """As `Predictive.aleatoric`, scaled; refused for classes."""
        self.needs_parts("aleatoric")
        return super().aleatoric

    @property
    def epistemic(self) -> np.ndarray:
        """As `Predictive.epistemic`, scaled; refused for classes."""
        self.needs_parts("epistemic")
        return super().epistemic

    @property
    def probs_std(self) -> np.ndarray:
        """Refused: the parts of the mixture have no recalibrated probabilities."""
        self.needs_parts("probs_std")
        return super().probs_std

    def conditional_entropy(self) -> np.ndarray:
        """As `Predictive.conditional_entropy`, scaled; refused for classes."""
        self.needs_parts("conditional_entropy")
        return super().conditional_entropy()

    def mutual_information(self) -> np.ndarray:
        """As `Predictive.mutual_information`; refused for classes."""
        self.needs_parts("mutual_information")
        return super().mutual_information()


def from_logits(logits: np.ndarray, note: str) -> Recalibrated:
    """The predictive of class probabilities softmax(logits) [n, C]."""
    rows, classes = logits.shape

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for start in range(0, rows, ROWS):
            where = slice(start, min(start + ROWS, rows))
            yield where, Flat(jnp.asarray(logits[where], jnp.float32)[None], {}, jnp.zeros(1))

    return Recalibrated(Predictive(categorical(classes), chunks, rows, flat=True), note)


def stretch(predictive: Predictive, factor: float, note: str) -> Recalibrated:
    """The predictive of m + s (y − m) with m = E[y] of each row: the same shape, s times as wide."""
    centre = predictive.mean.reshape(len(predictive), -1)
    return Recalibrated(predictive.rescaled((1 - factor) * centre, factor), note)
