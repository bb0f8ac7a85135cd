"""The Bayesian last layer: exact given its features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import credo
from credo.errors import InputError, Refusal
from credo.evaluation.audit.conjugate import Conjugate
from credo.methods import LastLayer
from credo.methods.laplace.feature_regression import FeatureMoments, Rotated
from credo.methods.laplace.last_layer import most_evidence, smooth_evidence
from oracles import coefficients, linear

PROBLEM = linear(num_rows=60, dims=3)
DATA = (PROBLEM.inputs, PROBLEM.targets)
RNG = np.random.default_rng(4)
X = RNG.normal(size=(50, 2)).astype(np.float32)
TWO = np.stack([np.sin(2 * X[:, 0]), X[:, 1] + 0.3 * RNG.normal(size=50)], 1).astype(np.float32)
KEY = jax.random.key(0)


def fit(method=None, data=(X, TWO), likelihood=None, prior=None, widths=(6,), steps=200, **options):
    network = options.pop("network", None) or credo.networks.mlp(widths, "tanh")
    model = credo.Model(network, prior or credo.priors.normal(0.8), likelihood or credo.likelihoods.gaussian())
    return credo.fit(KEY, model, data, method or LastLayer(), steps=steps, **options)


def test_exact_on_the_conjugate_model():
    """Mean, covariance and evidence are those of the exact posterior to 1e-6, from any start."""
    found = credo.fit(KEY, PROBLEM.model(), DATA, LastLayer(), steps=1)
    posterior = found.posterior
    np.testing.assert_allclose(coefficients(posterior.mean["network"])[0], PROBLEM.mean, rtol=1e-6, atol=1e-6)
    spread = posterior.spread
    path = "output/kernel"
    basis = spread.basis_in[path][0] / spread.root[path][0][:, None]
    covariance = (basis * spread.std[path][0, 0] ** 2) @ basis.T
    order = [3, 0, 1, 2]  # the bias comes last in the layer
    np.testing.assert_allclose(covariance[np.ix_(order, order)], PROBLEM.covariance, rtol=1e-6, atol=1e-9)
    exact = Conjugate(*DATA, PROBLEM.noise, PROBLEM.scale).log_evidence()
    assert posterior.log_evidence[0] == pytest.approx(exact, rel=1e-6)


def features(found):
    """(tanh features, 1) [n, m] of the fitted network, in double precision."""
    hidden = jax.tree.map(lambda x: np.asarray(x[0], np.float64), found.posterior.mean["network"]["hidden_0"])
    return np.column_stack([np.tanh(X.astype(np.float64) @ hidden["kernel"].T + hidden["bias"]), np.ones(len(X))])


def truth(rows, targets, noise, precision):
    """Mean, covariance and log evidence of Bayesian linear regression on these features."""
    covariance = np.linalg.inv(rows.T @ rows / noise**2 + precision * np.eye(rows.shape[1]))
    mean = covariance @ rows.T @ targets / noise**2
    marginal = noise**2 * np.eye(len(rows)) + rows @ rows.T / precision
    return mean, covariance, stats.multivariate_normal(np.zeros(len(rows)), marginal).logpdf(targets)


@pytest.fixture(scope="module")
def both():
    """Two outputs with learned noise, the prior's scale by evidence."""
    return fit(LastLayer(prior_precision="evidence"))


def test_several_outputs_share_the_features(both):
    rows, posterior = features(both), both.posterior
    noise = np.exp(posterior.points["likelihood"]["log_scale"][0].astype(np.float64))
    precision = float(posterior.prior_scale[0, 0]) / 0.8**2
    layer = jax.tree.map(lambda x: np.asarray(x[0], np.float64), posterior.mean["network"]["output"])
    predictive = credo.predict(jax.random.key(1), both, X, num_samples=4000)
    total = 0.0
    for k in range(2):
        mean, covariance, evidence = truth(rows, TWO[:, k].astype(np.float64), noise[k], precision)
        np.testing.assert_allclose(np.append(layer["kernel"][k], layer["bias"][k]), mean, rtol=1e-3, atol=1e-4)
        variance = np.einsum("ni,ij,nj->n", rows, covariance, rows)
        # 4,000 draws: 15 % is beyond six standard errors.
        np.testing.assert_allclose(predictive.epistemic[:, k], variance, rtol=0.15)
        total += evidence
    assert posterior.log_evidence[0] == pytest.approx(total, abs=1e-2)


