"""A2: priors with unknown scales, against SciPy, autodiff, draws and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import arviz_numbers
import credo
from credo import priors
from credo.core.batch import Batch
from credo.errors import InputError, Refusal
from credo.networks import mlp
from oracles import linear

KEY = jax.random.key(0)
NETWORK = mlp([5])
PARAMS = NETWORK.init(KEY, jnp.zeros((1, 3)), 2).params
INFO = NETWORK.info(PARAMS)

# name: prior of a scale, SciPy's distribution of s (or of s²), and what it is of
SCALES = {
    "half_normal": (priors.half_normal(0.7), scipy.stats.halfnorm(scale=0.7), lambda u: jnp.exp(u)),
    "half_cauchy": (priors.half_cauchy(0.3), scipy.stats.halfcauchy(scale=0.3), lambda u: jnp.exp(u)),
    "inverse_gamma": (priors.inverse_gamma(2.5, 0.4), scipy.stats.invgamma(2.5, scale=0.4), lambda u: jnp.exp(2 * u)),
    "log_normal": (priors.log_normal(0.5, 0.8), scipy.stats.lognorm(0.8, scale=0.5), lambda u: jnp.exp(u)),
}


@pytest.fixture(params=SCALES)
def case(request):
    return SCALES[request.param]


def test_densities_are_scipys_with_the_jacobian_of_autodiff(case):
    prior, truth, transform = case
    u = jnp.linspace(-3, 2, 11)
    jacobian = np.abs(jax.vmap(jax.grad(transform))(u))
    expected = truth.logpdf(np.asarray(transform(u), np.float64)) + np.log(jacobian)
    np.testing.assert_allclose(jax.jit(prior.log_prob)(u), expected, rtol=2e-5, atol=2e-5)


def test_densities_of_the_logarithm_integrate_to_one(case):
    prior, _, _ = case
    total, _ = scipy.integrate.quad(lambda u: float(np.exp(prior.log_prob(jnp.float32(u)))), -15, 15, limit=200)
    assert total == pytest.approx(1.0, abs=1e-3)


def test_draws_follow_the_density(case):
    """Kolmogorov's test of 4,000 draws; false alarms 1e-4 for each of 4 priors."""
    prior, truth, transform = case
    draws = np.asarray(transform(prior.sample(jax.random.key(7), (4000,))), np.float64)
    assert scipy.stats.kstest(draws, truth.cdf).pvalue > 1e-4
    assert np.isfinite(prior.start)


# ------------------------------------------------------------------ hierarchical
@pytest.mark.parametrize(
    ("per", "groups"),
    [
        ("global", {"all"}),
        ("layer", {"hidden_0", "output"}),
        ("array", {"hidden_0/kernel", "hidden_0/bias", "output/kernel", "output/bias"}),
    ],
)
def test_groups_share_a_scale(per, groups):
    prior = priors.hierarchical(priors.half_normal(2.0), per)
    params = prior.init(INFO)
    assert set(params["log_scale"]) == groups
    logs = {g: jnp.float32(0.3 * k - 0.5) for k, g in enumerate(sorted(groups))}
    mean, std = prior.bind(INFO, {"log_scale": logs}).gaussian()
    assert all((m == 0).all() for m in jax.tree.leaves(mean))
    group = {"global": "all", "layer": "output", "array": "output/kernel"}[per]
    np.testing.assert_allclose(std["output"]["kernel"], np.full((2, 5), np.exp(logs[group])), rtol=1e-6)
    expected = sum(scipy.stats.halfnorm(scale=2).logpdf(np.exp(float(u))) + float(u) for u in logs.values())
    np.testing.assert_allclose(prior.log_hyperprior({"log_scale": logs}), expected, rtol=1e-5)


