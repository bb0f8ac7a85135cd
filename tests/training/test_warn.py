"""A fit that did not converge warns once, with the sentence of its status; one that did is silent."""

import dataclasses
import warnings

import jax
import numpy as np
import pytest

import credo
from credo.errors import ConvergenceWarning
from credo.estimators import BayesianRegressor
from credo.training import warn
from oracles import linear

KEY = jax.random.key(0)
PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)
SHORT = credo.methods.HMC(
    chains=2, warmup=0, num_steps=2, step_size=0.003
)  # without warm-up: chains are still at their starts


@pytest.fixture(autouse=True)
def warned():
    token = warn._SILENT.set(False)
    yield
    warn._SILENT.reset(token)


def caught(run):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = run()
    return result, [w for w in found if issubclass(w.category, ConvergenceWarning)]


def test_chains_that_disagree_warn_once_from_the_line_of_the_user():
    fit, (warning,) = caught(lambda: credo.fit(KEY, PROBLEM.model(), DATA, SHORT, steps=8))
    assert warning.category is credo.ConvergenceWarning
    assert warning.filename == __file__
    assert "R-hat" in str(warning.message)
    assert str(warning.message) in str(fit.status)
    assert fit.diagnostics.alarms == fit.alarms
    _, (again,) = caught(lambda: fit.extend(4))
    assert "R-hat" in str(again.message)


def test_fits_that_converged_or_have_no_chains_are_silent():
    method = credo.methods.HMC(chains=2, warmup=50, num_steps=5)
    fit, found = caught(lambda: credo.fit(KEY, PROBLEM.model(), DATA, method, steps=400))
    assert found == []
    assert fit.rings == ()
    fit, found = caught(lambda: credo.fit(KEY, PROBLEM.model(), DATA, "map", steps=1))
    assert (found, fit.rings) == ([], None)  # nothing was looked at


def test_divergences_warn_and_alarms_of_the_model_do_not():
    fit = credo.fit(KEY, PROBLEM.model(), DATA, credo.methods.HMC(chains=2, warmup=50, num_steps=5), steps=400)
    diverged = dataclasses.replace(fit, trace=fit.trace | {"divergent": np.eye(2, 400)})
    _, (warning,) = caught(lambda: warn.warn(diverged))
    assert "2 of 800 transitions diverged" in str(warning.message)
    diverged.rings = tuple(alarm for alarm in diverged.alarms if alarm.id not in warn.IDS)
    assert warn.not_converged(diverged) is None


def test_who_tells_alarms_is_not_told():
    with warn.unwarned():
        fit, found = caught(lambda: credo.fit(KEY, PROBLEM.model(), DATA, SHORT, steps=8))
    assert (found, fit.rings) == ([], None)


def test_estimators_warn_once_in_a_class_of_both_libraries():
    from sklearn.exceptions import ConvergenceWarning as SklearnWarning

    settings = {"chains": 2, "warmup": 0, "num_steps": 2, "step_size": 0.003}
    model = BayesianRegressor("hmc", [], steps=8, settings=settings, random_state=0)
    _, (warning,) = caught(lambda: model.fit(PROBLEM.inputs[:64], PROBLEM.targets[:64]))
    assert issubclass(warning.category, SklearnWarning)
    assert warning.filename == __file__
    assert str(warning.message) in str(model.fit_.status)
