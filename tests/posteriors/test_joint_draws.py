"""A draw of any posterior is one function, however its inputs are cut into calls."""

import jax
import numpy as np
import pytest

import credo
from credo.core import predict as module

X = np.linspace(-2, 2, 100, dtype=np.float32)[:, None]
MODEL = credo.Model(credo.networks.mlp([8]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
DROPPED = credo.Model(
    credo.networks.mlp([8], dropout=0.2), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1)
)  # fmt: skip
CASES = {
    "linearised": (MODEL, "laplace", "linearised"),
    "sampled": (MODEL, "laplace", "sampled"),
    "last layer": (MODEL, "last_layer", None),
    "mean field": (MODEL, "bayes_by_backprop", None),
    "function space": (MODEL, "function_space_vi", None),
    "masks": (DROPPED, "mc_dropout", None),
}


def values(fit, mode):
    """Every draw at every row [K, n]."""
    chunks = credo.predict(jax.random.key(1), fit, X, num_samples=20, mode=mode, memory=0).chunks()
    return [np.asarray(d.outputs)[:, : rows.stop - rows.start, 0] for rows, d in chunks]


SLOW = ("last layer", "function space")


@pytest.mark.parametrize("case", [pytest.param(c, marks=pytest.mark.full if c in SLOW else ()) for c in CASES])
def test_chunks_are_parts_of_the_same_functions(case, monkeypatch):
    model, method, mode = CASES[case]
    fit = credo.fit(jax.random.key(0), model, (X, np.sin(X[:, 0])), method, steps=30)
    (whole,) = values(fit, mode)
    assert np.median(whole.std(0)) > 0  # somewhere a ReLU network may be flat whatever the mask
    monkeypatch.setattr(module, "CHUNK_BYTES", 4 * len(whole) * 37)
    parts = values(fit, mode)
    assert len(parts) == 3
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-4, atol=1e-5)
