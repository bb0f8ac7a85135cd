"""The conjugate Bayesian linear model, exactly and in double precision."""

from typing import NamedTuple

import numpy as np
from scipy import stats


class Conjugate(NamedTuple):
    """y = b + w'x + ε with (b, w) ~ N(0, scale² I) and ε ~ N(0, noise²).

    Λ = X'X/σ² + I/s², m = Λ⁻¹X'y/σ² (Bishop, 2006, section 3.3).
    """

    inputs: np.ndarray
    targets: np.ndarray
    noise: float
    scale: float

    @property
    def design(self) -> np.ndarray:
        """X with a column of ones in front."""
        return design(self.inputs)

    @property
    def precision(self) -> np.ndarray:
        """Λ = X'X/σ² + I/s²."""
        columns = self.design
        return columns.T @ columns / self.noise**2 + np.eye(columns.shape[1]) / self.scale**2

    @property
    def covariance(self) -> np.ndarray:
        """Λ⁻¹."""
        return np.linalg.inv(self.precision)

    @property
    def mean(self) -> np.ndarray:
        """Λ⁻¹X'y/σ²."""
        return np.linalg.solve(self.precision, self.design.T @ np.asarray(self.targets, np.float64)) / self.noise**2

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of f(x) [n]."""
        rows = design(inputs)
        return rows @ self.mean, np.sqrt(np.einsum("ni,ij,nj->n", rows, self.covariance, rows))

    def log_evidence(self) -> float:
        """log p(y) = log N(y; 0, σ²I + s²XX')."""
        columns = self.design
        covariance = self.noise**2 * np.eye(len(columns)) + self.scale**2 * columns @ columns.T
        return float(stats.multivariate_normal(np.zeros(len(columns)), covariance).logpdf(self.targets))


def design(inputs: np.ndarray) -> np.ndarray:
    """Inputs with a column of ones in front, in double precision."""
    return np.column_stack([np.ones(len(inputs)), np.asarray(inputs, np.float64)])
