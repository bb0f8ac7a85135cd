"""Fits whose posterior is put in by hand: exact draws of the linear model, chains that misbehave on purpose."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import credo
from credo.posteriors import Samples
from oracles import Linear, linear

PROBLEM = linear()


def as_params(theta: np.ndarray) -> dict[str, Any]:
    """(b, w) [..., 1 + dims] as parameters of a linear network."""
    theta = np.asarray(theta, np.float32)
    layer = {"bias": theta[..., :1], "kernel": theta[..., None, 1:]}
    return {"network": {"output": layer}, "likelihood": {}, "prior": {}}


def samples(theta: np.ndarray) -> Samples:
    """Chains [chain, draw, 1 + dims] as a posterior."""
    return Samples(as_params(theta), {})


def exact_draws(problem: Linear, chains: int = 4, draws: int = 1000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(problem.mean, problem.covariance, size=(chains, draws))


def with_posterior(fit: Any, posterior: Any, **others: Any) -> Any:
    """The fit with another posterior and an empty trace."""
    return dataclasses.replace(fit, posterior=posterior, **{"trace": {}, "phases": {}, "known": None} | others)


def autoregressive(shape: tuple[int, ...], correlation: float, seed: int = 0) -> np.ndarray:
    """Stationary AR(1) chains [chain, draw, ...] of variance 1."""
    noise = np.random.default_rng(seed).normal(size=shape)
    chain = noise.copy()
    for t in range(1, shape[1]):
        chain[:, t] = correlation * chain[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return chain


@pytest.fixture(scope="session")
def base() -> Any:
    """A fit to the linear problem that took one step: a place for posteriors."""
    data = (PROBLEM.inputs, PROBLEM.targets)
    return credo.fit(jax.random.key(0), PROBLEM.model(), data, "map", steps=1)


@pytest.fixture(scope="session")
def chains() -> Any:
    """Two chains of twenty draws, every second one kept: too few to be believed."""
    method = credo.methods.HMC(chains=2, warmup=50, num_steps=5)
    data = (PROBLEM.inputs, PROBLEM.targets)
    return credo.fit(jax.random.key(0), PROBLEM.model(), data, method, steps=40, thin=2)
