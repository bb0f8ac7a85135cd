"""A small fit whose draws may go to disk, for the tests of draws on disk and their subprocesses."""

import jax
import numpy as np
import pytest

import credo
from credo.training import record

X = np.linspace(-2, 2, 40, dtype=np.float32)[:, None]
Y = np.sin(2 * X[:, 0])
KEY = jax.random.key(0)
HMC = credo.methods.HMC(step_size=0.02, num_steps=2, warmup=0, chains=3)
STEPS = 60


def fitted(limit, method=HMC, likelihood=None, targets=Y, **options):
    """A fit whose draws go to disk beyond `limit` bytes."""
    model = credo.Model(
        credo.networks.mlp([5], "tanh"), credo.priors.normal(1.0), likelihood or credo.likelihoods.gaussian(0.3)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "SPILL_BYTES", limit)
        options = {"steps": STEPS, "progress": False} | options
        return credo.fit(KEY, model, (X, targets), method, **options)


def same(one, other):
    equal = jax.tree.map(lambda a, b: np.array_equal(np.asarray(a), np.asarray(b)), one, other)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(jax.tree.leaves(equal))
