"""C3: ensembles of any method are equal mixtures; adversarial and bootstrapped members reach their own optimum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import credo
from credo.errors import InputError, Refusal
from credo.methods import SWAG, BayesByBackprop, DeepEnsemble, MCDropout, replicate
from credo.methods.ensembles.deep_ensemble import bootstrap_weights
from oracles import coefficients, linear

KEY = jax.random.key(0)
PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)
X = np.linspace(-2, 2, 64).astype(np.float32)[:, None]
Y = np.sin(2 * X[:, 0])


@pytest.mark.full
# ------------------------------------------------------------------ mixtures of any posterior
@pytest.mark.parametrize(
    "method", [MCDropout(), BayesByBackprop(), SWAG(averaging_steps=40, rank=3)], ids=lambda m: type(m).__name__
)
def test_replicates_are_an_equal_mixture(method):
    """Draws of each of 3 members are as many, and the predictive is their mixture: its mean is that of the members'
    means, its variance the mean of variances plus the variance of means."""
    model = credo.Model(credo.networks.mlp([6]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (X, Y), replicate(method, 3), steps=60, batch_size=16)
    assert fit.posterior.members == 3
    draws = fit.posterior.outputs(jax.random.key(1), fit.model, X[:7], 300)
    values = np.asarray(draws.values, np.float64)[..., 0]
    assert values.shape == (3, 100, 7)
    assert draws.log_weights is None
    members = values.mean(1)
    assert (np.abs(members[0] - members[1]) > 1e-3).any()
    predictive = credo.predict(jax.random.key(1), fit, X[:7], num_samples=300)
    np.testing.assert_allclose(predictive.mean, members.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(predictive.epistemic, values.var(1).mean(0) + members.var(0), rtol=1e-3)


# ------------------------------------------------------------------ bootstrap
def test_weights_are_poisson_and_the_members_own():
    """Chi-square of 20,000 weights at 1e-4; correlation of two members below 4.9 standard errors (1e-6)."""
    rows = jnp.arange(20_000)
    seeds = jax.random.bits(KEY, (2, 2))
    one, two = (np.asarray(jax.jit(bootstrap_weights)(s, rows)) for s in seeds)
    counts = np.bincount(np.minimum(one, 5).astype(int), minlength=6)
    expected = 20_000 * np.append(scipy.stats.poisson.pmf(range(5), 1), scipy.stats.poisson.sf(4, 1))
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4
    assert abs(np.corrcoef(one, two)[0, 1]) < 4.9 / 20_000**0.5
    np.testing.assert_array_equal(bootstrap_weights(seeds[0], rows[::-1]), one[::-1])


@pytest.mark.parametrize("share", [1, 4])
def test_bootstrapped_members_are_the_modes_of_their_own_rows(share):
    """(X'WX/σ² + I/s²)⁻¹ X'Wy/σ² for each member's own W and any batch size; N stays N."""
    method = DeepEnsemble(size=3, bootstrap=True)
    fit = credo.fit(KEY, PROBLEM.model(), DATA, method, steps=12_000, batch_size=256 // share)
    found = coefficients(fit.posterior.params["network"])[:, 0]
    for member in range(3):
        seed = fit.loop.carry.state.seed[member]
        weight = np.asarray(jax.jit(bootstrap_weights)(seed, jnp.arange(len(PROBLEM.targets))), np.float64)
        design = PROBLEM.design
        precision = design.T @ (weight[:, None] * design) / PROBLEM.noise**2 + np.eye(5)
        truth = np.linalg.solve(precision, design.T @ (weight * PROBLEM.targets) / PROBLEM.noise**2)
        assert np.abs(found[member] - PROBLEM.mean).max() > 0.01
        np.testing.assert_allclose(found[member], truth, atol=1e-3 if share == 1 else 0.2 / np.sqrt(precision.max()))


# ------------------------------------------------------------------ adversarial training
def test_adversarial_members_maximise_the_smoothed_loss():
    """On a linear model the worst step is known, |y − f(x')| = |y − f(x)| + ε Σ_j r_j |w_j|: so is the optimum, found
    here by SciPy."""
    share, span = 0.05, np.ptp(PROBLEM.inputs, axis=0).astype(np.float64)

    def loss(theta):
        residual = np.abs(PROBLEM.targets - PROBLEM.design @ theta)
        moved = residual + share * span @ np.abs(theta[1:])
        return 0.25 * (residual**2 + moved**2).sum() / PROBLEM.noise**2 + 0.5 * theta @ theta

    best = scipy.optimize.minimize(
        loss, PROBLEM.mean, method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-6, "fatol": 1e-8}
    )
    fit = credo.fit(KEY, PROBLEM.model(), DATA, DeepEnsemble(size=2, adversarial=share), steps=8000)
    points = coefficients(fit.posterior.params["network"])[:, 0]
    assert np.abs(best.x - PROBLEM.mean).max() > 0.05
    np.testing.assert_allclose(points, np.broadcast_to(best.x, points.shape), atol=3e-3)
    constants = 256 * np.log(PROBLEM.noise) + 0.5 * (256 + 5) * np.log(2 * np.pi)
    assert float(fit.trace["loss"][0, -1]) == pytest.approx((loss(best.x) + constants) / 256, rel=1e-3)


@pytest.mark.full
def test_options_are_off_by_default_and_shown():
    fit = credo.fit(KEY, PROBLEM.model(), DATA, DeepEnsemble(size=2), steps=5)
    assert fit.config["settings"]["adversarial"] is None
    assert fit.config["settings"]["bootstrap"] is False
    both = DeepEnsemble(size=2, adversarial=0.01, bootstrap=True)
    fit = credo.fit(KEY, PROBLEM.model(), DATA, both, steps=5, batch_size=32)
    assert (fit.config["settings"]["adversarial"], fit.config["settings"]["bootstrap"]) == (0.01, True)


def test_refusals_are_sentences():
    with pytest.raises(InputError, match="positive share"):
        credo.fit(KEY, PROBLEM.model(), DATA, DeepEnsemble(adversarial=0.0), steps=2)
    tokens = credo.from_functions(
        lambda key, x: {"w": jax.random.normal(key, (7, 1))}, lambda params, x: params["w"][x[:, 0]]
    )
    model = credo.Model(tokens, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    with pytest.raises(Refusal, match="real-valued inputs"):
        credo.fit(KEY, model, (np.arange(64)[:, None] % 7, Y), DeepEnsemble(adversarial=0.01), steps=2)
