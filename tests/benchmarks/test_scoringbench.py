"""The wrapper for ScoringBench gives the predictive distribution as probabilities on bins."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from benchmarks.scoringbench import CredoWrapper

QUICK = {"method": "map", "steps": 200}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.uniform(-1, 1, 150), "kind": rng.choice(["u", "v"], 150)})
    y = 100 + 10 * x["a"] + rng.normal(size=150)
    return CredoWrapper(num_bins=100, options=QUICK).fit(x, y), x, y


def test_bins_hold_the_predictive_distribution(fitted):
    model, x, y = fitted
    found = model.predict_distribution(x)
    assert found.bin_edges.shape == (150, 101)
    assert found.probas.shape == (150, 100)
    assert np.allclose(found.probas.sum(1), 1)
    assert (np.diff(found.bin_edges) >= 0).all()
    assert found.train_range == (y.min(), y.max())
    middles = 0.5 * (found.bin_edges[:, 1:] + found.bin_edges[:, :-1])
    assert np.allclose((middles * found.probas).sum(1), found.mean, atol=0.05)
    assert np.allclose(found.mean, model.predict(x))
    below = (found.probas * (found.bin_edges[:, 1:] <= np.asarray(y)[:, None])).sum(1)
    exact = model.run_.predictive(x).cdf(y)
    assert np.abs(below - exact).max() < 0.011 + 5e-4  # one bin


def test_it_is_an_estimator_that_takes_arrays_and_another_container(fitted):
    model, x, y = fitted
    with pytest.raises(NotFittedError):
        clone(model).predict(x)
    asked = []
    other = clone(model).set_params(container=lambda *parts, **more: asked.append((parts, more)))
    numbers = x[["a"]].to_numpy().copy()
    numbers[0, 0] = np.nan  # a missing cell is filled in
    other.fit(numbers, y).predict_distribution(numbers[1:4])
    (edges, probas, mean), more = asked[0]
    assert (len(edges), len(probas), len(mean)) == (3, 3, 3)
    assert set(more) == {"train_range"}
