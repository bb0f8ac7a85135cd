"""`gibbs` (E1) against a NumPy sweep with the same random numbers, NUTS on the same model, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
import numpy_gibbs
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.errors import InputError, Refusal
from credo.evaluation.diagnostics.chains import chain_stats
from credo.methods.shallow.gibbs import Gibbs
from credo.methods.shallow.marginal import Coefficients, draw, moments, solve
from credo.priors.node_hierarchy import unpack

RNG = np.random.default_rng(0)
X = np.linspace(-2, 2, 40)[:, None].astype(np.float32)
Y = (np.tanh(2 * X[:, 0]) + 0.3 * RNG.normal(size=40)).astype(np.float32)
PHASE = Phase("chain", 1, "full", keeps_draws=True)


def model(nodes=2, beside="linear", noise=None, prior=None):
    noise = noise or credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(2.0, 0.1))
    return credo.Model(credo.networks.shallow(nodes, beside), prior or credo.priors.node_hierarchy(), noise)


@pytest.mark.parametrize("active", [None, np.array([1.0, 0.0, 1.0, 1.0])])
def test_marginal_and_conditional_are_those_of_a_normal(active):
    """log p(t | γ) against N(Zm, W⁻¹ + ZD⁻¹Z'), up to the terms that no node changes, and coefficients' moments."""
    with jax.enable_x64(True):
        design, targets, precision = RNG.normal(size=(4, 9)), RNG.normal(size=(9, 1)), RNG.uniform(0.5, 2, (9, 1))
        prior = Coefficients(jnp.asarray(RNG.normal(size=(1, 4))), jnp.asarray(RNG.uniform(0.5, 2, (1, 4))))
        sums = moments(jnp.asarray(design), jnp.asarray(targets), jnp.asarray(precision))
        mask = None if active is None else jnp.asarray(active)
        solved = solve(sums, prior, mask)
        on = np.ones(4, bool) if active is None else active > 0
        z, m, d = design[on].T, np.asarray(prior.mean)[0, on], np.asarray(prior.precision)[0, on]
        whole = stats.multivariate_normal(z @ m, np.diag(1 / precision[:, 0]) + z @ np.diag(1 / d) @ z.T)
        alone = stats.norm(0, precision[:, 0] ** -0.5).logpdf(targets[:, 0]).sum()
        np.testing.assert_allclose(solved.log_marginal, whole.logpdf(targets[:, 0]) - alone, rtol=1e-10)
        posterior = np.linalg.inv(np.diag(d) + z.T @ (precision * z))
        mean = posterior @ (d * m + z.T @ (precision * targets)[:, 0])
        draws = np.asarray(
            jax.vmap(lambda e: draw(solved, e, mask)[0])(jax.random.normal(jax.random.key(0), (20_000, 1, 4)))
        )
        assert (draws[:, ~on] == 0).all()
        # 20,000 draws: five standard errors are 0.036 standard deviations of a mean, 5 % of a variance.
        np.testing.assert_allclose(draws[:, on].mean(0), mean, atol=0.036 * np.sqrt(np.diag(posterior)).max())
        np.testing.assert_allclose(np.cov(draws[:, on].T), posterior, atol=0.05 * np.diag(posterior).max())


def to_numpy(state):
    hyper, dims = state.hyper, state.gamma.shape[1]
    root = unpack(jnp.asarray(hyper["hidden"]["root"]), dims)
    walk = state.walk
    values = (
        state.gamma, state.coefs[0], hyper["output"]["mean"], jnp.exp(hyper["output"]["log_scale"]),
        hyper["hidden"]["mean"], root, jnp.exp(state.noise["log_scale"][0]), walk.log_scale, walk.root, walk.mean,
        walk.covariance,
    )  # fmt: skip
    return numpy_gibbs.State(*(np.array(v) for v in values), count=int(walk.count))


def test_a_sweep_is_the_numpy_sweep():
    """Equal random numbers give equal draws, through and beyond the warm-up."""
    method, problem = Gibbs(warmup=15, passes=2, fresh=0.2), model(3)
    batch = Batch(X, Y[:, None], np.ones(40, np.float32), np.float32(40))
    inputs = np.column_stack([np.ones(40), X]).astype(np.float64)
    with jax.enable_x64(True):
        state = method.init(jax.random.key(1), problem, problem.init(jax.random.key(0), batch), batch)
        noise = jax.jit(lambda k, s: method.noise(k, problem, PHASE, s))
        step = jax.jit(lambda n, s: method.step(n, problem, PHASE, s, batch)[0])
        own = to_numpy(state)
        for key in jax.random.split(jax.random.key(2), 40):
            variates = noise(key, state)
            state = step(variates, state)
            plain = {name: np.asarray(v) for name, v in variates.items() if name != "key"}
            own = numpy_gibbs.sweep(
                plain, inputs, Y.astype(np.float64), own, numpy_gibbs.Hyper(), passes=2, fresh=0.2, warmup=15
            )
        there = to_numpy(state)
    assert own.count == there.count == 30
    for name, value in vars(own).items():
        np.testing.assert_allclose(getattr(there, name), value, rtol=1e-6, atol=1e-8, err_msg=name)


def z_of(a, b):
    """Differences of means and of log standard deviations of function values in standard errors; [chain, draw, n]."""
    scores = []
    for f, g in ((a, b), ((a - a.mean((0, 1))) ** 2, (b - b.mean((0, 1))) ** 2)):
        error = np.hypot(chain_stats(f).mcse_mean, chain_stats(g).mcse_mean)
        scores.append((f.mean((0, 1)) - g.mean((0, 1))) / error)
    return np.concatenate(scores)


@pytest.mark.full  # the audit compares it with stored chains of NUTS in every run
@pytest.mark.parametrize(("beside", "nodes"), [("linear", 2), ("intercept", 3)])
def test_gibbs_agrees_with_nuts_on_the_same_hierarchy(beside, nodes):
    """Means and variances of functions at 12 inputs: all 24 z-scores below the Bonferroni bound for 1e-3."""
    problem = model(nodes, beside)
    places = np.linspace(-2.5, 2.5, 12)[:, None].astype(np.float32)
    found = []
    for method, steps in ((Gibbs(warmup=500), 4000), (credo.methods.NUTS(warmup=500, target_acceptance=0.95), 1000)):
        fit = credo.fit(jax.random.key(3), problem, (X, Y), method, steps=steps)
        values = fit.posterior.outputs(jax.random.key(0), fit.model, places, None).values[..., 0]
        found.append(np.asarray(values, np.float64))
        assert chain_stats(found[-1]).rhat.max() < 1.02
    z = z_of(*found)
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / z.size)


@pytest.mark.full
@pytest.mark.parametrize(
    ("prior", "noise"),
    [
        (credo.priors.normal(1.5), credo.likelihoods.gaussian(0.3)),
        (credo.priors.hierarchical(credo.priors.half_normal(2.0)), credo.likelihoods.gaussian("inferred")),
        (credo.priors.by_path({"hidden*": credo.priors.laplace(1.5), "*": credo.priors.normal(1.0)}), None),
    ],
    ids=["normal", "hierarchical", "laplace nodes"],
)
def test_gibbs_agrees_with_nuts_under_other_priors(prior, noise):
    problem = credo.Model(credo.networks.mlp([2], "tanh"), prior, noise or credo.likelihoods.gaussian(0.3))
    places = np.linspace(-2.5, 2.5, 12)[:, None].astype(np.float32)
    found = []
    for method, steps in ((Gibbs(warmup=500), 8000), (credo.methods.NUTS(warmup=1000, target_acceptance=0.95), 2000)):
        fit = credo.fit(jax.random.key(3), problem, (X, Y), method, steps=steps)
        values = fit.posterior.outputs(jax.random.key(0), fit.model, places, None).values[..., 0]
        found.append(np.asarray(values, np.float64))
    z = z_of(*found)
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / z.size)


def laplace_node(x, y, noise):
    """E|γ_0| and E|γ_1| of one tanh node beside an intercept under Laplace(0, 1), by quadrature on a grid."""
    grid = np.linspace(-20, 20, 801)
    log_mass = np.empty((len(grid), len(grid)))
    for i, bias in enumerate(grid):
        node = np.tanh(bias + np.outer(grid, x))
        covariance = noise**2 * np.eye(len(x)) + 1.0 + node[:, :, None] * node[:, None, :]
        half = np.linalg.solve(root := np.linalg.cholesky(covariance), np.broadcast_to(y[:, None], (*node.shape, 1)))
        log_mass[i] = -np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1) - 0.5 * (half**2).sum((1, 2))
    log_mass -= np.abs(grid)[:, None] + np.abs(grid)
    mass = np.exp(log_mass - log_mass.max())
    return np.abs(grid) @ mass.sum(1) / mass.sum(), np.abs(grid) @ mass.sum(0) / mass.sum()


def test_passes_with_fresh_nodes_keep_a_posterior_under_laplace_nodes():
    """E|γ| of a node in both coordinates against quadrature: z below the Bonferroni bound for 1e-4."""
    x, y = X[::4], Y[::4]
    prior = credo.priors.by_path({"hidden*": credo.priors.laplace(1.0), "*": credo.priors.normal(1.0)})
    problem = credo.Model(credo.networks.shallow(1, "intercept", "tanh"), prior, credo.likelihoods.gaussian(0.3))
    fit = credo.fit(jax.random.key(0), problem, (x, y), Gibbs(warmup=200, passes=10, fresh=0.9), steps=3000)
    hidden = fit.posterior.params["network"]["hidden"]
    gamma = np.abs(np.stack([np.asarray(hidden["bias"])[..., 0], np.asarray(hidden["kernel"])[..., 0, 0]], -1))
    truth = laplace_node(x[:, 0].astype(np.float64), y.astype(np.float64), 0.3)
    z = (gamma.mean((0, 1)) - truth) / chain_stats(gamma.astype(np.float64)).mcse_mean
    assert np.abs(z).max() < stats.norm.isf(1e-4 / 2 / 2), (z, truth)


@pytest.mark.full
def test_several_outputs_share_their_nodes():
    targets = np.stack([Y, -0.5 * Y], 1)
    fit = credo.fit(jax.random.key(0), model(2), (X, targets), Gibbs(warmup=100, chains=2), steps=200)
    predictive = credo.predict(jax.random.key(1), fit, X)
    assert np.corrcoef(predictive.mean[:, 0], predictive.mean[:, 1])[0, 1] < -0.95


def joined_nodes():
    """A posterior with a full covariance as the prior of the nodes: one of them alone is no draw given the others."""
    mean = {"network": {"hidden_0": {"kernel": jnp.zeros((1, 2, 1)), "bias": jnp.zeros((1, 2))}}}
    q = credo.posteriors.Multivariate(mean, jnp.eye(4)[None] + 0.5, {}, {})
    return credo.priors.by_path({"hidden*": credo.priors.as_prior(q), "*": credo.priors.normal(1.0)})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"network": credo.networks.mlp([3, 3])}, "must be a sum of nodes"),
        ({"likelihood": credo.likelihoods.poisson()}, "Poisson"),
        ({"prior": credo.priors.laplace(1.0)}, "is not normal"),
        ({"prior": joined_nodes()}, "depend on each other"),
        ({"temperature": 0.5}, "temperature 1"),
    ],
)
def test_what_has_no_closed_form_is_refused(change, sentence):
    problem = credo.Model(
        **({"network": credo.networks.mlp([2]), "prior": credo.priors.normal(1.0),
            "likelihood": credo.likelihoods.gaussian(0.1)} | change)
    )  # fmt: skip
    with pytest.raises(Refusal, match=sentence):
        credo.fit(jax.random.key(0), problem, (X, np.abs(np.round(Y))), Gibbs(chains=1), steps=5)
    with pytest.raises(InputError, match="input_share"):
        credo.fit(jax.random.key(0), model(), (X, Y), Gibbs(input_share=1.5), steps=5)


def test_inputs_that_matter_are_told_from_those_that_do_not():
    """Brute force over the four subsets of two inputs: a linear model, whose evidences have a closed form."""
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(30, 2)).astype(np.float32)
    targets = (0.25 * inputs[:, 0] + 0.1 * inputs[:, 1] + 0.5 * rng.normal(size=30)).astype(np.float32)
    problem = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.5))
    method = Gibbs(warmup=50, select_inputs=True, input_share=0.3)
    fit = credo.fit(jax.random.key(0), problem, (inputs, targets), method, steps=5000)
    used = np.asarray(fit.posterior.params["network"]["output"]["kernel"])[:, :, 0] != 0
    log_mass = {}
    for a in (0, 1):
        for b in (0, 1):
            z = np.column_stack([np.ones(30), a * inputs[:, 0], b * inputs[:, 1]]).astype(np.float64)
            evidence = stats.multivariate_normal(np.zeros(30), 0.25 * np.eye(30) + z @ z.T).logpdf(targets)
            log_mass[a, b] = evidence + (a + b) * np.log(0.3) + (2 - a - b) * np.log(0.7)
    mass = {k: np.exp(v - max(log_mass.values())) for k, v in log_mass.items()}
    truth = np.array([mass[1, 0] + mass[1, 1], mass[0, 1] + mass[1, 1]]) / sum(mass.values())
    chains = used.astype(np.float64)
    z = (chains.mean((0, 1)) - truth) / chain_stats(chains).mcse_mean
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / 2)
