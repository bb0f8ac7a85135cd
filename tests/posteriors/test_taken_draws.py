"""Fewer draws than are stored: evenly spaced, and by weight where they are weighted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.posterior import Draws
from credo.posteriors import Samples

KEY = jax.random.key(0)
RNG = np.random.default_rng(1)


def weighted(chains=1, draws=4000):
    """Draws of N(0, 3²) with the weights that make them draws of N(1, ½²)."""
    theta = 3 * RNG.normal(size=(chains, draws))
    log_weights = -0.5 * ((theta - 1) / 0.5) ** 2 + 0.5 * (theta / 3) ** 2
    log_weights -= np.logaddexp.reduce(log_weights, axis=None)
    return Samples({"network": theta.astype(np.float32)}, {}, log_weights.astype(np.float32))


def taken(posterior, num):
    """Values and weights of the draws that are taken."""
    values = np.asarray(posterior.params["network"], np.float64)[:, np.asarray(posterior.chosen(num))]
    return values, np.exp(np.asarray(posterior.chosen_weights(num), np.float64))


def moments(values, weights):
    mean = (weights * values).sum()
    return mean, np.sqrt((weights * (values - mean) ** 2).sum())


@pytest.mark.parametrize(("chains", "num"), [(1, 200), (1, 3999), (4, 400)])
def test_fewer_weighted_draws_have_the_moments_of_all(chains, num):
    """The truth is N(1, ½²). What taking adds is a twentieth of a standard deviation at most; 4,000 draws of such
    weights are worth about 800, so that five errors of all of them are 0.09 (mean) and 0.06 (spread)."""
    posterior = weighted(chains)
    values, weights = taken(posterior, num)
    assert weights.shape == (chains, num // chains)
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    everything = moments(*taken(posterior, None))
    found = moments(values, weights)
    np.testing.assert_allclose(found, everything, atol=0.05)
    np.testing.assert_allclose(found, (1.0, 0.5), atol=0.14)
    if chains == 1:
        np.testing.assert_allclose(weights, 1 / num, rtol=1e-5)


def test_draws_without_weight_are_never_taken():
    """Four of 4,000 draws have all the weight, at places where even spacing does not look."""
    theta, log_weights = np.zeros((1, 4000), np.float32), np.full((1, 4000), -np.inf, np.float32)
    places, shares = np.array([3, 711, 712, 2801]), np.array([0.1, 0.2, 0.3, 0.4])
    log_weights[0, places] = np.log(shares)
    theta[0, places] = [1.0, 2.0, 3.0, 4.0]
    values, weights = taken(Samples({"network": theta}, {}, log_weights), 100)
    np.testing.assert_allclose([(values == v).sum() for v in (1, 2, 3, 4)], 100 * shares, atol=1)
    assert (weights * values).sum() == pytest.approx(3.0, abs=0.03)


def test_chains_of_unequal_weight_keep_it():
    """Weights that differ between chains alone, as stacking gives: places are evenly spaced and the weights stay."""
    log_weights = np.log(np.repeat([[0.9], [0.1]], 500, 1) / 500).astype(np.float32)
    values = np.tile(np.arange(500, dtype=np.float32), (2, 1))
    posterior = Samples({"network": values}, {}, log_weights)
    steps = np.diff(posterior.chosen(100))
    np.testing.assert_array_equal(steps, 10)
    np.testing.assert_allclose(np.exp(posterior.chosen_weights(100)).sum(1), [0.9, 0.1], rtol=1e-4)


def test_a_program_takes_the_same_places():
    for posterior in (weighted(), weighted(2), Samples({"network": np.zeros((1, 4000))}, {}, np.zeros((1, 4000)))):
        inside = jax.jit(lambda p: jnp.asarray(p.chosen(300)))(posterior)
        np.testing.assert_array_equal(inside, posterior.chosen(300))


def test_all_draws_keep_their_weights_and_plain_ones_their_places():
    posterior = weighted()
    np.testing.assert_array_equal(posterior.chosen(None), np.arange(4000))
    np.testing.assert_allclose(posterior.chosen_weights(9000), posterior.weights, atol=1e-4)
    plain = Samples(posterior.params, {})
    np.testing.assert_array_equal(plain.chosen(4), [999, 1999, 2999, 3999])
    assert plain.chosen_weights(4) is None


def test_predictions_use_them():
    network = credo.from_functions(
        init=lambda key, x: {"level": jnp.zeros(())}, apply=lambda params, x: params["level"] + 0 * x[:, :1]
    )
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    given = weighted()
    params = {"network": {"level": given.params["network"]}, "likelihood": {}, "prior": {}}
    draws: Draws = Samples(params, {}, given.weights).outputs(KEY, model, np.zeros((1, 1), np.float32), 200)
    assert draws.values.shape == (1, 200, 1, 1)
    np.testing.assert_allclose(np.mean(draws.values), 1.0, atol=0.14)