def test_prior_draws_of_weights_are_the_scale_mixture():
    """Given IG(a, b) on s² the weights are Student-t with 2a degrees of freedom and scale √(b/a): Kolmogorov at 1e-4,
    one weight of each of 3,000 draws of the whole model."""
    prior = priors.hierarchical(priors.inverse_gamma(2.0, 0.5), per="array")
    model = credo.Model(NETWORK, prior, credo.likelihoods.gaussian(0.1))
    batch = Batch(jnp.ones((4, 3)), jnp.ones((4, 2)), jnp.ones(4), jnp.asarray(4.0))
    draws = jax.jit(jax.vmap(lambda k: model.sample_prior(k, batch).params))(jax.random.split(KEY, 3000))
    weights = np.asarray(draws["network"]["hidden_0"]["kernel"][:, 0, 0], np.float64)
    assert scipy.stats.kstest(weights, scipy.stats.t(4, scale=0.5).cdf).pvalue > 1e-4
    assert jax.tree.structure(draws["prior"]) == jax.tree.structure(prior.init(INFO))


def quadrature(problem, hyper, grid):
    """p(log s | y) on the grid, and E[θ | y, s], for y = Xθ + ε with θ ~ N(0, s²I)."""
    log_posterior, means = [], []
    for u in grid:
        design, targets = problem.design, problem.targets.astype(np.float64)
        covariance = problem.noise**2 * np.eye(len(targets)) + np.exp(2 * u) * design @ design.T
        log_posterior.append(scipy.stats.multivariate_normal.logpdf(targets, np.zeros(len(targets)), covariance))
        precision = design.T @ design / problem.noise**2 + np.exp(-2 * u) * np.eye(design.shape[1])
        means.append(np.linalg.solve(precision, design.T @ targets / problem.noise**2))
    log_posterior = np.array(log_posterior) + np.asarray(hyper.log_prob(jnp.asarray(grid)), np.float64)
    weight = np.exp(log_posterior - log_posterior.max())
    return weight / weight.sum(), np.array(means)


def z_scores(chains, truth):
    error = arviz_numbers.mcse(chains)
    return np.ravel((chains.mean((0, 1)) - truth) / error)


def fit_linear(problem, prior, method, steps):
    model = problem.model().with_prior(prior)
    return credo.fit(KEY, model, (problem.inputs, problem.targets), method, steps=steps)


PROBLEM = linear(num_rows=24, dims=6, noise=0.8)
NUTS = credo.methods.NUTS(chains=4, warmup=500, target_acceptance=0.95)


def test_nuts_marginalises_the_scale_like_quadrature():
    """Mean and second moment of log s and means of the weights; false alarms 1e-3 over all z-scores."""
    hyper = priors.half_normal(1.0)
    fit = fit_linear(PROBLEM, priors.hierarchical(hyper, "global"), NUTS, 1500)
    grid = np.linspace(-3, 2, 400)
    weight, means = quadrature(PROBLEM, hyper, grid)
    logs = np.asarray(fit.posterior.params["prior"]["log_scale"]["all"], np.float64)
    layer = fit.posterior.params["network"]["output"]
    theta = np.concatenate([layer["bias"], layer["kernel"][..., 0, :]], -1).astype(np.float64)
    centre = weight @ grid
    scores = np.concatenate(
        [
            z_scores(logs, centre),
            z_scores((logs - centre) ** 2, weight @ (grid - centre) ** 2),
            z_scores(theta, weight @ means),
        ]
    )
    assert np.abs(scores).max() < scipy.stats.norm.isf(1e-3 / 2 / scores.size)


