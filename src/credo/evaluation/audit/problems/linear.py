"""Bayesian linear regression with known noise: the posterior is Gaussian and in closed form."""

from functools import partial

import numpy as np

from credo.core.model import Model
from credo.evaluation.audit.conjugate import Conjugate
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.truth import Truth, normal_truth
from credo.likelihoods.gaussian import gaussian
from credo.networks.mlp import mlp
from credo.priors.normal import normal


def linear() -> Problem:
    """Correlated inputs: the posterior is Gaussian but not a product, so mean field is too narrow along x."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(64, 1)) + 0.3 * rng.normal(size=(64, 3))
    return _problem(
        "linear", "Correlated linear regression: the exact posterior is Gaussian, in closed form.", inputs, rng
    )


def linear_orthogonal() -> Problem:
    """Orthogonal columns: X'X is diagonal, the posterior is a product and the best mean field is exact."""
    rng = np.random.default_rng(2)
    columns = np.linalg.qr(np.column_stack([np.ones(64), rng.normal(size=(64, 3))]))[0]
    inputs = 8 * columns[:, 1:]  # centred, of unit variance, orthogonal
    return _problem(
        "linear_orthogonal", "Orthogonal linear regression: the posterior is a product, so mean field is exact.",
        inputs, rng, factorised=True,
    )  # fmt: skip


def _problem(name: str, shows: str, inputs: np.ndarray, rng: np.random.Generator, factorised: bool = False) -> Problem:
    noise, scale = 0.5, 1.0
    targets = 0.3 + inputs @ rng.normal(size=3) + noise * rng.normal(size=len(inputs))
    inputs, targets = inputs.astype(np.float32), targets.astype(np.float32)
    places = np.concatenate([inputs[:12], 2 * rng.normal(size=(12, 3))]).astype(np.float32)
    exact = Conjugate(inputs, targets, noise, scale)
    model = Model(mlp([]), normal(scale), gaussian(noise=noise))
    find = partial(_truth, exact, places)
    return Problem(name, shows, model, inputs, targets, places, find, gaussian=True, factorised=factorised)


def _truth(exact: Conjugate, places: np.ndarray) -> Truth:
    mean, std = exact.predict(places)
    return normal_truth(mean, std, exact.noise, "Closed form: the conjugate normal posterior.")
