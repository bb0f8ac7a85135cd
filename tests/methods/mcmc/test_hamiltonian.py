"""Energies of Hamiltonian chains are those of the states that they keep (D3)."""

import jax
import numpy as np
import pytest

import credo
from oracles import linear

PROBLEM = linear(num_rows=40, dims=4)


def test_the_energy_is_that_of_the_state_that_is_kept():
    """H + log p(θ, D) = ½ r'M⁻¹r has mean and variance 5/2 for five weights, however often paths are refused: 4,000
    draws within 5 standard errors (rate 6e-7). With the energies of refused proposals the mean is above 10."""
    method = credo.methods.HMC(chains=4, warmup=300, num_steps=2, target_acceptance=0.5, mass="dense")
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets), method, steps=1000)
    assert 0.3 < fit.trace["acceptance"].mean() < 0.7
    kinetic = fit.trace["energy"].astype(np.float64) + fit.trace["log_density"]
    assert kinetic.min() > -1e-3
    assert kinetic.mean() == pytest.approx(2.5, abs=5 * np.sqrt(2.5 / 4000))
