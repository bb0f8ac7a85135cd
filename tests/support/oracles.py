"""Problems whose posterior is known exactly."""

from typing import Any, NamedTuple

import numpy as np

import credo


class Linear(NamedTuple):
    """Bayesian linear regression y = b + w'x + ε with θ = (b, w) ~ N(0, s²I) and ε ~ N(0, σ²)."""

    inputs: np.ndarray
    targets: np.ndarray
    noise: float
    scale: float

    @property
    def design(self) -> np.ndarray:
        return np.column_stack([np.ones(len(self.inputs)), self.inputs]).astype(np.float64)

    @property
    def precision(self) -> np.ndarray:
        """Λ = X'X/σ² + I/s²."""
        return self.design.T @ self.design / self.noise**2 + np.eye(self.design.shape[1]) / self.scale**2

    @property
    def covariance(self) -> np.ndarray:
        return np.linalg.inv(self.precision)

    @property
    def mean(self) -> np.ndarray:
        """Λ⁻¹ X'y/σ², also the mode and the mean of the best mean-field Gaussian."""
        return self.covariance @ self.design.T @ self.targets / self.noise**2

    @property
    def mean_field_std(self) -> np.ndarray:
        """1/√Λ_ii: the mean-field Gaussian that minimises KL[q‖p]."""
        return 1 / np.sqrt(np.diag(self.precision))

    @property
    def least_squares(self) -> np.ndarray:
        return np.linalg.lstsq(self.design, self.targets, rcond=None)[0]

    def model(self) -> credo.Model:
        return credo.Model(
            network=credo.networks.mlp([]),
            prior=credo.priors.normal(self.scale),
            likelihood=credo.likelihoods.gaussian(noise=self.noise),
        )


def linear(num_rows: int = 256, dims: int = 4, correlation: float = 0.6, noise: float = 0.5, seed: int = 0) -> Linear:
    """A linear problem with correlated inputs, so that mean field and posterior differ."""
    rng = np.random.default_rng(seed)
    mix = np.linalg.cholesky(correlation * np.ones((dims, dims)) + (1 - correlation) * np.eye(dims))
    inputs = rng.normal(size=(num_rows, dims)) @ mix.T
    weights = rng.normal(size=dims)
    targets = 0.3 + inputs @ weights + noise * rng.normal(size=num_rows)
    return Linear(inputs.astype(np.float32), targets.astype(np.float32), noise, 1.0)


def coefficients(network: dict) -> np.ndarray:
    """(b, w) from the parameters of a linear network; leading axes are kept."""
    layer = network["output"]
    return np.concatenate([np.asarray(layer["bias"]), np.asarray(layer["kernel"])[..., 0, :]], axis=-1)


def first_of_each_claim(rows: Any) -> list[Any]:
    """Registry rows as parameters: `make test` has the first method of every claim, `make test-full` all of them."""
    import pytest

    seen: set[str] = set()
    found = []
    for row in rows:
        found.append(pytest.param(row, id=row.name, marks=[pytest.mark.full] if row.exact_on in seen else []))
        seen.add(row.exact_on)
    return found