@pytest.mark.full
@pytest.mark.parametrize(
    "prior", [priors.hierarchical(priors.inverse_gamma(2.0, 1.0)), priors.horseshoe(0.3, known=True)]
)
def test_optimisers_and_variational_methods_carry_hyper_parameters(prior):
    """MAP is a stationary point of the joint density of weights and scales; q covers the scales, too."""
    best = fit_linear(PROBLEM, prior, "map", 6000)
    point = jax.tree.map(lambda x: x[0, 0], best.posterior.params)
    batch = best.loop.data()
    slope = jax.grad(lambda p: best.model.log_joint(credo.core.network.Variables(p, {}), batch)[0])(point)
    assert max(float(jnp.abs(g).max()) for g in jax.tree.leaves(slope)) < 0.05
    variational = fit_linear(PROBLEM, prior, "bayes_by_backprop", 3000)
    assert jax.tree.structure(variational.posterior.mean["prior"]) == jax.tree.structure(point["prior"])
    assert all((s > 0).all() for s in jax.tree.leaves(variational.posterior.std["prior"]))
    masked = fit_linear(PROBLEM, prior, credo.methods.MCDropout(inputs=True), 200)
    assert np.isfinite(credo.predict(KEY, masked, PROBLEM.inputs[:3]).mean).all()


def test_variational_scale_is_near_the_truth():
    """Mean field is too sure, but its mean of log s is within a posterior standard deviation."""
    hyper = priors.half_normal(1.0)
    fit = fit_linear(PROBLEM, priors.hierarchical(hyper, "global"), "bayes_by_backprop", 10_000)
    grid = np.linspace(-3, 2, 400)
    weight, _ = quadrature(PROBLEM, hyper, grid)
    centre = weight @ grid
    error = float(fit.posterior.mean["prior"]["log_scale"]["all"][0]) - centre
    assert abs(error) < np.sqrt(weight @ (grid - centre) ** 2)


# ------------------------------------------------------------------ horseshoe
def test_horseshoe_density_is_scipys():
    prior = priors.horseshoe(0.2, slab_scale=1.5, slab_df=5.0)
    params = prior.sample_hyper(jax.random.key(3), INFO)
    assert jax.tree.structure(params) == jax.tree.structure(prior.init(INFO))
    local = {k: np.exp(np.asarray(v, np.float64)) for k, v in params["log_local"].items()}
    tau, slab = (np.exp(float(params[k])) for k in ("log_global", "log_slab"))
    expected = sum((scipy.stats.halfcauchy.logpdf(x) + np.log(x)).sum() for x in local.values())
    expected += scipy.stats.halfcauchy(scale=0.2).logpdf(tau) + np.log(tau)
    expected += scipy.stats.invgamma(2.5, scale=2.5 * 1.5**2).logpdf(slab**2) + np.log(2 * slab**2)
    np.testing.assert_allclose(prior.log_hyperprior(params), expected, rtol=1e-4)
    weights = 0.0
    for name, layer in PARAMS.items():
        for kind, x in layer.items():
            size = local[f"{name}/{kind}"] ** 2
            scale = np.sqrt(tau**2 * slab**2 * size / (slab**2 + tau**2 * size))
            weights += scipy.stats.norm.logpdf(np.asarray(x), 0, scale).sum()
    np.testing.assert_allclose(prior.bind(INFO, params).log_prob(PARAMS), weights, rtol=1e-3)


def test_horseshoe_draws_its_scales():
    """Kolmogorov tests of 3,000 draws of log λ, log τ and log c at 1e-4 each; draws of weights have those scales."""
    prior = priors.horseshoe(0.2)
    draws = jax.jit(jax.vmap(lambda k: prior.sample_hyper(k, INFO)))(jax.random.split(KEY, 3000))
    tau, slab = (np.exp(np.asarray(draws[k], np.float64)) for k in ("log_global", "log_slab"))
    local = np.exp(np.asarray(draws["log_local"]["output/bias"][:, 0], np.float64))
    for values, truth in (
        (local, scipy.stats.halfcauchy()),
        (tau, scipy.stats.halfcauchy(scale=0.2)),
        (slab**2, scipy.stats.invgamma(2, scale=2 * 4.0)),
    ):
        assert scipy.stats.kstest(values, truth.cdf).pvalue > 1e-4


