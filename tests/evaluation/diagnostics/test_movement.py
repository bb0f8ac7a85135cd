"""How far predictions would move: the formula, and which alarms of a stack's parts it silences."""

import warnings

import jax
import numpy as np
import pytest

import credo
from credo.core.predict import member_outputs
from credo.evaluation.diagnostics.alarms import Alarm
from credo.evaluation.diagnostics.movement import movement
from credo.evaluation.diagnostics.of_parts import MOVES, heard_alarms
from credo.training.stacked import Share

X = np.linspace(-1, 1, 16, dtype=np.float32)[:, None]


@pytest.fixture(scope="module")
def fit():
    """A linear network under HMC, with few draws."""
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return credo.fit(
            jax.random.key(0), model, (X, X[:, 0]), credo.methods.HMC(chains=4, warmup=20), steps=20, progress=False
        )


def test_movement_is_its_formula(fit):
    draws = member_outputs(jax.random.key(0), fit.posterior, fit.model, X, None)
    f = np.asarray(draws.values, np.float64)[..., 0]
    drift = f[:, 10:].mean((0, 1)) - f[:, :10].mean((0, 1))
    between = f.mean(1).var(0, ddof=1) / 4
    wanted = np.sqrt((drift**2 + between).sum() / (0.25 + f.var((0, 1))).sum())
    assert movement(fit, X) == pytest.approx(wanted, rel=1e-4)


def test_alarms_of_convergence_ring_where_predictions_would_move(fit):
    moves, others = movement(fit, X), Alarm("divergences", "Some diverged", "lower the step")
    alarms = [Alarm("unconverged", "They drift", "run longer"), others]
    assert moves > 0
    light, heavy = (Share("hmc", factor * MOVES / moves, fit) for factor in (0.9, 1.1))
    assert heard_alarms(light, alarms) == [others]
    assert heard_alarms(heavy, alarms) == alarms
    assert heard_alarms(light, [others]) == [others]