def test_the_evidence_is_maximised(both):
    """No other noise and prior scale has more, by SciPy's optimiser on the dense evidence."""
    rows = features(both)

    def negative(theta):
        return -sum(truth(rows, TWO[:, k].astype(float), np.exp(theta[k]), np.exp(theta[2]))[2] for k in (0, 1))

    best = optimize.minimize(negative, [-1.0, -1.0, 0.0], method="Nelder-Mead", options={"maxiter": 600})
    assert both.posterior.log_evidence[0] == pytest.approx(-best.fun, abs=0.02)
    noise = both.posterior.points["likelihood"]["log_scale"][0]
    np.testing.assert_allclose(noise, best.x[:2], atol=0.02)


@pytest.mark.full
def test_minibatches_weights_and_prior_means():
    """Sweeps of 16 rows are all rows; weight 2 is a doubled row; a prior around weights is centred there."""
    start = fit(credo.methods.MAP())
    method = LastLayer(train=False)
    whole, parts = (fit(method, start=start, batch_size=size).posterior for size in (None, 16))
    path = "output/kernel"
    np.testing.assert_allclose(parts.spread.std[path], whole.spread.std[path], rtol=1e-6)
    doubled = fit(method, data=(np.tile(X, (2, 1)), np.tile(TWO, (2, 1))), start=start).posterior
    weighted = fit(method, data=(X, TWO, np.full(50, 2.0)), start=start).posterior
    assert doubled.log_evidence[0] == pytest.approx(weighted.log_evidence[0], rel=1e-5)
    centre = jax.tree.map(lambda x: x[0], whole.mean["network"])
    tight = fit(method, prior=credo.priors.centred_on(centre, 1e-4), start=start).posterior
    np.testing.assert_allclose(tight.mean["network"]["output"]["kernel"][0], centre["output"]["kernel"], atol=1e-4)


@pytest.mark.full
def test_noise_known_learned_and_inferred():
    known = fit(likelihood=credo.likelihoods.gaussian(0.2), steps=100)
    assert known.posterior.points["likelihood"] == {}
    np.testing.assert_allclose(credo.predict(KEY, known, X[:5], num_samples=9).aleatoric, 0.04, rtol=1e-5)
    pulled = credo.likelihoods.gaussian("inferred", prior_loc=2.0, prior_scale=0.01)
    inferred = fit(likelihood=pulled, steps=100)
    np.testing.assert_allclose(inferred.posterior.points["likelihood"]["log_scale"], 2.0, atol=0.05)
    kept = fit(LastLayer(noise_scale="map"), steps=100)
    moved = fit(LastLayer(), steps=100)
    assert not np.allclose(*(f.posterior.points["likelihood"]["log_scale"] for f in (kept, moved)))


@pytest.mark.parametrize("shape", [2.0, 30.0])
def test_inferred_noise_is_under_its_own_prior(shape):
    """The largest evidence times p(log σ), by SciPy on the dense evidence; the second prior is as strong as data."""
    prior = credo.priors.inverse_gamma(shape, 0.5 * shape)
    found = fit(likelihood=credo.likelihoods.gaussian("inferred", scale_prior=prior), steps=100)
    rows = features(found)
    for k in range(2):

        def negative(u, k=k):
            log_prior = stats.invgamma(shape, scale=0.5 * shape).logpdf(np.exp(2 * u)) + 2 * u
            return -log_prior - truth(rows, TWO[:, k].astype(float), np.exp(u), 1 / 0.8**2)[2]

        best = optimize.minimize_scalar(negative, bounds=(-4, 3), method="bounded", options={"xatol": 1e-6}).x
        assert float(found.posterior.points["likelihood"]["log_scale"][0, k]) == pytest.approx(best, abs=2e-3)


def test_a_normal_prior_is_the_same_under_both_rules():
    """The defaults, log σ ~ N(−1, 2²), said as a prior of σ."""
    rows, targets = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 2))
    said = credo.priors.log_normal(float(np.exp(-1)), 2.0)
    likelihoods = [credo.likelihoods.gaussian("inferred", scale_prior=p) for p in (None, said)]
    with jax.enable_x64(True):
        moments = FeatureMoments.zeros(4, 2, jnp.float64).add(*map(jnp.asarray, (rows, targets, np.ones(30))))
        rotated = Rotated.of(moments, jnp.ones(4), jnp.zeros((2, 4)))
        one, other = (
            most_evidence(rotated, x, jnp.ones(()), jnp.ones(2), free_scale=True, free_noise=True) for x in likelihoods
        )
    np.testing.assert_allclose(np.log(one[1]), np.log(other[1]), atol=1e-6)
    assert float(one[0]) == pytest.approx(float(other[0]), rel=1e-6)