def test_nuts_marginalises_the_horseshoe_of_one_weight_like_quadrature():
    """y = θx + ε: the scales λ, τ and c are integrated on a grid. The posterior mean of θ and of θ²; false alarms 1e-3
    over two z-scores."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 1)).astype(np.float32)
    y = (0.4 * x[:, 0] + 0.5 * rng.normal(size=16)).astype(np.float32)
    network = credo.from_functions(lambda key, x: {"w": jax.random.normal(key, (1, 1))}, lambda p, x: x @ p["w"])
    model = credo.Model(network, priors.horseshoe(0.5), credo.likelihoods.gaussian(0.5))
    fit = credo.fit(KEY, model, (x, y), credo.methods.NUTS(chains=4, warmup=800, target_acceptance=0.97), steps=3000)
    theta = np.asarray(fit.posterior.params["network"]["w"][..., 0, 0], np.float64)
    u = np.linspace(-7, 7, 81)
    local, tau = np.meshgrid(u, u, indexing="ij")
    total, first, second = 0.0, 0.0, 0.0
    gram, cross = float((x**2).sum()) / 0.25, float(x[:, 0] @ y) / 0.25
    for log_c in np.linspace(-1.5, 3.5, 60):
        free = local + tau
        variance = np.exp(2 * free) / (1 + np.exp(2 * (free - log_c)))
        precision = gram + 1 / variance
        hyper = scipy.stats.halfcauchy.logpdf(np.exp(local)) + local
        hyper += scipy.stats.halfcauchy(scale=0.5).logpdf(np.exp(tau)) + tau
        hyper += scipy.stats.invgamma(2, scale=8.0).logpdf(np.exp(2 * log_c)) + 2 * log_c
        weight = np.exp(hyper + 0.5 * cross**2 / precision) / np.sqrt(1 + variance * gram)
        mean = cross / precision
        total, first, second = (
            total + weight.sum(),
            first + (weight * mean).sum(),
            second + (weight * (mean**2 + 1 / precision)).sum(),
        )
    scores = np.concatenate([z_scores(theta, first / total), z_scores(theta**2, second / total)])
    assert np.abs(scores).max() < scipy.stats.norm.isf(1e-3 / 2 / 2), scores


# ------------------------------------------------------------------ parts, files and refusals
def test_parts_have_their_own_hyper_parameters():
    prior = priors.by_path({"hidden_0/kernel": priors.horseshoe(0.1), "*": priors.hierarchical(per="layer")})
    params = prior.init(INFO)
    assert params["part_0"]["log_local"].keys() == {"hidden_0/kernel"}
    assert params["part_1"]["log_scale"].keys() == {"hidden_0", "output"}
    drawn = prior.sample_hyper(KEY, INFO)
    assert jax.tree.structure(drawn) == jax.tree.structure(params)
    assert np.isfinite(prior.bind(INFO, drawn).log_prob(PARAMS) + prior.log_hyperprior(drawn))


def test_saves_and_loads(tmp_path):
    fit = fit_linear(PROBLEM, priors.hierarchical(priors.log_normal(0.5, 0.5)), "map", 20)
    fit.save(tmp_path / "run")
    assert credo.load(tmp_path / "run").model.prior == fit.model.prior


def test_refusals_are_sentences():
    with pytest.raises(InputError, match="per must be"):
        priors.hierarchical(per="weight")
    with pytest.raises(InputError, match="half_normal"):
        priors.hierarchical(1.0)
    with pytest.raises(InputError, match="once the network is"):
        priors.hierarchical().init()
    with pytest.raises(InputError, match="network's info"):
        priors.horseshoe().init()
    with pytest.raises(InputError, match="positive"):
        priors.horseshoe(-1.0)

    class Silent(priors.Hierarchical):
        def sample_hyper(self, key, info):
            return {}

    model = credo.Model(NETWORK, Silent(priors.half_normal(), "global"), credo.likelihoods.gaussian(0.1))
    batch = Batch(jnp.ones((4, 3)), jnp.ones((4, 2)), jnp.ones(4), jnp.asarray(4.0))
    with pytest.raises(Refusal, match="sample_hyper"):
        model.sample_prior(KEY, batch)
