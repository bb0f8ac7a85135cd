"""Normals in bulk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo.core.noise import normal


def test_they_are_standard_normal():
    """Kolmogorov–Smirnov on a million numbers, with the key fixed (false alarms: 1e-4), and no extreme is missing."""
    values = np.asarray(jax.jit(lambda k: normal(k, (1000, 1000)))(jax.random.key(0)), np.float64)
    assert stats.kstest(values.ravel(), "norm").pvalue > 1e-4
    assert np.isfinite(values).all()
    assert 4.2 < np.abs(values).max() < 5.5
    # Neither rows nor the two words of a block are correlated; a correlation of a million pairs has error 1e-3.
    assert abs(np.corrcoef(values[:500].ravel(), values[500:].ravel())[0, 1]) < 0.006
    assert abs(np.corrcoef(values.ravel()[:-1], values.ravel()[1:])[0, 1]) < 0.004


@pytest.mark.full
def test_fresh_keys_are_standard_normal():
    """Twenty keys that nobody chose; one Bonferroni bound for a false-alarm rate of 1e-3."""
    for seed in np.random.SeedSequence().generate_state(20):
        values = np.asarray(normal(jax.random.key(int(seed)), (100_001,)), np.float64)
        assert stats.kstest(values, "norm").pvalue > 1e-3 / 20, seed


def test_keys_shapes_and_types():
    key = jax.random.key(3)
    np.testing.assert_array_equal(normal(key, (5,)), normal(key, (5,)))
    assert normal(key, ()).shape == ()
    assert normal(key, (0, 3)).shape == (0, 3)
    assert not np.array_equal(normal(key, (6,)), normal(jax.random.key(4), (6,)))
    several = jax.vmap(lambda k: normal(k, (4,)))(jax.random.split(key, 3))
    assert len(np.unique(several)) == 12
    assert normal(key, (3,), jnp.bfloat16).dtype == jnp.bfloat16
    other = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(normal(other, (3,)), jax.random.normal(other, (3,)))