def test_features_by_evidence_have_more_of_it():
    by_map = fit(LastLayer(prior_precision="evidence", learning_rate=0.01), steps=400)
    by_evidence = fit(LastLayer(prior_precision="evidence", features="evidence", learning_rate=0.01), steps=400)
    assert by_evidence.posterior.log_evidence[0] > by_map.posterior.log_evidence[0]
    with pytest.raises(Refusal, match="closed form"):
        fit(LastLayer(features="evidence"), data=(X, X[:, 0] > 0), likelihood=credo.likelihoods.bernoulli())


def test_both_forms_of_the_evidence_agree():
    rows, targets = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 2))
    with jax.enable_x64(True):
        moments = FeatureMoments.zeros(4, 2, jnp.float64).add(*map(jnp.asarray, (rows, targets, np.ones(30))))
        root, centre = jnp.array([1.0, 2.0, 0.5, 1.0]), jnp.asarray(RNG.normal(size=(2, 4)))
        scale, noise = jnp.asarray(0.7), jnp.array([2.0, 5.0])
        one = jax.jit(lambda *x: Rotated.of(*x[:3]).log_evidence(*x[3:]))(moments, root, centre, scale, noise)
        other = jax.jit(smooth_evidence)(moments, root, centre, scale, noise)
    assert float(one) == pytest.approx(float(other), rel=1e-10)


def test_classes_get_the_laplace_approximation():
    labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    found = fit(data=(X, labels), likelihood=credo.likelihoods.categorical(3))
    assert "no closed form" in found.notes[0]
    assert found.posterior.structure == "last_layer"
    assert found.posterior.spread.scale.shape == (1, 21, 21)
    assert credo.predict(KEY, found, X[:4], mode="probit").probs.shape == (4, 3)


@pytest.mark.full
def test_several_members_and_a_following_method():
    several = credo.fit(
        KEY, credo.Model(credo.networks.mlp([6]), credo.priors.normal(1.0), credo.likelihoods.gaussian()), (X, TWO),
        credo.replicate(LastLayer(), 2), steps=30,
    )  # fmt: skip
    assert several.posterior.log_evidence.shape == (2,)
    point = several.point().params["network"]["output"]["kernel"]
    np.testing.assert_array_equal(point, several.posterior.mean["network"]["output"]["kernel"])


@pytest.mark.full
def test_a_held_bias_moves_the_targets():
    found = fit(credo.methods.MAP(), steps=50, widths=(), likelihood=credo.likelihoods.gaussian(0.3))
    params = jax.tree.map(lambda x: jnp.asarray(x[0]), found.point().params)
    params["network"]["output"]["bias"] = jnp.array([1.0, -2.0])
    held = found.model.frozen(params, "output/bias")
    posterior = credo.fit(KEY, held, (X, TWO), LastLayer(), steps=1).posterior
    shifted = TWO - np.array([1.0, -2.0])
    precision = X.T @ X / 0.3**2 + np.eye(2) / 0.8**2
    exact = np.linalg.solve(precision, X.T @ shifted / 0.3**2).T
    np.testing.assert_allclose(posterior.mean["network"]["output"]["kernel"][0], exact, rtol=1e-4, atol=1e-5)


def test_bad_options_get_a_sentence():
    with pytest.raises(InputError, match="prior_precision must be one of"):
        fit(LastLayer(prior_precision="validation"), steps=1)
    with pytest.raises(InputError, match="the last one is 'output/kernel'"):
        fit(LastLayer(layer="head/*"), steps=1)
    with pytest.raises(Refusal, match="must be the last one"):
        fit(LastLayer(layer="hidden_0/*"), steps=1)
    ends = credo.from_functions(
        init=lambda key, x: {"w": jax.random.normal(key, (2, 2))}, apply=lambda p, x: jnp.tanh(x @ p["w"])
    )
    with pytest.raises(Refusal, match="not those of a dense layer"):
        fit(steps=1, network=ends)
