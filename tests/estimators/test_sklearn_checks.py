"""scikit-learn's own list of what an estimator must do."""

from collections.abc import Iterator

import jax
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from credo.estimators import BayesianClassifier, BayesianRegressor

VI = "bayes_by_backprop"
SMALL = {"network": "mlp:8", "steps": 200, "num_samples": 10, "settings": {"learning_rate": 0.03}}


@pytest.fixture(scope="module", autouse=True)
def _quick_programs() -> Iterator[None]:
    # About 70 small programs run for milliseconds each: optimising them would take most of the time.
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@parametrize_with_checks([BayesianRegressor("map", **SMALL)])
def test_point(estimator, check):
    check(estimator)


@pytest.mark.full
@parametrize_with_checks(
    [BayesianClassifier("map", **SMALL), BayesianRegressor(VI, **SMALL), BayesianClassifier(VI, **SMALL)]
)
def test_others(estimator, check):
    check(estimator)
