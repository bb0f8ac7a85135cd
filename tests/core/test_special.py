"""Incomplete gamma and beta functions in float32 over ten decades of their parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from credo.core import special
from credo.core.numpy_special import NUMPY
from credo.core.special import stirling_error

gammaincc, betainc = jax.jit(special.gammaincc), jax.jit(special.betainc)
QUANTILES = np.linspace(0.001, 0.999, 41)


@pytest.mark.parametrize("a", [0.3, 1.0, 8.0, 29.9, 30.1, 200.0, 3e3, 1e5, 1e7])
def test_gammaincc(a):
    a = np.float32(a)
    x = np.float32(scipy.special.gammainccinv(float(a), QUANTILES))
    x = np.append(x, np.float32([0.0, 1e-20, 1e12]))
    got = gammaincc(jnp.full(x.shape, a), jnp.asarray(x))
    np.testing.assert_allclose(got, scipy.special.gammaincc(float(a), x.astype(float)), atol=1e-4)


def test_gammaincc_is_one_far_above_the_rate():
    """Where 1 + g(r) is all that is left of 1 and −1 it must keep its digits."""
    a = jnp.geomspace(1e5, 1e12, 2000)
    for rate in (1e-3, 1.0, 1e3):
        assert (gammaincc(a, jnp.full(a.shape, rate)) == 1).all()


@pytest.mark.parametrize("a", [0.1, 1.0, 9.9, 10.1, 150.0, 250.0, 1e4, 1e6])
@pytest.mark.parametrize("b", [1.0, 5.0, 10.5, 199.0, 201.0, 1e3, 1e6])
def test_betainc(a, b):
    a, b = float(np.float32(a)), float(np.float32(b))
    x = np.clip(scipy.special.betaincinv(a, b, QUANTILES), 1e-30, 1 - 1e-12)
    # exact x and y cannot both be given in float32: round the smaller one, and measure against that
    small = x < 0.5
    x, y = np.where(small, np.float32(x), x), np.where(small, 1 - x, np.float32(1 - x))
    truth = np.where(small, scipy.special.betainc(a, b, x), 1 - scipy.special.betainc(b, a, y))
    ones = jnp.ones(len(x), jnp.float32)
    got = betainc(a * ones, b * ones, jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(got, truth, atol=1e-4)


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (50.0, 60.0), (2.0, 1e5), (1e5, 2.0)])
def test_betainc_at_the_ends(a, b):
    ends = jnp.array([0.0, 1.0])
    np.testing.assert_allclose(betainc(jnp.full(2, a), jnp.full(2, b), ends, 1 - ends), ends, atol=1e-6)


def test_stirling_error():
    x = np.float32([1e-3, 0.5, 1.0, 5.0, 9.99, 10.0, 50.0, 1e6])
    wide = x.astype(float)
    truth = scipy.special.gammaln(wide + 1) - (wide + 0.5) * np.log(wide) + wide - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(stirling_error(jnp.asarray(x)), truth, atol=4e-6)


def test_arrays_of_numpy_in_double_precision():
    """Against SciPy: exact ones to 1e-12, the approximations of large parameters to 1e-4."""
    rng = np.random.default_rng(0)
    a, b, x = rng.uniform(0.2, 30, 500), rng.uniform(0.2, 6.9, 500), rng.uniform(0, 1, 500)
    rate, truth = rng.uniform(0, 60, 500), scipy.special
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(special.gammaincc(a, rate), truth.gammaincc(a, rate), rtol=0, atol=1e-12)
        np.testing.assert_allclose(special.betainc(a, b, x, 1 - x), truth.betainc(a, b, x), rtol=0, atol=1e-12)
        large = 10 ** rng.uniform(1.5, 4, 500)
        rate = large * rng.uniform(0.5, 1.5, 500)
        np.testing.assert_allclose(special.gammaincc(large, rate), truth.gammaincc(large, rate), rtol=0, atol=1e-4)
        np.testing.assert_allclose(special.betainc(large, a, x, 1 - x), truth.betainc(large, a, x), rtol=0, atol=1e-4)
    for name in ("erf", "ndtr", "gammaln", "expit", "log_softmax", "softmax"):
        np.testing.assert_allclose(getattr(NUMPY, name)(rate), getattr(truth, name)(rate), rtol=1e-12)
    np.testing.assert_allclose(NUMPY.logsumexp(x, axis=0), truth.logsumexp(x), rtol=1e-14)


def test_arrays_decide_what_computes():
    """NumPy where there is nothing else, JAX as soon as one array is JAX's, traced ones among them."""
    assert special.namespace(np.ones(2), 1.0, np.float32(2)) is NUMPY
    assert special.namespace(np.ones(2), jnp.ones(2)) is not NUMPY
    assert jax.jit(lambda x: special.log_ratio(np.ones(2), x, 1.0))(jnp.ones(2)).tolist() == [0, 0]
