"""Priors over functions: kernels, measurement points, and divergences between functions seen at points."""

from credo.methods.function_space.divergence import gaussian_kl, moments_of_draws
from credo.methods.function_space.kernels import Matern52, SquaredExponential, matern52, squared_exponential
from credo.methods.function_space.spectral import spectral_score

__all__ = [
    "Matern52",
    "SquaredExponential",
    "gaussian_kl",
    "matern52",
    "moments_of_draws",
    "spectral_score",
    "squared_exponential",
]
