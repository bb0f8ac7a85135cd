"""The search for the maximum against SciPy's L-BFGS-B under the same bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from credo.methods.function_space.infinite.search import BOUND, Search, climb

START = np.array([-1.2, 1.0, -0.5, 2.0])
SCALES = np.array([1.0, 30.0, 0.1, 5.0])


def rosenbrock(x):
    return -(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def outside(x):
    """Its maximum lies beyond the bound of the second number, on which the others depend."""
    y = x - jnp.array([1.0, 20.0, -3.0, 0.5])
    return -0.5 * (jnp.asarray(SCALES) * y**2).sum() - 0.3 * (y.sum()) ** 2


def evidence(x):
    """log N(y; 0, K + σ²I) of nine rows: a length scale, a variance, a noise, and a number that does nothing."""
    rows = jnp.linspace(0, 1, 9)
    gram = jnp.exp(x[1] - 0.5 * ((rows[:, None] - rows) * jnp.exp(-x[0])) ** 2) + jnp.exp(x[2]) * jnp.eye(9)
    lower = jnp.linalg.cholesky(gram)
    solved = jax.scipy.linalg.solve_triangular(lower, jnp.sin(7 * rows) + 0.1 * jnp.cos(40 * rows), lower=True)
    return -0.5 * solved @ solved - jnp.log(jnp.diagonal(lower)).sum() - 0.5 * x[3] ** 2


@pytest.mark.parametrize("function", [rosenbrock, outside, evidence], ids=lambda f: f.__name__)
def test_it_ends_where_scipys_ends(function):
    with jax.enable_x64(True):
        step = jax.jit(lambda state: climb(lambda x: (function(x), None), state, None)[0])
        state = Search.start(jnp.asarray(START))
        while not state.done and state.count < 200:
            state = step(state)
        both = jax.jit(jax.value_and_grad(lambda x: -function(x)))
        bounds = [(-BOUND, BOUND)] * len(START)
        peer = scipy.optimize.minimize(both, START, jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-12)
    assert bool(state.done)
    assert float(state.value) == pytest.approx(-peer.fun, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(state.at, peer.x, atol=2e-3)
    assert int(state.count) < 2 * peer.nfev  # steps; some of them are halved
